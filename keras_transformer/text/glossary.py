"""Glossaries: terms of a language, each with what a translation must have in its place."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import read_lines
from keras_transformer.text.folding import Folded, folded
from keras_transformer.text.phrase_index import PhraseIndex
from keras_transformer.text.words import LETTER

CASE, PART, REGEX = FLAGS = ("case", "part", "regex")
LONGEST_TERM = 1000  # characters
LONGEST_PATTERN = 200  # characters of a regular expression
LONGEST_WRITTEN_OUT = 10_000  # signs of one whose {n} are written out, which `regex` does: {99999999} takes all memory
MOST_PATTERNS = 500  # regular expressions of a glossary
MOST_WRITTEN_OUT = 20_000  # signs of all of them: each takes 280 bytes once it is compiled
PATTERN_SECONDS = 0.1  # that a regular expression may take for one line
LINE_SECONDS = 1.0  # that all of them together may take for one line
SIGN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,\d*)?\}|.", re.DOTALL)  # of a regular expression

# (?R), (?0), (?1), (?-1), (?+1), (?&name), (?P>name): a group that is called once more, which takes all memory
RECURSION = re.compile(r"\(\?(?:[R&]|P>|[+-]?\d)")


class Term(NamedTuple):
    """A term and what stands for it in a translation.

    source: the term as a text has it. target: what the translation must have.
    flags: "case": capitals count. "part": it may be a part of a word. "regex": `source` is a regular expression, and
    `target` may have its groups, \\1 and so on.
    """

    source: str
    target: str
    flags: tuple[str, ...] = ()


class Match(NamedTuple):
    """A term in a text: text[start:end], and what the translation must have."""

    start: int
    end: int
    target: str


class Glossary:
    """Terms, found in a text from left to right, the longest first, whatever form the text has (folding.py).

        Glossary([Term("dog", "Köter"), Term("Firefox", "Firefox", ("case",))]).matches("Two Dogs, a dog")

    `names` are what errors call the terms, such as "terms.tsv, line 3".
    Raises InputError, with the name of the term, if a term or its target is empty or too long, for an unknown flag, for
    two terms that are the same with different targets, for a regular expression that cannot be used, and for more than
    MOST_PATTERNS of them, or MOST_WRITTEN_OUT signs.
    """

    def __init__(self, terms: Iterable[Term] = (), names: Sequence[str] = ()):
        self.terms = tuple(terms)
        self.names = names = list(names) or [f"Term {number}" for number in range(1, len(self.terms) + 1)]
        self._of_key: dict[tuple[bool, str], tuple[str, Term]] = {}  # by whether capitals count, and the term
        self._patterns, written_out = [], 0
        for term, name in zip(self.terms, names, strict=True):
            check_term(term, name)
            if REGEX in term.flags:
                if len(self._patterns) == MOST_PATTERNS:
                    raise InputError(
                        f"{name} is the regular expression number {MOST_PATTERNS + 1}; at most {MOST_PATTERNS} are "
                        "possible: write those without signs as terms."
                    )
                written_out += length_written_out(term.source)
                self._patterns.append((compiled(term, name), term, name))
                if written_out > MOST_WRITTEN_OUT:
                    raise InputError(
                        f"The regular expressions up to {name} have {written_out:,} signs, with those that they "
                        f"repeat; at most {MOST_WRITTEN_OUT:,} are possible: write those without signs as terms."
                    )
            else:
                self._add(term, name)
        self._indexes = {is_exact: self._index(is_exact) for is_exact in (True, False)}  # by whether capitals count

    def __repr__(self) -> str:
        return f"Glossary({self.terms!r})"

    def _index(self, is_exact: bool) -> PhraseIndex:
        keys: tuple[list[str], list[str]] = [], []  # of whole words, and of parts
        for (exact, key), (_, term) in self._of_key.items():
            if exact == is_exact:
                keys[PART in term.flags].append(key)
        return PhraseIndex(*keys)

    def _add(self, term: Term, name: str) -> None:
        source = folded(term.source).text.strip() or term.source
        key = (CASE in term.flags, source if CASE in term.flags else lower(source))
        first, known = self._of_key.setdefault(key, (name, term))
        if known.target != term.target:
            raise InputError(
                f"{name} translates {term.source!r} as {term.target!r}, and {first} as {known.target!r}: keep one."
            )

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Glossary":
        """Read a file of lines `term<TAB>translation`, and flags after a further tab, with spaces in between.

        Empty lines, and lines that begin with "#" and have no tab, are left out. Raises InputError with the number of
        the line, and OSError if the file cannot be opened.
        """
        with open(path, "rb") as stream:
            return cls.of_lines(read_lines(stream, path), path)

    @classmethod
    def of_lines(cls, lines: Iterable[str], name: str | os.PathLike) -> "Glossary":
        """Return the glossary of lines as `read` reads them; errors call their file `name`."""
        terms, names = [], []
        for number, line in enumerate(lines, 1):
            if not line.strip() or (line.startswith("#") and "\t" not in line):
                continue
            where = f"{name}, line {number:,}"
            columns = [column.strip() for column in line.split("\t")]
            if not 2 <= len(columns) <= 3:
                found = "no tab" if len(columns) == 1 else f"{len(columns)} columns"
                raise InputError(
                    f"{where} has {found}: give a term, a tab and its translation, and flags after a second tab if any."
                )
            terms.append(Term(columns[0], columns[1], tuple(columns[2].split()) if len(columns) == 3 else ()))
            names.append(where)
        return cls(terms, names)

    @classmethod
    def of_words(cls, lines: Iterable[str], name: str | os.PathLike, flags: tuple[str, ...] = (CASE,)) -> "Glossary":
        """Return the glossary of words that stay as they are, one per line, capitals included unless flags differ.

        A line may have further flags after a tab, such as "regex". Errors are those of `read`.
        """
        terms, names = [], []
        for number, line in enumerate(lines, 1):
            word, _, own = (part.strip() for part in line.strip().partition("\t"))
            if not line.strip():
                continue
            names.append(f"{name}, line {number:,}")
            as_written = CASE in flags or CASE in own.split()
            target = r"\g<0>" if REGEX in own.split() else word if as_written else lower(word)
            terms.append(Term(word, target, (*flags, *own.split())))
        return cls(terms, names)

    def joined(self, other: "Glossary") -> "Glossary":
        """Return the terms of both."""
        return Glossary([*self.terms, *other.terms], [*self.names, *other.names])

    def matches(self, text: str) -> Iterator[Match]:
        """Yield where terms are in a text, and their targets. They may overlap.

        Raises InputError if a regular expression takes longer than PATTERN_SECONDS, or all longer than LINE_SECONDS.
        """
        form = folded(text) if self._of_key else Folded("")
        for is_exact, index in self._indexes.items():
            written = form.text if is_exact else lower(form.text)
            for start, stop in index.longest(written):
                yield Match(*form.place(start, stop), self._of_key[is_exact, written[start:stop]][1].target)
        end = time.monotonic() + LINE_SECONDS
        for pattern, term, name in self._patterns:
            seconds = max(min(PATTERN_SECONDS, end - time.monotonic()), 0.001)
            try:
                for match in pattern.finditer(text, timeout=seconds):
                    if match.end() > match.start():
                        yield Match(match.start(), match.end(), match.expand(term.target))
            except TimeoutError:
                raise InputError(
                    f"{name}: the regular expression {term.source!r} took longer than {seconds:.2g} s for the line "
                    f"{text[:60]!r}: write it without repeated groups."
                ) from None

    def found(self, text: str) -> list[str]:
        """Return the terms that a text has, as it has them. Raises InputError as `matches` does."""
        return list(dict.fromkeys(text[match.start : match.end] for match in self.matches(text)))


def lower(text: str) -> str:
    """Return a text of the same length in lower case: a letter whose lower case is longer stays."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(x if len(x.lower()) != 1 else x.lower() for x in text)


def check_term(term: Term, name: str) -> None:
    """Raises InputError for an empty or a long term, and for an unknown flag, and TypeError for what is no Term."""
    if not isinstance(term, Term) or not all(isinstance(side, str) for side in term[:2]):
        raise TypeError(f"{name} must be a Term of two texts, such as Term('dog', 'Hund'). Received: {term!r:.60}")
    for side, what in ((term.source, "term"), (term.target, "translation")):
        if not side.strip():
            raise InputError(f"{name} has an empty {what}: give both, or leave it out.")
        if len(side) > LONGEST_TERM:
            raise InputError(f"{name} has a {what} of {len(side):,} characters; at most {LONGEST_TERM:,} are possible.")
    if unknown := [flag for flag in term.flags if flag not in FLAGS]:
        raise InputError(f"{name} has the flag {unknown[0]!r}; it may have {', '.join(FLAGS)}.")


def length_written_out(pattern: str) -> int:
    """Return how many signs a regular expression has if what comes n times, as in (ab){n}, is written n times."""
    lengths, last = [0], 0  # of the groups that are open
    for sign in SIGN.finditer(pattern):
        if sign[0] == "(":
            lengths.append(0)
        elif sign[0] == ")" and len(lengths) > 1:
            last = lengths.pop()
            lengths[-1] += last
        elif sign[1]:
            lengths[-1] += last * (int(sign[1]) - 1)
            last *= int(sign[1])
        else:
            last = 1
            lengths[-1] += 1
    return sum(lengths)


def compiled(term: Term, name: str):
    """Return the regular expression of a term. Raises InputError if it cannot be used."""
    try:
        import regex  # here, since it is an extra; unlike `re` it can be stopped
    except ImportError:
        raise InputError(
            f"{name} is a regular expression, which needs the package regex: pip install 'keras-transformer-mt[text]'."
        ) from None
    if len(term.source) > LONGEST_PATTERN:
        raise InputError(
            f"{name} has a regular expression of {len(term.source)} characters; at most {LONGEST_PATTERN} are possible."
        )
    if (count := length_written_out(term.source)) > LONGEST_WRITTEN_OUT:
        raise InputError(
            f"{name} has {term.source!r}, which repeats its signs {count:,} times; at most {LONGEST_WRITTEN_OUT:,} "
            "times are possible: write + in place of a number."
        )
    if RECURSION.search(term.source):
        raise InputError(
            f"{name} has {term.source!r}, which calls a group of itself: write it without (?R) and the like."
        )
    case = 0 if CASE in term.flags else regex.IGNORECASE
    part = term.source if PART in term.flags else rf"(?<!{LETTER.pattern})(?:{term.source})(?!{LETTER.pattern})"
    try:
        # Kept here alone: the package would keep the last 500 of them. The first raises for a group that there is not
        pattern = regex.compile(rf"(?:{part})?+", case, cache_pattern=False)
        pattern.match("", timeout=PATTERN_SECONDS).expand(term.target)
        return regex.compile(part, case, cache_pattern=False)
    except TimeoutError:
        raise InputError(
            f"{name} has {term.source!r}, which takes too long: write it without repeated groups."
        ) from None
    except (regex.error, IndexError, OverflowError, RecursionError) as error:
        raise InputError(f"{name} has {term.source!r}, which is no regular expression: {error}.") from None
