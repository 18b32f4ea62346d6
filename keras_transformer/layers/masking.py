"""The functions of masks.py as layers without weights, because a functional graph is made of layers."""

import keras

from keras_transformer import masks


class MaskingLayer(keras.layers.Layer):
    """A layer without arguments of its own."""

    def get_config(self) -> dict:
        return super().get_config()  # overridden, since what Keras itself makes of a constructor has no dtype policy


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentMask(MaskingLayer):
    """masks.segment_mask: (B, Q), (B, K) -> bool (B, Q, K)."""

    def call(self, query_segments, key_segments):
        return masks.segment_mask(query_segments, key_segments)


@keras.saving.register_keras_serializable("keras_transformer")
class CausalSegmentMask(MaskingLayer):
    """masks.causal_segment_mask: (B, L) -> bool (B, L, L)."""

    def call(self, segments):
        return masks.causal_segment_mask(segments)


@keras.saving.register_keras_serializable("keras_transformer")
class PositionsInSegment(MaskingLayer):
    """masks.positions_in_segment: (B, L) -> int32 (B, L)."""

    def call(self, segments):
        return masks.positions_in_segment(segments)
