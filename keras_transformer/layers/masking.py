"""The functions of masks.py as layers without weights, because a functional graph is made of layers."""

from typing import ClassVar

import keras

from keras_transformer import masks
from keras_transformer.layers.plain import PlainLayer


class SegmentLayer(PlainLayer):
    """A layer from segments to what is not a float, whatever the dtype policy."""

    output_dtype: ClassVar[str] = "bool"

    def compute_output_spec(self, *args, **kwargs) -> keras.KerasTensor:
        return keras.KerasTensor(super().compute_output_spec(*args, **kwargs).shape, self.output_dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentMask(SegmentLayer):
    """masks.segment_mask: (B, Q), (B, K) -> bool (B, Q, K)."""

    def call(self, query_segments, key_segments):
        return masks.segment_mask(query_segments, key_segments)

    def compute_output_shape(self, query_segments_shape: tuple, key_segments_shape: tuple) -> tuple:
        return (*query_segments_shape, key_segments_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class CausalSegmentMask(SegmentLayer):
    """masks.causal_segment_mask: (B, L) -> bool (B, L, L)."""

    def call(self, segments):
        return masks.causal_segment_mask(segments)

    def compute_output_shape(self, segments_shape: tuple) -> tuple:
        return (*segments_shape, segments_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class PositionsInSegment(SegmentLayer):
    """masks.positions_in_segment: (B, L) -> int32 (B, L)."""

    output_dtype = "int32"

    def call(self, segments):
        return masks.positions_in_segment(segments)

    def compute_output_shape(self, segments_shape: tuple) -> tuple:
        return segments_shape
