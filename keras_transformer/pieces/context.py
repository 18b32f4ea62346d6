"""Sentences with those before them in their document, as one text: what a model of documents reads, and writes.

Tiedemann and Scherrer (2017) put a sentence behind the one before it, with a token between the two, and train an
ordinary model on such texts: with the earlier sentences on the source side alone, or on both sides.
"""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError

SOURCE, BOTH = "source", "both"  # sides that have the sentences before
SIGN = "\u241e"  # of a record separator: hardly any text has it, and no change of training text changes it
SEPARATOR = f" {SIGN}"  # a piece of the tokenizer


class Context(NamedTuple):
    """What a model knows of documents: how many `sentences` before one it reads, at most, and on which sides.

    sides: "source": it writes the last sentence alone; "both": it writes all of them. separator: the piece that ends
    each sentence but the last. No sentence has its sign: `plain` takes it away.
    """

    sentences: int = 0
    sides: str = SOURCE
    separator: str = SEPARATOR

    @classmethod
    def of(cls, values: Any) -> "Context":
        """Return the Context that a JSON object describes. Raises ConfigError if it does not."""
        if not isinstance(values, Mapping) or not values.keys() <= set(cls._fields):
            raise ConfigError(f"context is {values!r:.60}; it may have {', '.join(cls._fields)}.")
        context = cls(**values)
        count = context.sentences
        if not isinstance(count, numbers.Integral) or isinstance(count, bool) or count < 0:
            raise ConfigError(f"context.sentences is {count!r:.60}; it must be a whole number of at least 0.")
        if context.sides not in (SOURCE, BOTH):
            raise ConfigError(f"context.sides is {context.sides!r:.60}; it must be {SOURCE!r} or {BOTH!r}.")
        if not isinstance(context.separator, str) or not context.separator.strip():
            raise ConfigError(f"context.separator is {context.separator!r:.60}; it must be a piece of the tokenizer.")
        return context

    def as_json(self) -> dict[str, Any]:
        """Return what `of` reads."""
        return self._asdict()

    def plain(self, text: str) -> str:
        """Return a text of one sentence, in which a space stands for the sign of the separator."""
        return text.replace(self.separator.strip(), " ")

    def joined(self, sentences: Iterable[str]) -> str:
        """Return sentences of a document as one text."""
        return f"{self.separator} ".join(map(self.plain, sentences))

    def without_first(self, text: str) -> str:
        """Return sentences that are one text without the first one; a single sentence stays."""
        first, separator, others = text.partition(f"{self.separator} ")
        return others if separator else first

    def last(self, text: str, count: int) -> str | None:
        """Return the last one of `count` sentences that are one text; None if they are not so many."""
        sentences = text.split(self.separator.strip())
        return sentences[-1].strip() if len(sentences) == count else None


NO_CONTEXT = Context()
