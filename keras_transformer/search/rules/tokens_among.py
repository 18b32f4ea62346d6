"""Which tokens of the vocabulary are among some."""

from keras import ops


def tokens_among(tokens, is_chosen, vocab_size):
    """Return which tokens of the vocabulary are among the chosen ones of each hypothesis.

    Shapes, with any number N of tokens, broadcast against each other: tokens int (B, K, N), is_chosen bool (B, K, N)
    -> bool (B, K, V).
    """
    sentences, hypotheses = ops.shape(is_chosen)[:2]
    rows = ops.reshape(ops.arange(sentences * hypotheses) * vocab_size, (sentences, hypotheses, 1))
    counts = ops.segment_sum(
        ops.reshape(ops.cast(is_chosen, "int32"), (-1,)),
        ops.reshape(rows + tokens, (-1,)),
        sentences * hypotheses * vocab_size,
    )
    return ops.reshape(counts, (sentences, hypotheses, vocab_size)) > 0
