"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

import operator

import keras
from keras import ops

from keras_transformer.layers.composite import CompositeLayer


def swish(states):
    """x sigmoid(x) (Ramachandran et al. 2017), without the gradient of its own that TensorFlow's has.

    With one, each loading of a SavedModel warns that this gradient was not saved.
    """
    return states * ops.sigmoid(states)


ACTIVATIONS = {"swish": swish, "silu": swish}  # in place of Keras' own; all others are Keras' of that name


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(CompositeLayer):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, the same at every position (eq. 2, with max(0, x) for activation).

    Args:
        d_ff: width of the inner layer.
        activation: a Keras activation that keeps the width, by name.

    Shapes: (..., d_model) -> (..., d_model).
    """

    def __init__(self, d_ff: int, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.d_ff = operator.index(d_ff)
        self.activation = activation
        self.supports_masking = True

    def build(self, input_shape: tuple):
        activation = ACTIVATIONS.get(self.activation, self.activation)
        self.inner = keras.layers.Dense(self.d_ff, activation=activation, name="inner", **self.for_parts())
        self.inner.build(input_shape)
        self.outer = keras.layers.Dense(input_shape[-1], name="outer", **self.for_parts())
        self.outer.build((*input_shape[:-1], self.d_ff))

    def call(self, states):
        return self.outer(self.inner(states))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return input_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "d_ff": self.d_ff, "activation": self.activation}
