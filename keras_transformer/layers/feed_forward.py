"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3), and its gated kinds (Shazeer 2020)."""

import operator

import keras
from keras import ops

from keras_transformer.layers.composite import CompositeLayer


def swish(states):
    """x sigmoid(x) (Ramachandran et al. 2017), without the gradient of its own that TensorFlow's has.

    With one, each loading of a SavedModel warns that this gradient was not saved.
    """
    return states * ops.sigmoid(states)


def gelu_tanh(states):
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which T5 v1.1 has for GELU (Hendrycks and Gimpel 2016)."""
    return keras.activations.gelu(states, approximate=True)


ACTIVATIONS = {"swish": swish, "silu": swish}  # in place of Keras' own; all others are Keras' of that name
GATES = {"geglu": keras.activations.gelu, "geglu_tanh": gelu_tanh, "swiglu": swish}  # by `config.GATED_ACTIVATIONS`


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(CompositeLayer):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, the same at every position (eq. 2, with max(0, x) for activation).

    Or, with one of GATES, FFN(x) = (gate(x W) * x V) W_2, which has no biases (Shazeer 2020, eq. 6).

    Args:
        d_ff: width of the inner layer. A gated network has a third matrix of that width, so that 2/3 of the width of
            one that is not gated gives as many weights.
        activation: a Keras activation that keeps the width, by name, or one of GATES.
        use_bias: add b_1 and b_2, unless the network is gated.

    Shapes: (..., d_model) -> (..., d_model).
    """

    def __init__(self, d_ff: int, activation: str = "relu", use_bias: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.d_ff = operator.index(d_ff)
        self.activation = activation
        self.use_bias = use_bias
        self.supports_masking = True

    def build(self, input_shape: tuple):
        activation = (ACTIVATIONS | GATES).get(self.activation, self.activation)
        is_gated = self.activation in GATES
        parts = {"use_bias": self.use_bias and not is_gated, **self.for_parts()}
        self.inner = keras.layers.Dense(self.d_ff, activation=activation, name="inner", **parts)
        self.inner.build(input_shape)
        self.linear = keras.layers.Dense(self.d_ff, name="linear", **parts) if is_gated else None
        if self.linear is not None:
            self.linear.build(input_shape)
        self.outer = keras.layers.Dense(input_shape[-1], name="outer", **parts)
        self.outer.build((*input_shape[:-1], self.d_ff))

    def call(self, states):
        inner = self.inner(states)
        return self.outer(inner if self.linear is None else inner * self.linear(states))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return input_shape

    def get_config(self) -> dict:
        own = {"d_ff": self.d_ff, "activation": self.activation, "use_bias": self.use_bias}
        return {**super().get_config(), **own}
