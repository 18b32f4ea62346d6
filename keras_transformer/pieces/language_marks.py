"""Which languages a model reads and writes, and by which pieces it is told them.

Johnson et al. 2017 put a piece for the target language before the source. M2M-100 (Fan et al. 2020) puts one for the
source language there, and lets the target begin with its own, as NLLB-200 does.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.batching import why_no_text
from keras_transformer.pieces.languages import short_code

if TYPE_CHECKING:  # it needs sentencepiece, which not every engine has
    from keras_transformer.pieces.tokenizer import Tokenizer

SIDES = SOURCE, TARGET = ("source", "target")
VERBS = {SOURCE: "reads", TARGET: "writes"}
PLACES = ("source_first", "source_last", "target_first")
MOST_NAMED = 12  # in a refusal
SPECIAL = "the padding, the unknown piece, the beginning or the end of a text"


Tag = tuple[int, ...]  # the tokens that stand for a language


def begins_with(ids: Sequence[int], tag: Tag) -> bool:
    """Return whether tokens begin with those of a language."""
    return tuple(ids[: len(tag)]) == tag


class Marks(NamedTuple):
    """The tokens that tell a model the languages of a sentence: at both ends of its source, and before its output."""

    first: Tag = ()
    last: Tag = ()
    opening: Tag = ()

    def around(self, ids: Sequence[int], longest: int = sys.maxsize) -> list[int]:
        """Return the tokens of a source with EOS and its marks, `longest` at most.

        A tag that the text has already is not put there again.
        """
        first = () if begins_with(ids, self.first) else self.first
        return [*first, *ids[: self.room(ids, longest)], EOS, *self.last]

    def room(self, ids: Sequence[int], longest: int) -> int:
        """Return how many of these tokens, a tag of their own included, have room among `longest` with EOS, marks."""
        return longest - 1 - len(self.last) - (0 if begins_with(ids, self.first) else len(self.first))

    def other_tag(self, ids: Sequence[int], tags: Collection[Tag]) -> Tag:
        """Return with which tag of another language a text begins, if it has a first mark of its own; () if none.

        tags: of which the first one that a text begins with is its own: see `MarkReader`.
        """
        found = next((tag for tag in tags if begins_with(ids, tag)), ())
        return found if self.first and found != self.first else ()

    def before(self, ids: Sequence[int]) -> list[int]:
        """Return the tokens of an output with its opening and EOS."""
        return [*self.opening, *ids, EOS]


NO_MARKS = Marks()


Codes = tuple[str, str]  # of the languages of a sentence and its translation; "" for what is not told
NO_CODES = ("", "")


class Languages(NamedTuple):
    """Which languages a model reads and writes, and how it is told which.

    source, target: by the code of a language, such as "en", the piece that stands for it; "" if none does. Several
    pieces with spaces between them can stand for one that a source begins with, as "▁ <2de>". Empty: not known.
    source_first, source_last, target_first: whose piece is the first token of the source, comes after its EOS, and is
    the first token of the output: "source", "target", or "" for nobody's. The model does not choose the
    first token of the output, so its log-probability counts as 0. default_source, default_target: the codes of those
    that are taken if a sentence names none.
    """

    source: Mapping[str, str] = {}
    target: Mapping[str, str] = {}
    source_first: str = ""
    source_last: str = ""
    target_first: str = ""
    default_source: str = ""
    default_target: str = ""

    @classmethod
    def of(cls, values: Any) -> "Languages":
        """Return the languages that a JSON object describes. Raises ConfigError if it does not."""
        if not isinstance(values, Mapping) or not values.keys() <= set(cls._fields):
            raise ConfigError(f"languages is {values!r:.60}; it may have {', '.join(cls._fields)}.")
        languages = cls(**values)
        languages.check()
        return languages

    def check(self) -> None:
        """Raises ConfigError for what tells a model nothing."""
        for side in SIDES:
            pieces = getattr(self, side)
            if (
                not isinstance(pieces, Mapping)
                or "" in pieces
                or not all(isinstance(text, str) for text in [*pieces, *pieces.values()])
            ):
                raise ConfigError(
                    f"languages.{side} is {pieces!r:.60}; it must be a piece, or '', by code of a language."
                )
        for place in PLACES:
            if (side := getattr(self, place)) not in ("", *SIDES):
                raise ConfigError(f"languages.{place} is {side!r:.60}; it must be 'source', 'target' or ''.")
            if side and not all(map(str.split, getattr(self, side).values())):
                raise ConfigError(f"languages.{place} is {side!r}, but a language of that side has no piece.")
            if side and place != "source_first" and any(" " in piece for piece in getattr(self, side).values()):
                raise ConfigError(f"languages.{place} is {side!r}, but a language of that side has several pieces.")
        for side in SIDES:
            default = getattr(self, f"default_{side}")
            if default and (not isinstance(default, str) or default not in getattr(self, side)):
                raise ConfigError(f"languages.default_{side} is {default!r:.60}, which languages.{side} has not.")

    def as_json(self) -> dict[str, Any]:
        """Return what `of` reads."""
        return {**self._asdict(), SOURCE: dict(self.source), TARGET: dict(self.target)}

    def pieces(self) -> frozenset[str]:
        """Return the pieces that stand for languages."""
        return frozenset(
            piece for side in (self.source, self.target) for text in side.values() for piece in text.split()
        )

    def by_default(self, source: str = "", target: str = "") -> "Languages":
        """Return these with other defaults, which `chosen` finds. Raises ConfigError as that does."""
        source, target = self.chosen(source, target)
        return self._replace(default_source=source, default_target=target)

    def with_earlier(self, before: "Languages") -> "Languages":
        """Return these and those that a model with tags was told before, but for one whose tag is of another now."""
        tags = set(self.target.values())
        earlier = {code: tag for code, tag in before.target.items() if code in self.target or tag not in tags}
        return self._replace(source={**before.source, **self.source}, target={**earlier, **self.target})

    @property
    def are_told(self) -> bool:
        """Whether pieces tell the model the languages of a sentence."""
        return any(getattr(self, place) for place in PLACES)

    def told(self, codes: Codes) -> Codes:
        """Return `chosen` for the codes of a training text, as unnamed on a side of which nothing is known.

        Raises ConfigError as `chosen` does.
        """
        return self.chosen(*(code if getattr(self, side) else "" for side, code in zip(SIDES, codes, strict=True)))

    def of_lines(self, codes: Sequence[Codes]) -> dict[str, Any]:
        """Return the arguments that tell an engine of such a model the languages of lines: `told` for each."""
        told = [self.told(pair) for pair in codes] if self.are_told else []
        sides = zip(*told, strict=True) if told else ()
        return {f"{side}_language": list(of_side) for side, of_side in zip(SIDES, sides, strict=False)}

    def untagged(self, text: str) -> tuple[str, str]:
        """Return the code of the language whose tag a text begins with, "" without one, and the text without it."""
        pieces = getattr(self, self.source_first) if self.source_first else {}
        written = {code: piece.replace(" ", "").replace("\u2581", " ").strip() for code, piece in pieces.items()}
        tags = [(tag, code) for code, tag in written.items() if text.lstrip().startswith(tag)]
        tag, code = max(tags, key=lambda tag: len(tag[0]), default=("", ""))
        return code, text.lstrip().removeprefix(tag).lstrip() if tag else text

    def has(self, side: str, code: str) -> bool:
        """Return whether `code_of` finds a language."""
        try:
            return bool(self.code_of(side, code))
        except ConfigError:
            return False

    def needs(self, side: str) -> bool:
        """Return whether a sentence must name its language of a side, if there are several."""
        return side in (self.source_last, self.target_first, self.source_first if side == SOURCE else "")

    def default(self, side: str) -> str:
        """Return the code that is taken if a sentence names none of a side; "" if there is no such."""
        codes = list(getattr(self, side))
        return getattr(self, f"default_{side}") or (codes[0] if len(codes) == 1 else "")

    def chosen(self, source: str = "", target: str = "") -> tuple[str, str]:
        """Return the codes that the model has for two languages, "" for one that it need not know.

        "de" is also "deu", "deu_Latn" and "de-DE". For one that is left out, see `default`.
        Raises ConfigError, with what the model has, if it lacks one, or needs one that is left out.
        """
        return self.code_of(SOURCE, source), self.code_of(TARGET, target)

    def code_of(self, side: str, code: str) -> str:
        """Return what `chosen` does for the language of one side."""
        self.check_text(side, code)
        codes, verb = list(getattr(self, side)), VERBS[side]
        if not code:
            if (code := self.default(side)) or len(codes) < 2 or not self.needs(side):
                return code
            raise ConfigError(f"This model {verb} {named(codes)}: say which is the {side} language.")
        found = [code] if code in codes else [each for each in codes if short_code(each) == short_code(code)]
        if not codes:
            raise ConfigError(
                f"The {side} language is {code!r:.60}, but this model does not say which it {verb}: leave it out."
            )
        if not found:
            raise ConfigError(f"The {side} language is {code!r:.60}; this model {verb} {named(codes)}.")
        if len(found) > 1:
            raise ConfigError(
                f"The {side} language is {code!r:.60}; this model {verb} {named(found)}: name one of them."
            )
        return found[0]

    def check_text(self, side: str, code: Any) -> None:
        """Raises ConfigError if what is given as the code of a language of a side is not one text."""
        if not isinstance(code, str) or why_no_text(code, ""):
            codes = list(getattr(self, side))
            has = f"; this model {VERBS[side]} {named(codes)}" if codes else ""
            raise ConfigError(f"The {side} language is {code!r:.60}{has}: give its code, or '' for none.")


NO_LANGUAGES = Languages()


def named(codes: Sequence[str]) -> str:
    """Return some codes, and how many more there are."""
    more = len(codes) - MOST_NAMED
    return ", ".join(codes[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class MarkReader:
    """Turns the languages of a sentence into Marks. Raises ConfigError if the tokenizer lacks a piece of a language.

    tags: the tokens of each language, longer ones first: those of one can be the beginning of those of another.
    longest: of the longest tag, at least 1.
    """

    def __init__(self, languages: Languages, tokenizer: "Tokenizer"):
        self.languages = languages
        ids = {piece: number for number, piece in enumerate(tokenizer.pieces())} if languages.pieces() else {}
        if missing := sorted(languages.pieces() - ids.keys()):
            raise ConfigError(f"The tokenizer has no piece {missing[0]!r}, which stands for a language.")
        if special := sorted(piece for piece in languages.pieces() if ids[piece] in (PAD, UNK, BOS, EOS)):
            raise ConfigError(f"{special[0]!r} cannot stand for a language: it is {SPECIAL} of the tokenizer.")
        self._ids = {
            side: {code: tuple(ids[piece] for piece in text.split()) for code, text in getattr(languages, side).items()}
            for side in SIDES
        }
        tags = {tag for side in self._ids.values() for tag in side.values() if tag}
        self.tags = sorted(tags, key=lambda tag: (-len(tag), tag))
        self.longest = max(map(len, tags), default=1)
        first, last = (self._ids.get(side, {}).values() for side in (languages.source_first, languages.source_last))
        self.most_in_source = sum(max(map(len, tags), default=0) for tags in (first, last))

    def tag(self, side: str, code: str) -> Tag:
        """Return the tokens that stand for a language of a side; () if none does."""
        return self._ids[side].get(code, ())

    def marks(self, source: str, target: str) -> Marks:
        """Return the marks of a sentence with two codes that `Languages.chosen` returned."""
        codes = {SOURCE: source, TARGET: target}
        sides = (getattr(self.languages, place) for place in PLACES)
        return Marks(*(self.tag(side, codes[side]) if side else () for side in sides))

    def of_pairs(self, codes: Sequence[Codes]) -> list[Marks]:
        """Return the marks of sentence pairs in these languages, by `Languages.told`; [] if the model is told none."""
        return [self.marks(*self.languages.told(pair)) for pair in codes] if self.languages.are_told else []

    def marks_on(self, source: Sequence[int], target: Sequence[int]) -> Marks:
        """Return the marks that the tokens of a pair have, as `Marks.around` and `Marks.before` put them there."""
        tokens = source, source[-1:], target
        found = (next((tag for tag in self.tags if begins_with(ids, tag)), ()) for ids in tokens)
        sides = (getattr(self.languages, place) for place in PLACES)
        return Marks(*(tag if side else () for side, tag in zip(sides, found, strict=True)))
