"""Confidences in the graph: what `keras_transformer.runs.confidence` computes in Python."""

import tensorflow as tf

from keras_transformer.ground.tokens import PAD
from keras_transformer.runs.confidence import OF_NOTHING, Calibration
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.search.scores import length_penalty as length_penalty_of
from keras_transformer.search.state import Hypotheses


class Confidences:
    """The outputs of a signature that have confidences, each as a dict by name; without a calibration they are empty.

    of_blank_line, of_nothing: what the signatures serving_default and translate return if nothing was searched for.
    """

    def __init__(self, calibration: Calibration | None, options: SearchOptions):
        self._calibration, self._options = calibration, options
        self.of_blank_line = {"confidence": OF_NOTHING} if calibration else {}
        self.of_nothing = {"confidences": tf.constant(0.0)} if calibration else {}

    def of_best(self, hypotheses: Hypotheses) -> dict:
        """Return "confidence" (R,) of the best of K hypotheses, found with the default length penalty."""
        if self._calibration is None:
            return {}
        best_ids, best_scores = hypotheses.ids[:, :1], hypotheses.scores[:, :1]
        return {"confidence": self._computed(best_scores, best_ids, self._options.length_penalty)[:, 0]}

    def of_all(self, scores, ids, alpha) -> dict:
        """Return "confidences" (R, K), 0 for what does not exist: scores (R, K), ids (R, K, L), alpha (R,)."""
        if self._calibration is None:
            return {}
        exists = (scores > NEVER / 2) & tf.reduce_any(ids != PAD, axis=-1)
        return {"confidences": tf.where(exists, self._computed(scores, ids, alpha[:, tf.newaxis]), 0.0)}

    def _computed(self, scores, ids, alpha):
        count = tf.maximum(tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=-1), 1)
        penalty = length_penalty_of(count, alpha, self._options.length_normalization)
        per_token = scores * penalty / tf.cast(count, tf.float32)
        return interpolated(per_token, self._calibration.points, self._calibration.confidences)


def interpolated(x, points: tuple[float, ...], values: tuple[float, ...]):
    """Return the height at `x` of the lines that join `points`, which rise; level beyond them, as numpy.interp.

    Shapes: x float32 (...) -> float32 (...).
    """
    points, values = tf.constant(points, tf.float32), tf.constant(values, tf.float32)
    right = tf.reshape(tf.searchsorted(points, tf.reshape(x, [-1])), tf.shape(x))  # the first point that is not less
    left, right = tf.maximum(right - 1, 0), tf.minimum(right, tf.size(points) - 1)
    low, high = tf.gather(points, left), tf.gather(points, right)
    share = tf.clip_by_value(tf.math.divide_no_nan(x - low, high - low), 0.0, 1.0)
    return tf.gather(values, left) + share * (tf.gather(values, right) - tf.gather(values, left))
