"""Whether two translators agree: line by line the same, a tie that rounding decided, or a disagreement."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from keras_transformer.pieces.translation import Translation

from ..versions import ExportError

# Scores closer than this are equal, and of scores below -1 those closer than this share of the score: rounding decides
# between their texts. In bfloat16 a logit has 8 bits, and batches of other sizes round differently.
TIES = {"float32": 1e-4, "bfloat16": 0.1}


class Disagreement(NamedTuple):
    """A line that the export and the Translator translate differently, numbered from 1."""

    number: int
    line: str
    exported: Translation
    expected: Translation

    def __str__(self):
        return (
            f"line {self.number}, {shortened(self.line)}: "
            f"{shortened(self.exported.text)} with score {self.exported.score:.6f} from the export, "
            f"{shortened(self.expected.text)} with score {self.expected.score:.6f} from the Translator"
        )


class Agreement(NamedTuple):
    """On how many lines two translators agree.

    same: equal text and score. ties: equal score, another text. disagreements: another score.
    """

    same: int
    ties: int
    disagreements: list[Disagreement]


def agreement(
    exported: list[Translation], expected: list[Translation], lines: list[str], tie: float = TIES["float32"]
) -> Agreement:
    """Compare two translations of each of `lines`.

    Scores s and t are equal if |s - t| < tie max(1, |t|): a sum of large parts, as with a large coverage penalty, is
    rounded in proportion.
    """
    same, ties, disagreements = 0, 0, []
    for number, (line, ours, theirs) in enumerate(zip(lines, exported, expected, strict=True), start=1):
        if not abs(ours.score - theirs.score) < tie * unit_of(theirs.score):  # written so that NaN is a disagreement
            disagreements.append(Disagreement(number, line, ours, theirs))
        elif ours.text == theirs.text:
            same += 1
        else:
            ties += 1
    return Agreement(same, ties, disagreements)


def unit_of(score: float) -> float:
    """Return what differences between a score and others are measured in: the score's size, at least 1.

    A score is a sum of differences of logits, and float32 rounds each in proportion to its size: that grows with the
    weights, and so does the score of what such a model thinks unlikely.
    """
    return max(1.0, abs(score))


def plural(count: int, noun: str) -> str:
    """Return the noun for so many things."""
    return noun if count == 1 else noun + "s"


def shortened(text: str, limit: int = 60) -> str:
    """Return `text` in quotes, with dots in place of what exceeds `limit` characters."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


class ScoreComparison(NamedTuple):
    """By how much the scores of the same translations differ between the Translator and an exported model.

    worst, worst_line, expected: the difference that is largest in proportion, its line, and the Translator's score.
    """

    lines: int
    worst: float
    worst_line: str
    expected: float

    @classmethod
    def of(cls, lines: list[str], scores: Iterable[float], expected: Iterable[float]) -> "ScoreComparison":
        """Compare two scores of each line. A score that is NaN differs more than any other."""
        compared = [(abs(score - other), other) for score, other in zip(scores, expected, strict=True)]
        shares = [difference / unit_of(other) for difference, other in compared]
        worst = max(range(len(lines)), key=lambda index: (math.isnan(shares[index]), shares[index]))
        difference, of_translator = compared[worst]
        return cls(len(lines), difference, lines[worst], of_translator)

    def __str__(self):
        return (
            f"compared {self.lines} {plural(self.lines, 'line')}: "
            f"the scores of their translations differ by at most {self.worst:.6f}, of {self.expected:.2f}"
        )

    @property
    def share(self) -> float:
        """The difference in units of the score, see `unit_of`."""
        return self.worst / unit_of(self.expected)

    def refuse_beyond(self, tie: float = TIES["float32"]) -> None:
        """Raise ExportError if a score differs by `tie` or more, or by this share of a score below -1."""
        if not self.share < tie:
            raise ExportError(
                f"The exported model does not score translations as the run does: by {self.worst:.6f} of "
                f"{self.expected:.2f} in {shortened(self.worst_line)}. Nothing was published."
            )
