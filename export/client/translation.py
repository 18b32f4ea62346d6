"""What an export answers for a line of text, from a SavedModel or from a server."""

from typing import NamedTuple


class Translation(NamedTuple):
    """score: of the output, as in keras_transformer.translator.Translation; at most 0, higher is better."""

    text: str
    score: float
