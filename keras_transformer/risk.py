"""Minimum risk training: the expected cost of what a model may write (Shen et al. 2016, eq. 9 to 12).

Cross-entropy asks how probable the reference is. This asks what the model's own translations cost, by any measure of a
whole sentence such as 1 - BLEU, and moves probability from those that cost more to those that cost less.
"""

from keras import ops

from keras_transformer.losses import TokenSums, token_losses


def expected_costs(log_probs, costs, is_candidate, sharpness):
    """The expected cost of each sentence, over its candidates.

        Q_k = P_k^sharpness / sum_j P_j^sharpness        cost = sum_k Q_k cost_k

    (Shen et al. 2016, eq. 11 and 12). The sums go over the candidates alone; without any the cost is 0. A sharpness of
    0 would take all for equally probable; the larger it is, the more the most probable one decides.

    Shapes: log_probs float (B, K, M), the natural logarithms of P, costs float (B, K, M) and is_candidate bool
    (B, K, M), of K candidates of M sentences -> float32 (B, M).
    """
    scores = ops.where(is_candidate, sharpness * ops.cast(log_probs, "float32"), -1e9)
    shares = ops.softmax(scores, axis=1)
    return ops.sum(ops.where(is_candidate, shares * ops.cast(costs, "float32"), 0.0), axis=1)


def risk_sums(logits, labels, segments, costs, candidates, sharpness):
    """Sum the expected costs of all sentences, each as often as its reference has tokens: long ones count more.

    Rows come in blocks of 1 + `candidates`. The first row of a block holds references, as segments, and each other row
    a candidate of each of them, as segments of the same numbers. `costs` says what the candidate costs to which a
    position belongs, at least 0. A negative cost says that it is none: a sentence may have fewer than others.

    Shapes: logits (B, T, V), labels and segments int (B, T), costs float (B, T) -> TokenSums of scalars. `loss` is the
    sum of the expected costs; negative log-likelihood, hits and tokens are those of the references.
    """
    _, nll, hits = token_losses(logits, labels, smoothing=0.0)  # (B, T)
    length = labels.shape[1]
    of_segment = ops.one_hot(segments, length + 1)[..., 1:]  # (B, T, M): a sentence has at least one token
    blocks = (-1, 1 + candidates, length)

    def by_segment(values):
        """(B, T) -> the sums over each segment, (B / (1 + candidates), 1 + candidates, M)."""
        return ops.reshape(ops.einsum("bt,btm->bm", values, of_segment), blocks)

    tokens = by_segment(ops.ones_like(nll))
    cost = by_segment(ops.cast(costs, "float32")) / ops.maximum(tokens, 1.0)
    is_candidate = ops.logical_and(tokens > 0, cost >= 0)[:, 1:]
    expected = expected_costs(by_segment(-nll)[:, 1:], cost[:, 1:], is_candidate, sharpness)
    return TokenSums(
        loss=ops.sum(tokens[:, 0] * expected),
        nll=ops.sum(by_segment(nll)[:, 0]),
        correct=ops.sum(by_segment(hits)[:, 0]),
        tokens=ops.sum(tokens[:, 0]),
    )
