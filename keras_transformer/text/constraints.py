"""What lines ask of their search: how outputs begin, what they must have, and what not; as arrays of its rules."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.language_marks import MarkReader, Marks
from keras_transformer.pieces.prefixes import NO_PREFIX, Prefix, PrefixReader, rules_of_prefixes
from keras_transformer.pieces.sources import encoded_lines
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import Ask
from keras_transformer.text.forbidden import Sequences, rule_of_forbidden, search_without
from keras_transformer.text.required import PhraseReader, Phrases, rule_of_required


class Constraints(NamedTuple):
    """What a line asks of its search, in tokens. opening: the piece of its language (search/rules/opening.py).

    limit: of its output, EOS included; 0 for that of the search.
    """

    prefix: Prefix = NO_PREFIX
    forbidden: Sequences = ()
    phrases: Phrases = ()
    opening: tuple[int, ...] = ()
    limit: int = 0

    @property
    def is_free(self) -> bool:
        """Whether the line asks for nothing but a limit, and the opening that its language has."""
        return self._replace(opening=(), limit=0) == NO_CONSTRAINTS


NO_CONSTRAINTS = Constraints()


class LineReader:
    """Turns lines, and what they ask, into tokens.

    longest_source: tokens of a line, EOS included, at most. longest_prefix, longest_output: a prefix, and the phrases
    of a line, have fewer tokens than this.
    """

    def __init__(
        self, tokenizer: Tokenizer, marks: MarkReader, longest_source: int, longest_prefix: int, longest_output: int
    ):
        self._tokenizer, self._marks, self._longest_source = tokenizer, marks, longest_source
        self._longest_prefix, self._longest_output = longest_prefix, longest_output
        self.phrases = PhraseReader(tokenizer)

    @functools.cached_property
    def _prefixes(self) -> PrefixReader:
        return PrefixReader(self._tokenizer)

    def prefix(self, text: str) -> Prefix:
        """Raises InputError if no translation can begin with a text."""
        return self._prefixes.read(text, self._longest_prefix) if text else NO_PREFIX

    def marks(self, asks: Sequence[Ask]) -> list[Marks]:
        """Return the marks of the languages of each line."""
        return [self._marks.marks(ask.source_language, ask.target_language) for ask in asks]

    def read(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> tuple[list[list[int]], list[Constraints]]:
        """Return lines as `encoded_lines` does, and what they ask.

        What is forbidden is not among it: a search finds out what that is (text/forbidden.py). Raises InputError if no
        translation can begin so, or have the phrases, and as `encoded_lines` does.
        """
        prefixes = {text: self.prefix(text) for text in dict.fromkeys(ask.prefix for ask in asks)}
        phrases: dict[tuple[str, ...], Phrases] = {(): ()}
        for number, ask in enumerate(asks, first_line):
            if ask.required not in phrases:
                try:
                    phrases[ask.required] = self.phrases.read(ask.required, self._longest_output)
                except InputError as error:
                    raise InputError(f"Line {number}: {error}") from None
        marks = self.marks(asks)
        constraints = [
            Constraints(prefixes[ask.prefix], (), phrases[ask.required], of_line.opening, ask.limit)
            for ask, of_line in zip(asks, marks, strict=True)
        ]
        longest, tags = self._longest_source, self._marks.tags
        return list(encoded_lines(self._tokenizer, lines, longest, first_line, marks=marks, tags=tags)), constraints


def search_under(
    constraints: Sequence[Constraints],
    asks: Sequence[Ask],
    sources: Sequence[list[int]],
    search: Callable[[list[list[int]], list[Constraints]], list[list[Translation]]],
    decode: Callable[[Sequence[int]], str],
) -> list[list[Translation]]:
    """Return the translations of sources that keep to what their lines ask, what is forbidden included, best first.

    search: from sources and their constraints to translations. decode: from tokens to their text.
    """

    def search_rows(rows: list[int], without: list[Sequences]) -> list[list[Translation]]:
        asked = [constraints[row]._replace(forbidden=tokens) for row, tokens in zip(rows, without, strict=True)]
        return search([sources[row] for row in rows], asked)

    return search_without(search_rows, [ask.protection.forbidden for ask in asks], decode)


def rules_of(constraints: Sequence[Constraints]) -> dict[str, Any]:
    """Return the rules `prefixes`, `endings`, `forbidden`, `required` and `openings` of a search, one per line.

    Without an opening in the first line there are none.
    """
    arrays = rules_of_prefixes([line.prefix for line in constraints])
    arrays["forbidden"] = rule_of_forbidden([line.forbidden for line in constraints])
    arrays["required"] = rule_of_required([line.phrases for line in constraints])
    return arrays | rule_of_openings(constraints)


def rule_of_openings(constraints: Sequence[Constraints]) -> dict[str, np.ndarray]:
    """Return the rule `openings` by its name, {} if the model has none."""
    tokens = [token for line in constraints for token in line.opening]
    return {"openings": np.array(tokens, np.int32)} if tokens else {}


def rule_of_limits(constraints: Sequence[Constraints], most: int) -> dict[str, np.ndarray]:
    """Return the rule `limits` by its name, {} if no line has one; most: of a line without one."""
    if not any(line.limit for line in constraints):
        return {}
    return {"limits": np.array([min(line.limit or most, most) for line in constraints], np.int32)}
