"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

import keras


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(keras.layers.Layer):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, the same at every position (eq. 2, with max(0, x) for activation).

    Args:
        d_ff: width of the inner layer.
        activation: a Keras activation that keeps the width, by name.

    Shapes: (..., d_model) -> (..., d_model).
    """

    def __init__(self, d_ff: int, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.activation = activation
        self.supports_masking = True

    def build(self, input_shape: tuple):
        self.inner = keras.layers.Dense(self.d_ff, activation=self.activation, dtype=self.dtype_policy, name="inner")
        self.inner.build(input_shape)
        self.outer = keras.layers.Dense(input_shape[-1], dtype=self.dtype_policy, name="outer")
        self.outer.build((*input_shape[:-1], self.d_ff))

    def call(self, states):
        return self.outer(self.inner(states))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return input_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "d_ff": self.d_ff, "activation": self.activation}
