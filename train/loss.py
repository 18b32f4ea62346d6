"""Label-smoothed cross-entropy as sums over real tokens (Vaswani et al. 2017, section 5.4; Szegedy et al. 2015)."""

import math
from typing import Any, NamedTuple

from keras import ops


class TokenSums(NamedTuple):
    """What a batch, a replica or a micro-batch adds: float32 scalars. Means are taken once, at the very end."""

    loss: Any  # label-smoothed cross-entropy, nats
    nll: Any  # negative log-likelihood of the labels, nats: exp(nll / tokens) is the perplexity
    correct: Any  # labels that have the highest logit
    tokens: Any  # real target tokens, end of sentence included


def token_sums(logits, labels, segments, smoothing=0.1):
    """Sum loss, likelihood and hits over the tokens whose segment is not 0.

        q = (1 - smoothing) onehot(label) + smoothing / V
        loss = -sum_v q_v log p_v = logsumexp(z) - (1 - smoothing) z_label - smoothing mean(z)

    Every term is a reduction of z over the vocabulary, so that a compiler can make one pass of all of them.
    Shapes: logits (B, T, V), labels int (B, T), segments int (B, T).
    """
    logits = ops.cast(logits, "float32")
    is_label = ops.equal(ops.expand_dims(labels, -1), ops.arange(logits.shape[-1], dtype=labels.dtype))
    label_logit = ops.sum(ops.where(is_label, logits, 0.0), axis=-1)  # (B, T); a gather's gradient would be a scatter
    highest = ops.max(logits, axis=-1)
    log_total = logsumexp(logits, highest)
    loss = log_total - (1.0 - smoothing) * label_logit - smoothing * ops.mean(logits, axis=-1)
    is_real = ops.cast(ops.not_equal(segments, 0), "float32")
    return TokenSums(
        loss=ops.sum(loss * is_real),
        nll=ops.sum((log_total - label_logit) * is_real),
        correct=ops.sum(ops.cast(label_logit >= highest, "float32") * is_real),
        tokens=ops.sum(is_real),
    )


def perplexity(nll):
    """exp(nll), nll in nats a token; kept finite where a diverged model would overflow a float."""
    return math.exp(min(nll, 700.0))


def logsumexp(logits, highest):
    """log(sum_v exp(z_v)) given the highest z: (B, T, V), (B, T) -> (B, T)"""
    shift = ops.stop_gradient(highest)
    return shift + ops.log(ops.sum(ops.exp(logits - ops.expand_dims(shift, -1)), axis=-1))
