"""The rule `forbidden` of a search: sequences of tokens that an output must not have.

It is int32 (B, N, M): N sequences of at most M tokens, with PAD before a shorter one; one of PAD alone forbids nothing.
"""

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.state import BeamState


def is_any_forbidden(state: BeamState):
    """Return whether any sentence of the batch forbids a sequence: bool ()."""
    return ops.any(state.rules["forbidden"] != PAD)


def allowed_by_forbidden(state: BeamState, is_allowed):
    """Return which tokens may come if, without the rule, these may: bool (B, K, V), the same is returned.

    The last token of a sequence may not come after all those before it.
    """
    sequences = state.rules["forbidden"]
    sentences, hypotheses, vocab_size = ops.shape(is_allowed)
    longest = ops.shape(sequences)[2]
    places = state.position - longest + 1 + ops.arange(longest - 1)  # (M - 1,): of the tokens before this one
    room = ops.shape(state.ids)[2]
    before = ops.take(state.ids, ops.clip(places, 0, ops.maximum(room - 1, 0)), axis=2)  # (B, K, M - 1)
    before = ops.expand_dims(ops.where(places >= 0, before, -1), 2)  # (B, K, 1, M - 1)
    sequences = ops.expand_dims(sequences, 1)  # (B, 1, N, M)
    is_after = ops.logical_or(sequences[..., :-1] == before, sequences[..., :-1] == PAD)
    last = sequences[..., -1]  # (B, 1, N)
    is_complete = ops.logical_and(ops.all(is_after, axis=3), last != PAD)  # (B, K, N)
    rows = ops.reshape(ops.arange(sentences * hypotheses) * vocab_size, (sentences, hypotheses, 1))
    counts = ops.segment_sum(
        ops.reshape(ops.cast(is_complete, "int32"), (-1,)),
        ops.reshape(rows + last, (-1,)),
        sentences * hypotheses * vocab_size,
    )
    return ops.logical_and(is_allowed, ops.reshape(counts, (sentences, hypotheses, vocab_size)) == 0)
