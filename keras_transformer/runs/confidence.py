"""How likely a translation is good, from its score: a curve that `keras-transformer calibrate` fits to a run.

A score says which of two translations a model prefers. A confidence of 0.9 says that nine of ten such translations are
good, by a stated measure, on text like that of the fit. Importing this module imports neither TensorFlow nor Keras.
"""

import functools
import json
import logging
import math
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import sha256_of, write_atomically
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import GNMT, SearchOptions

MOST_GROUPS = 20  # of sentences of similar scores, whose share of good ones is a point of the curve
FEWEST_IN_GROUP = 25  # sentences
BINS = 10  # of confidences
OF_NOTHING = 1.0  # the confidence of the empty translation of a blank line

log = logging.getLogger("keras_transformer")


class Calibration(NamedTuple):
    """A rising curve from the score per token to a confidence: straight between its points, level beyond them.

    points: scores per token, rising. confidences: of the points, never falling, between 0 and 1. measure: what a good
    translation is: "sentence chrF of at least 60". sentences: on how many it was fitted. weights: the SHA-256 of the
    weights that it is of; "" if that was not recorded.
    """

    points: tuple[float, ...]
    confidences: tuple[float, ...]
    measure: str
    sentences: int
    weights: str = ""

    def confidence(self, score: float, tokens: int, options: SearchOptions) -> float:
        """The confidence of a translation with this score and so many tokens, EOS included, found with `options`."""
        if not tokens:
            return OF_NOTHING
        return float(np.interp(score_per_token(score, tokens, options), self.points, self.confidences))

    def check(self) -> None:
        """Raises ValueError if it is no rising curve of confidences."""
        points, confidences = np.array(self.points, float), np.array(self.confidences, float)
        if points.ndim != 1 or points.shape != confidences.shape or not len(points):
            raise ValueError("points and confidences are not two lists of the same length")
        if not np.isfinite(points).all() or (np.diff(points) <= 0).any():
            raise ValueError("its points do not rise")
        if not ((0 <= confidences) & (confidences <= 1)).all() or (np.diff(confidences) < 0).any():
            raise ValueError("its confidences fall, or are not between 0 and 1")

    def save(self, path: str | os.PathLike) -> None:
        """Write calibration.json."""
        write_atomically(path, json.dumps(self._asdict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Calibration":
        """Read what `save` wrote. Raises InputError, naming the file, if it cannot be read or is damaged."""
        try:
            values = json_of(pathlib.Path(path).read_text(encoding="utf-8"))
            points, confidences = (tuple(map(float, values.pop(name))) for name in ("points", "confidences"))
            calibration = cls(points, confidences, **values)
            calibration.check()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InputError(f"{path} is damaged: {error}. Remove it, or run `keras-transformer calibrate`.") from None
        return calibration


def score_per_token(score: float, tokens: int, options: SearchOptions) -> float:
    """The log-probability of a translation over its tokens, EOS included: its score without its length penalty.

    Unlike the score, it means the same for short and for long sentences.
    """
    length = tokens if options.length_normalization != GNMT else (5 + tokens) / 6
    return score * length**options.length_penalty / tokens


def fitted(scores: Sequence[float], is_good: Sequence[bool], measure: str, weights: str = "") -> Calibration:
    """The Calibration of translations with these scores per token, of which those that are true in `is_good` are good.

    Isotonic regression (Ayer et al. 1955) over groups of neighbouring scores, so that no share rests on few sentences.
    A group of n sentences with k good ones counts as (k + 1) / (n + 2), Laplace's rule of succession: no confidence is
    0 or 1. Raises ValueError without sentences.
    """
    order = np.argsort(scores, kind="stable")
    if not len(order):
        raise ValueError("A calibration needs at least one sentence.")
    groups = np.array_split(order, max(1, min(MOST_GROUPS, len(order) // FEWEST_IN_GROUP)))
    points = [float(np.mean(np.asarray(scores, float)[group])) for group in groups]
    shares = [float((np.sum(np.asarray(is_good)[group]) + 1) / (len(group) + 2)) for group in groups]
    rising = isotonic(shares, [len(group) for group in groups])
    curve = dict(zip(points, rising, strict=True))  # of groups of equal scores, the last
    return Calibration(tuple(curve), tuple(curve.values()), measure, len(order), weights)


def isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The never falling numbers that are closest to `values`, by the weighted sum of squares.

    Neighbours that fall are pooled into their weighted mean until none does (Ayer et al. 1955).
    """
    pools: list[list[float]] = []  # mean, weight, numbers
    for value, weight in zip(values, weights, strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, weight, count = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * weight) / (last[1] + weight)
            last[1] += weight
            last[2] += count
    return [mean for mean, _, count in pools for _ in range(int(count))]


def confidence_by(calibration: Calibration | None, options: SearchOptions) -> Callable[[float, int], float | None]:
    """A function from a score and its number of tokens, found with `options`, to a confidence; to None without one."""
    if calibration is None:
        return lambda score, tokens: None
    return functools.partial(calibration.confidence, options=options)


class Bin(NamedTuple):
    """Translations whose confidences lie between two bounds."""

    low: float
    high: float
    sentences: int
    confidence: float  # their mean; NaN without sentences
    good: float  # the share of them that is good; NaN without sentences

    def as_json(self) -> dict[str, Any]:
        """What a program reads: null for NaN."""
        return {name: None if value != value else value for name, value in self._asdict().items()}


def reliability(confidences: Sequence[float], is_good: Sequence[bool]) -> list[Bin]:
    """Compare confidences with shares of good translations, in BINS of equal width."""
    of_each = np.asarray(confidences, float), np.asarray(is_good, bool)
    number_of = np.minimum((of_each[0] * BINS).astype(int), BINS - 1)
    rows = []
    for number in range(BINS):
        inside = number_of == number
        confidence, good = (float(values[inside].mean()) if inside.any() else math.nan for values in of_each)
        rows.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), confidence, good))
    return rows


def expected_calibration_error(rows: Sequence[Bin]) -> float:
    """The mean difference between confidence and share of good ones over the bins, by their sentences.

    Naeini et al. 2015; 0 is best.
    """
    total = sum(row.sentences for row in rows)
    return sum(row.sentences * abs(row.confidence - row.good) for row in rows if row.sentences) / total


def calibration_of(folder: RunFolder) -> Calibration | None:
    """The Calibration of a run; None if it has none, or one of other weights, which is logged.

    Raises InputError if it is damaged.
    """
    if not folder.calibration.exists():
        return None
    calibration = Calibration.load(folder.calibration)
    if calibration.weights and calibration.weights != sha256_of(folder.weights):
        log.warning(
            "%s is of other weights than %s: there is no confidence; run `keras-transformer calibrate` again",
            folder.calibration,
            folder.weights.name,
        )
        return None
    return calibration
