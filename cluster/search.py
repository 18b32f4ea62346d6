"""What an export finds for texts, by the road of a line that all engines have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_transformer.ground.errors import UserError
from keras_transformer.text.road import Ask, Candidates, Engine, refuse_beyond, translate

from .engines import Refused

Inputs = tuple[tuple[str, Any], ...]  # of the signature translate: those that shall not have the export's value
Search = Callable[[Sequence[str]], list[Candidates]]  # of texts; raises Refused


def search_of(engine: Engine, options: Mapping[str, Any], ask: Ask) -> Search:
    """Return the search of an export with these options, for lines each of which asks for this.

    Raises ConfigError for what the export is not able to do.
    """
    refuse_beyond(engine, ask.names)
    asked = engine.with_options(options)

    def search(texts: Sequence[str]) -> list[Candidates]:
        try:
            return translate(asked, texts, [ask] * len(texts), first_line=None)
        except UserError as error:  # such as a regular expression of a glossary that takes too long for a line
            raise Refused(str(error)) from None

    return search
