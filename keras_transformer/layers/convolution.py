"""Convolution over positions: the convolutional row of Table 1 (Vaswani et al. 2017, section 4)."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.masks import hide_padding


def neighbours(states, segments, offsets: Sequence[int]):
    """Return, side by side, the states at `position + offset` for each offset; zeros outside the position's segment.

        offsets (-1, 0, 1):   neighbours[i] = [states[i - 1]; states[i]; states[i + 1]]

    A position of another segment, padding, and what lies beyond the row are all outside.
    Shapes: states (B, L, d), segments int (B, L) -> (B, L, len(offsets) * d).
    """
    length, reach = ops.shape(states)[1], max(map(abs, offsets))
    padded_states = ops.pad(states, [[0, 0], [reach, reach], [0, 0]])
    padded_segments = ops.pad(segments, [[0, 0], [reach, reach]])
    columns = []
    for offset in offsets:
        first = reach + offset
        neighbour_segments = padded_segments[:, first : first + length]
        is_inside = ops.logical_and(ops.equal(neighbour_segments, segments), ops.not_equal(segments, 0))
        neighbour = padded_states[:, first : first + length]
        columns.append(ops.where(ops.expand_dims(is_inside, 2), neighbour, ops.cast(0, neighbour.dtype)))
    return ops.concatenate(columns, axis=-1)


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentConvolution(CompositeLayer):
    """Convolution whose kernel never reaches into another sentence of a packed row.

        y_i = W_1 x_{i - m s} + ... + W_k x_{i + m s} + b        m = (k - 1) / 2

    The sum is one product: the k inputs of a position, side by side, times one matrix (k * d_model, d_model). It is
    linear; in a block, the feed-forward network that follows has the non-linearity.

    Args:
        kernel_size: k, odd, so that as many inputs lie before a position as after it.
        dilation: s, the distance between inputs (Kalchbrenner et al. 2017).

    Shapes: states (B, L, d_model), segments int (B, L) -> (B, L, d_model). Where `states_mask`, bool (B, L), or a mask
    that Keras carries with `states` is False, there is padding. Raises ValueError for any other k or s.
    """

    def __init__(self, kernel_size: int, dilation: int = 1, **kwargs):
        super().__init__(**kwargs)
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd. Received: kernel_size={kernel_size}")
        if dilation < 1:
            raise ValueError(f"dilation must be at least 1. Received: dilation={dilation}")
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.supports_masking = True
        half = kernel_size // 2
        self.offsets = tuple(tap * dilation for tap in range(-half, half + 1))

    def build(self, states_shape: tuple, segments_shape: tuple | None = None):
        d_model = states_shape[-1]
        self.projection = keras.layers.Dense(d_model, name="projection", **self.for_parts())
        self.projection.build((*states_shape[:-1], self.kernel_size * d_model))

    def call(self, states, segments, states_mask=None):
        segments = hide_padding(segments, states_mask)
        return self.projection(neighbours(states, segments, self.offsets))

    def compute_output_shape(self, states_shape: tuple, segments_shape: tuple | None = None) -> tuple:
        return states_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "kernel_size": self.kernel_size, "dilation": self.dilation}
