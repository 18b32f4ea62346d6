"""Who may attend to whom, from segment ids.

Segment 0 is padding; segments 1..n are the sentence pairs packed into one row. A plain padded batch is the case
n = 1. In every mask True means "may attend".
"""

from keras import ops


def segment_mask(query_segments, key_segments):
    """A query may attend to the keys of its own segment, unless that is padding.

    Shapes: query_segments (B, Q), key_segments (B, K), int. Returns bool (B, Q, K).
    """
    query_segments = ops.expand_dims(query_segments, 2)  # (B, Q, 1)
    key_segments = ops.expand_dims(key_segments, 1)  # (B, 1, K)
    return ops.logical_and(ops.equal(query_segments, key_segments), ops.not_equal(key_segments, 0))


def causal_mask(length: int):
    """Position q may attend to positions 0..q (section 3.2.3). Returns bool (1, length, length)."""
    positions = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0), 0)


def causal_segment_mask(segments):
    """Decoder self-attention: a position may attend to the same segment up to itself. (B, L) -> bool (B, L, L)."""
    return ops.logical_and(segment_mask(segments, segments), causal_mask(ops.shape(segments)[1]))


def positions_in_segment(segments):
    """Position of each token in its own sentence, counted from 0; padding gets 0. (B, L) -> int32 (B, L).

    The position of a token is the number of earlier tokens that it may attend to.
    """
    earlier_and_itself = ops.sum(ops.cast(causal_segment_mask(segments), "int32"), axis=-1)
    return ops.maximum(earlier_and_itself - 1, 0)


def neighbourhood_mask(segments, neighbourhood: int):
    """Restricted self-attention (section 4): a position may attend to its own segment, at most r // 2 positions away.

    `neighbourhood` is r, odd: with 3, a position attends to the one before it, to itself and to the one after it.
    Raises ValueError for an even one. Shapes: (B, L) -> bool (B, L, L).
    """
    check_neighbourhood(neighbourhood)
    positions = ops.arange(ops.shape(segments)[1])
    distance = ops.abs(ops.expand_dims(positions, 1) - ops.expand_dims(positions, 0))
    return ops.logical_and(segment_mask(segments, segments), distance <= neighbourhood // 2)


def check_neighbourhood(neighbourhood: int) -> None:
    if neighbourhood < 1 or neighbourhood % 2 == 0:
        raise ValueError(f"neighbourhood must be odd. Received: neighbourhood={neighbourhood}")


def first_in_segment(segments):
    """The positions at which a segment begins; padding has none. (B, L) -> bool (B, L)."""
    before = ops.concatenate([ops.zeros_like(segments[:, :1]), segments[:, :-1]], axis=1)
    return ops.logical_and(segments != before, segments != 0)


def last_in_segment(segments):
    """The positions at which a segment ends; padding has none. (B, L) -> bool (B, L)."""
    after = ops.concatenate([segments[:, 1:], ops.zeros_like(segments[:, :1])], axis=1)
    return ops.logical_and(segments != after, segments != 0)


def mask_of(states):
    """Return the mask that Keras carries with a tensor, as after `Embedding(mask_zero=True)`; None if there is none."""
    return getattr(states, "_keras_mask", None)


def hide_padding(segments, mask):
    """Return the segments with 0, padding, where the mask is False: int (B, L) and bool (B, L) or None -> (B, L)."""
    return segments if mask is None else ops.where(mask, segments, ops.zeros_like(segments))
