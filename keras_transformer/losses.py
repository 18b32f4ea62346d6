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

    Its gradient with respect to z is softmax(z) - q, written out: one pass over the logits, which are all that the
    backward pass keeps. Shapes: logits (B, T, V), labels int (B, T), segments int (B, T).
    """
    labels = ops.convert_to_tensor(labels)
    is_real = ops.cast(ops.not_equal(segments, 0), "float32")  # (B, T)

    @ops.custom_gradient
    def sums(logits):
        logits_dtype, logits = logits.dtype, ops.cast(logits, "float32")
        label_logit = ops.squeeze(ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), -1)  # (B, T)
        highest = ops.max(logits, axis=-1)
        log_total = highest + ops.log(ops.sum(ops.exp(logits - ops.expand_dims(highest, -1)), axis=-1))
        nll = log_total - label_logit
        loss = log_total - (1.0 - smoothing) * label_logit - smoothing * ops.mean(logits, axis=-1)
        hits = ops.cast(label_logit >= highest, "float32")

        def gradient(*upstream):
            for_loss, for_nll, _ = upstream[-1] if isinstance(upstream[-1], (tuple, list)) else upstream[-3:]
            of_softmax = (for_loss + for_nll) * is_real
            of_label = ((1.0 - smoothing) * for_loss + for_nll) * is_real
            of_any = smoothing / logits.shape[-1] * for_loss * is_real
            probabilities = ops.exp(logits - ops.expand_dims(log_total, -1))
            is_label = ops.equal(ops.expand_dims(labels, -1), ops.arange(logits.shape[-1], dtype=labels.dtype))
            pulled = ops.expand_dims(of_any, -1) + ops.where(is_label, ops.expand_dims(of_label, -1), 0.0)
            return ops.cast(ops.expand_dims(of_softmax, -1) * probabilities - pulled, logits_dtype)

        return tuple(ops.sum(values * is_real) for values in (loss, nll, hits)), gradient

    loss, nll, correct = sums(ops.convert_to_tensor(logits))
    return TokenSums(loss=loss, nll=nll, correct=correct, tokens=ops.sum(is_real))


def perplexity(nll):
    """exp(nll), nll in nats a token; kept finite where a diverged model would overflow a float."""
    return math.exp(min(nll, 700.0))
