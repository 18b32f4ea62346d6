"""Protected spans: parts of a text that a translation must have as they are, or as a glossary writes them."""

import bisect
import dataclasses
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import read_lines
from keras_transformer.text.glossary import CASE, Glossary
from keras_transformer.text.placeholders import SYMBOL
from keras_transformer.text.syntaxes import PLACEHOLDER
from keras_transformer.text.whole_numbers import in_brackets, whole_numbers

PLACEHOLDERS, TAGS, NUMBERS, TERM = "placeholders", "tags", "numbers", "term"
LONGEST_TAG = 2000  # characters: a bound on what a "<" that nothing closes costs
LEFT, RIGHT = "\ue000", "\ue001"  # around the signs of marks.py
NUMBER_OF_BRANCH = re.compile(r"#|'[{}][^']*+'")  # and quoted braces: they are text in an ICU message
MARK = re.compile(f"{LEFT}[^{LEFT}{RIGHT}]* ([0-9]+)/?{RIGHT}")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_IN_URL = rf"[^\s<>\"'`|\\^{LEFT}{RIGHT}]"
PATTERNS = {
    "urls": re.compile(rf"(?<!\w)(?:(?:https?|ftps?|file)://|mailto:|www\.(?=\w)){_IN_URL}+", re.IGNORECASE),
    "emails": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,63}"),
    PLACEHOLDERS: re.compile(f"{SYMBOL.pattern}|{PLACEHOLDER.pattern}"),
    TAGS: re.compile(
        rf"<!--(?:[^<-]|-(?!->)|<(?!!--)){{0,{LONGEST_TAG}}}+-->"
        r"|</?\d{1,3}\s?/?>"  # of React-Intl and Lingui
        rf"|</?[A-Za-z][\w:.-]{{0,99}}(?:[\s/](?:[^<>\"']|\"[^\"]*\"|'[^']*'){{0,{LONGEST_TAG}}}+)?>"
    ),
}
KINDS = (*PATTERNS, NUMBERS)
AT_MOST_ONCE = ("urls", "emails", PLACEHOLDERS)  # no language writes these by itself: a further copy is a mistake


class Span(NamedTuple):
    """A part of a text: text[start:end], its kind, and what a translation must have in its place."""

    start: int
    end: int
    kind: str  # one of KINDS, or TERM
    target: str


def kinds_of(kinds: str | Iterable[str]) -> tuple[str, ...]:
    """Return kinds, which may be one string with commas in between, each once.

    Raises ConfigError for one that is not of KINDS, and TypeError for what is no string.
    """
    names = kinds.split(",") if isinstance(kinds, str) else list(kinds) if isinstance(kinds, Iterable) else [kinds]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"protect must be kinds of spans, such as 'urls,numbers'. Received: {kinds!r:.60}")
    different = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if unknown := [name for name in different if name not in KINDS]:
        raise ConfigError(f"protect has {unknown[0]!r}; it may have {', '.join(KINDS)}.")
    return different


@dataclasses.dataclass(frozen=True)
class Protection:
    """What must come through a translation, and what must not be in it.

        Protection(("urls", "numbers"), Glossary.read("terms.tsv"))

    kinds: some of KINDS. glossary: terms, each with what a translation must have in its place. forbidden: terms that no
    translation may have (text/forbidden.py); their targets mean nothing. has_marks: whether lines have the signs of
    text/marks.py, which are placed as tags are. is_branch: whether lines are of ICU messages, in which # is a number.
    Raises ConfigError for another kind, and TypeError for what is no kinds or no Glossary.
    """

    kinds: tuple[str, ...] = ()
    glossary: Glossary = dataclasses.field(default_factory=Glossary)
    forbidden: Glossary = dataclasses.field(default_factory=Glossary)
    has_marks: bool = False
    is_branch: bool = False

    def __post_init__(self):
        object.__setattr__(self, "kinds", kinds_of(self.kinds))
        for name in ("glossary", "forbidden"):
            if not isinstance(value := getattr(self, name), Glossary):
                raise TypeError(
                    f"{name} must be a Glossary, such as Glossary([Term('dog', 'Hund')]). Received: {value!r:.60}"
                )

    @classmethod
    def of(cls, kinds: "str | Iterable[str] | Protection", glossary: Glossary | None = None) -> "Protection":
        """Return the Protection of kinds, which may be one string with commas in between; or one that is there."""
        if isinstance(kinds, Protection):
            return kinds
        return cls(kinds_of(kinds), glossary or Glossary())

    @classmethod
    def read(
        cls,
        kinds: str,
        keep: pathlib.Path | None = None,
        glossary: pathlib.Path | None = None,
        forbid: pathlib.Path | None = None,
    ) -> "Protection":
        """Return the Protection of kinds, and files of words to keep, of terms, and of words that are forbidden.

        Raises ConfigError for an unknown kind, InputError for a term that makes no sense, and OSError for a file that
        cannot be opened.
        """

        def words_of(path: pathlib.Path | None, flags: tuple[str, ...]) -> Glossary:
            if path is None:
                return Glossary()
            with open(path, "rb") as stream:
                return Glossary.of_words(read_lines(stream, path), path, flags)

        words = words_of(keep, (CASE,))
        terms = words if glossary is None else words.joined(Glossary.read(glossary))
        return dataclasses.replace(cls.of(kinds, terms), forbidden=words_of(forbid, ()))

    def __bool__(self) -> bool:
        return bool(self.kinds or self.glossary.terms or self.forbidden.terms)

    def spans(self, text: str) -> list[Span]:
        """Return the spans of a text from left to right: none overlaps another.

        Of those that overlap, the one that begins first is taken, the longest of these, and a term before a kind.
        """
        return list(without_overlaps([*self.terms(text), *self._of_kinds(text)]))

    def terms(self, text: str) -> Iterator[Span]:
        """Yield the terms of a text, which may overlap; none is inside of a URL, an address or a number."""
        matches = list(self.glossary.matches(text))
        wholes = list(wholes_of(text)) if matches else []
        for start, end, target in matches:
            first = bisect.bisect_right(wholes, start, key=lambda whole: whole.end)
            last = bisect.bisect_left(wholes, end, key=lambda whole: whole.start) - 1
            if first > last or (start <= wholes[first].start and wholes[last].end <= end):
                yield Span(start, end, TERM, target)

    def _of_kinds(self, text: str) -> Iterator[Span]:
        for match in MARK.finditer(text) if self.has_marks else ():
            yield Span(*match.span(), TAGS, match[0])
        for match in NUMBER_OF_BRANCH.finditer(text) if self.is_branch else ():
            yield Span(*match.span(), PLACEHOLDERS, match[0])
        for kind in sorted(self.kinds, key=TAGS.__ne__):  # <0> is a placeholder too, if tags are none
            for start, end in numbers_of(text) if kind == NUMBERS else places_of_kind(kind, text):
                yield Span(start, end, kind, text[start:end])


def bare(text: str) -> str:
    """Return a text without tags, and without signs of text/marks.py."""
    return MARK.sub("", PATTERNS[TAGS].sub("", text))


def places_of_kind(kind: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where the spans of a kind of PATTERNS are."""
    for match in PATTERNS[kind].finditer(text):
        start, end = match.span()
        yield start, end if kind != "urls" else end_of_url(text, start, end)


def wholes_of(text: str) -> Iterator[Span]:
    """Yield the URLs, addresses and numbers of a text, inside of which no term is found."""
    numbers = (Span(*number, NUMBERS, "") for number in whole_numbers(text))
    others = (Span(*place, kind, "") for kind in ("urls", "emails") for place in places_of_kind(kind, text))
    return without_overlaps([*numbers, *others])


def numbers_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the numbers of a text are, with brackets around one alone; none is a part of another kind's span."""
    numbers = [in_brackets(text, number) for number in whole_numbers(text)]
    owners = [0] * (len(text) + 1) if numbers else []  # of each character, which span of another kind has it
    others = [Span(*place, kind, "") for kind in PATTERNS if numbers for place in places_of_kind(kind, text)]
    for owner, (start, end, *_) in enumerate(without_overlaps(others), start=1):
        owners[start:end] = [owner] * (end - start)
    for start, end in numbers:
        if not any(0 < place and 0 < owners[place - 1] == owners[place] for place in (start, end)):
            yield start, end


def without_overlaps(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans from left to right, without those that overlap an earlier one, or a longer one at the same place."""
    reached = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= reached and span.end > span.start:
            yield span
            reached = span.end


def end_of_url(text: str, start: int, end: int) -> int:
    """Return where a URL ends: punctuation of the sentence behind it, such as a stop or ")", is not part of it."""
    unopened = {
        close: text.count(close, start, end) - text.count(open_, start, end) for open_, close in _BRACKETS.items()
    }
    while end > start and (text[end - 1] in ".,;:!?" or unopened.get(text[end - 1], 0) > 0):
        end -= 1
        if text[end] in unopened:
            unopened[text[end]] -= 1
    return end
