"""A translation and its score, wherever it comes from: a Translator, an export, a server."""

from typing import NamedTuple


class Translation(NamedTuple):
    """One translation of one sentence.

    score: natural log-probability of the output, EOS included, over ((5 + tokens) / 6)^alpha, with the coverage penalty
    added; at most 0, higher is better. A repetition penalty changes the log-probabilities that count. ids: the tokens
    of the output, EOS included; empty for an empty line, and for what an export or a server translated.
    """

    text: str
    score: float
    ids: tuple[int, ...] = ()
