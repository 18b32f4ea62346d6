"""The signatures of an export as an Engine, wherever they are computed: here, by a server, on a worker of Spark."""

import abc
import copy
import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Self

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.pieces.translation import NO_SCORE, OUTPUTS, translations_of
from keras_transformer.text.asks import (
    FORBIDDEN,
    NOTHING,
    PREFIX,
    REQUIRED,
    SOURCE_LANGUAGE,
    SPANS,
    TARGET_LANGUAGE,
    Ask,
)
from keras_transformer.text.placeholders import placeholders_known
from keras_transformer.text.placing import alignment_of
from keras_transformer.text.road import KEEP_LETTERLESS, Candidates, Engine, refuse_beyond

log = logging.getLogger("keras_transformer")

BEST, CANDIDATES, TOKENIZE = "serving_default", "translate", "tokenize"  # signatures
SCORE, MAX_LENGTH = "score", "max_length"
MANY = "translations", "scores", "is_cut", "confidences"  # outputs of CANDIDATES in the order of OUTPUTS, those of BEST

Columns = dict[str, list]  # inputs or outputs by name, with a value per line; texts are str


class SignatureEngine(Engine):
    """Translates with the signatures of an export.

    options: values of inputs of the signature `translate`, for all lines; others have the defaults of the export.

    Lines that ask for nothing go through `serving_default`, which takes the least time, unless there are options.
    """

    name = "This export"
    options: Mapping[str, Any] = {}

    @abc.abstractmethod
    def defaults(self, name: str) -> Mapping[str, Any]:
        """Return the default of each optional input of a signature, {} if there is no such signature."""

    @abc.abstractmethod
    def call(self, name: str, columns: Columns) -> Columns:
        """Return the outputs of a signature, whose inputs that are left out have their defaults."""

    @functools.cached_property
    def abilities(self) -> frozenset[str]:  # type: ignore[override]
        return SPANS | self.defaults(CANDIDATES).keys() | ({SCORE} if self.tells(SCORE, "score") else set())

    @functools.cached_property
    def aligns(self) -> bool:  # type: ignore[override]
        return self.tells(CANDIDATES, "alignments")

    @functools.cached_property
    def takes_limits(self) -> bool:  # type: ignore[override]
        return MAX_LENGTH in self.abilities and self.tells(CANDIDATES, "is_cut")

    @functools.cached_property
    def placeholders(self) -> int:  # type: ignore[override]
        def pieces_of(text: str) -> Sequence[str]:
            return self.call(TOKENIZE, {"text": [text]})["pieces"][0].split(" ")

        return placeholders_known(pieces_of) if self.tells(TOKENIZE, "pieces") else 0

    def told(self, ask: Ask) -> Ask:
        """Where a signature takes languages, it checks them; a line that names none needs no look at what it takes."""
        is_told = ask.of_languages() != NOTHING and TARGET_LANGUAGE not in self.defaults(CANDIDATES)
        return super().told(ask) if is_told else ask

    def own_option(self, name: str) -> Any:
        return self.options.get(name, self.defaults(CANDIDATES).get(name))

    @property
    def keeps_letterless(self) -> bool:
        return self.own_option(KEEP_LETTERLESS) in (None, 1)

    @property
    def beam_size(self) -> int:  # type: ignore[override]
        return self.options.get("beam_size", self.defaults(CANDIDATES).get("beam_size", 1))

    @abc.abstractmethod
    def tells(self, name: str, output: str) -> bool:
        """Return whether there is a signature of this name with this output."""

    def with_options(self, options: Mapping[str, Any]) -> Self:
        refuse_beyond(self, options)
        engine = copy.copy(self)
        engine.options = {**self.options, **options}
        return engine

    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        is_plain = not self.options and not any(ask.names or ask.limit or ask.of_languages() != NOTHING for ask in asks)
        if is_plain or not self.tells(CANDIDATES, "translations"):
            found = best_in(self.call(BEST, {"text": lines}))
        else:
            found = candidates_in(lines, self.call(CANDIDATES, self.asked(lines, asks)))
        for number, candidates in enumerate(found, first_line):
            if candidates.truncated:
                log.warning("line %d is longer than this export reads; only its beginning is used", number)
        return found

    def asked(self, lines: list[str], asks: Sequence[Ask]) -> Columns:
        """Return the inputs of the signature `translate`."""
        columns = {
            PREFIX: [ask.prefix for ask in asks],
            REQUIRED: ["\n".join(ask.required) for ask in asks],
            SOURCE_LANGUAGE: [ask.source_language for ask in asks],
            TARGET_LANGUAGE: [ask.target_language for ask in asks],
            FORBIDDEN: ["\n".join(term.source for term in ask.protection.forbidden.terms) for ask in asks],
        }
        options = {"n_best": 1, **self.options}
        asked = {
            "text": lines,
            **{name: texts for name, texts in columns.items() if any(texts)},
            **{name: [value] * len(lines) for name, value in options.items()},
        }
        if any(ask.limit for ask in asks):
            asked[MAX_LENGTH] = [ask.limit or self.own_option(MAX_LENGTH) for ask in asks]
        return asked

    def are_too_long(self, lines: list[str]) -> Sequence[bool]:
        """Of an older export, whose signature `tokenize` does not tell, the lines are searched for this."""
        name = TOKENIZE if self.tells(TOKENIZE, "truncated") else BEST
        return self.call(name, {"text": lines}).get("truncated", [False] * len(lines))


def best_in(columns: Columns) -> list[Candidates]:
    """Return what `serving_default` answers."""
    translations = translations_of(columns)
    truncated = columns.get("truncated", [None] * len(translations))  # which exports of the first versions do not tell
    return [Candidates([best], (), is_cut) for best, is_cut in zip(translations, truncated, strict=True)]


def candidates_in(lines: Sequence[str], columns: Columns) -> list[Candidates]:
    """Return what `translate` answers for lines. Raises UserError if one has no translation."""
    results = []
    for number, line in enumerate(lines):
        of_line = {name: values[number] for name, values in columns.items()}
        if of_line["scores"][0] < NO_SCORE and not is_blank(line):
            raise UserError(f"The line {line[:60]!r} has no translation: the model's probabilities are NaN.")
        found = translations_of(
            {name: of_line[many] for name, many in zip(OUTPUTS, MANY, strict=True) if many in of_line}
        )
        forced = of_line.get("is_forced", [False] * len(found))
        translations = [each._replace(is_forced=bool(flag)) for each, flag in zip(found, forced, strict=True)]
        filled = [rank for rank, each in enumerate(translations) if rank == 0 or each.text]  # beyond n_best is nothing
        alignments = [alignment_of(of_line["alignments"][rank]) for rank in filled] if "alignments" in of_line else ()
        results.append(Candidates([translations[rank] for rank in filled], alignments, of_line.get("truncated")))
    return results


def first_values(defaults: Mapping[str, list]) -> dict[str, Any]:
    """Return the one value of each default of a signature; one of another shape is none that a line could have."""
    return {
        name: as_texts(values)[0]
        for name, values in defaults.items()
        if isinstance(values, list) and len(values) == 1 and not isinstance(values[0], list)
    }


def as_texts(values: Any) -> Any:
    """Return nested lists with bytes as texts."""
    if isinstance(values, list):
        return [as_texts(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values
