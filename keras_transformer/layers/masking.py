"""The functions of masks.py as layers without weights, because a functional graph is made of layers."""

import keras

from keras_transformer import masks
from keras_transformer.layers.plain import PlainLayer


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentMask(PlainLayer):
    """masks.segment_mask: (B, Q), (B, K) -> bool (B, Q, K)."""

    def call(self, query_segments, key_segments):
        return masks.segment_mask(query_segments, key_segments)


@keras.saving.register_keras_serializable("keras_transformer")
class CausalSegmentMask(PlainLayer):
    """masks.causal_segment_mask: (B, L) -> bool (B, L, L)."""

    def call(self, segments):
        return masks.causal_segment_mask(segments)


@keras.saving.register_keras_serializable("keras_transformer")
class PositionsInSegment(PlainLayer):
    """masks.positions_in_segment: (B, L) -> int32 (B, L)."""

    def call(self, segments):
        return masks.positions_in_segment(segments)
