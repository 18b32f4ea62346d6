"""An encoder block with another sublayer in place of self-attention: the rows of Table 1 as encoders."""

import keras

from keras_transformer.layers.blocks import Block


@keras.saving.register_keras_serializable("keras_transformer")
class SublayerBlock(Block):
    """Any sublayer that mixes positions, then the feed-forward network, each with its residual and LayerNorm.

        SublayerBlock(SegmentConvolution(kernel_size=3), d_ff=2048)(states, segments)

    Args:
        sublayer: a layer from states (B, L, d_model) and segments int (B, L) to states of the same shape, to a list of
            them alone, or to such states and attention weights (B, h, L, L). Its `build` and `compute_output_shape`
            take both shapes.
        d_ff, activation, dropout, norm, norm_kind, norm_epsilon: see EncoderBlock, also for what it raises.

    Shapes: states (B, L, d_model), segments int (B, L). Returns what the sublayer returns: states (B, L, d_model), or
    states and attention weights.
    """

    def __init__(self, sublayer: keras.layers.Layer | dict, d_ff: int, **kwargs):
        super().__init__(d_ff=d_ff, **kwargs)
        self.sublayer = keras.saving.deserialize_keras_object(sublayer) if isinstance(sublayer, dict) else sublayer
        if not self.trainable:
            self.sublayer.trainable = False
        self.sublayer_residual = self._residual("sublayer_residual")

    def build(self, states_shape: tuple, segments_shape: tuple | None = None):
        if not self.sublayer.built:  # from a file it comes built
            self.sublayer.build(states_shape, segments_shape)
        self.feed_forward.build(states_shape)
        self.sublayer_residual.build(states_shape)
        self.feed_forward_residual.build(states_shape)

    def call(self, states, segments):
        outputs = self.sublayer(self.sublayer_residual.sublayer_input(states), segments)
        output, *weights = keras.tree.flatten(outputs)
        states = self.feed(self.sublayer_residual.add_and_norm(states, output))
        return (states, *weights) if weights else states

    def compute_output_shape(self, states_shape: tuple, segments_shape: tuple | None = None) -> tuple:
        shapes = self.sublayer.compute_output_shape(states_shape, segments_shape)
        return shapes[0] if isinstance(shapes, list) else shapes

    def get_config(self) -> dict:
        return {**super().get_config(), "sublayer": keras.saving.serialize_keras_object(self.sublayer)}
