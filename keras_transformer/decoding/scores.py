"""The score of a hypothesis, and which tokens may continue it."""

from keras import ops

from keras_transformer.tokens import BOS, EOS, PAD, UNK

NEVER = -1e9  # the score of what must not be chosen: below every real score, and finite, so that sums of it stay finite


def length_penalty(length, alpha: float):
    """Return ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14): 1 if the length is 1 or alpha is 0.

    Shapes: length int, any -> float32, the same.
    """
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, alpha)


def log_normaliser(logits):
    """Return logsumexp over the vocabulary: (N, V) -> (N, 1). A token's log-probability is its logit minus this."""
    return ops.logsumexp(logits, axis=-1, keepdims=True)


def allowed_tokens(vocab_size: int, is_last):
    """Return which tokens may come next: never PAD, UNK or BOS, which no label is; at the last position only EOS.

    Shapes: is_last bool (N,) -> bool (N, vocab_size).
    """
    token = ops.expand_dims(ops.arange(vocab_size), 0)
    is_special = ops.logical_or(ops.logical_or(token == PAD, token == UNK), token == BOS)
    may_continue = ops.logical_not(ops.expand_dims(is_last, 1))
    return ops.logical_or(token == EOS, ops.logical_and(may_continue, ops.logical_not(is_special)))
