"""A translation and its score, wherever it comes from: a Translator, an export, a server."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Translation(NamedTuple):
    """One translation of one sentence.

    score: natural log-probability of the output, EOS included, over ((5 + tokens) / 6)^alpha, with the coverage penalty
    added; at most 0, higher is better. A repetition penalty changes the log-probabilities that count; with a shortlist,
    they are over its pieces. ids: the tokens of the output, EOS included; empty for an empty line, and for what an
    export or a server translated. is_cut: whether the longest output that is allowed ended it, though the model would
    have continued it; None if an export that does not tell translated it. unplaced: protected spans (text/spans.py)
    that are missing in the text; the text has the others, and `ids` are what the model wrote. confidence: how likely it
    is good, from 0 to 1, by the measure that the run's calibration.json names; None without one. is_forced: whether
    required phrases made it far less probable than the translation without them (text/required.py): then it hardly
    makes sense.
    """

    text: str
    score: float
    ids: tuple[int, ...] = ()
    is_cut: bool | None = False
    unplaced: tuple[str, ...] = ()
    confidence: float | None = None
    is_forced: bool = False


NO_SCORE = -1e8  # below every score of a translation that was found; a graph writes -1e9 in place of one
# Of an export's signature serving_default. Older ones lack the third; those of runs without a calibration the last.
OUTPUTS = ("translation", "score", "is_cut", "confidence")


def translations_of(outputs: Mapping[str, Sequence[Any]]) -> list[Translation]:
    """Return what an export or a server answered as Translations; `outputs` has one value per line, by name."""
    texts, scores = outputs["translation"], outputs["score"]
    is_cut, confidences = (outputs.get(name, [None] * len(texts)) for name in OUTPUTS[2:])
    return [
        Translation(
            text,
            0.0 if score < NO_SCORE else float(score),
            is_cut=cut,
            confidence=None if confidence is None else float(confidence),
        )
        for text, score, cut, confidence in zip(texts, scores, is_cut, confidences, strict=True)
    ]
