"""The score of a hypothesis."""

from keras import ops

from keras_transformer.ground.errors import UserError
from keras_transformer.layers.gather import at_columns
from keras_transformer.search.options import GNMT, TOKENS

LEAST_COVERED = 1e-4  # attention to a source token counts as at least this, so that its logarithm is finite
UNFINISHED = -2e9  # the scores of a sentence whose search has stopped before its end
NEVER = -1e9  # the score of what must not be chosen: below every real score, and finite, so that sums stay finite

NAN_PROBABILITIES = (
    "has no translation: the model's probabilities are NaN, which happens when weights have grown too large."
)


class NotFiniteError(UserError):
    """What a model computes is NaN or infinite: its weights have grown too large, or are NaN themselves."""


def length_penalty(length, alpha: float, normalization: str = GNMT):
    """Return what divides log P in a score: 1 if the length is 1 or alpha is 0, and never less for a longer output.

        "gnmt": ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14)        "tokens": length^alpha

    The length counts EOS, in Marian too. Shapes: length int, any -> float32, the same.
    """
    length = ops.cast(length, "float32")
    return ops.power(length if normalization == TOKENS else (5.0 + length) / 6.0, alpha)


def log_coverage(attended, is_source):
    """Return sum_i log(min(attended_i, 1)): 0 if every token of the source was attended to in full, else less.

    Times beta, it is the coverage penalty of Wu et al. 2016, eq. 14. `attended` is the sum of the attention weights
    that a source token got from all tokens of an output, EOS included, in the mean of the heads of the last decoder
    block. A sum below LEAST_COVERED counts as LEAST_COVERED.

    Shapes: attended (..., S), is_source bool, broadcast to it -> (...).
    """
    covered = ops.clip(attended, LEAST_COVERED, 1.0)
    return ops.sum(ops.where(is_source, ops.log(covered), 0.0), axis=-1)


def log_normaliser(logits, highest, highest_token):
    """Return log(sum(exp(logits))): a token's log-probability is its logit minus this.

    It is the highest logit minus the logarithm of its probability. That takes one softmax, not a difference, an
    exponential and a sum that each read all logits from memory.

    Shapes: logits (N, V), highest (N, 1), highest_token int32 (N,) -> (N, 1).
    """
    probabilities = ops.softmax(logits, axis=-1)
    return highest - ops.log(at_columns(probabilities, ops.expand_dims(highest_token, 1)))
