"""What an export answers for a line of text, from a SavedModel or from a server."""

from typing import NamedTuple


class Translation(NamedTuple):
    """score: natural log-probability of the output over the length penalty; at most 0, higher is better."""

    text: str
    score: float
