"""Residual connections and what normalises them (Vaswani et al. 2017, section 3.1): one class per row of NORMS.

Another norm is a class here, its row, and its name in `config.NORMS`. The decoder's step and the cost read the row, and
exporters refuse it by name until what they have (`HAS`) names it.
"""

import keras

from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout


class Residual(CompositeLayer):
    """What surrounds a sublayer, the box "Add & Norm" of figure 1: residual sum, LayerNorm and dropout.

        output = sublayer(residual.sublayer_input(states))        states = residual.add_and_norm(states, output)

    Dropout is applied to the output of the sublayer, before the sum (section 5.4). Every shape is (B, L, d_model).

    Args:
        dropout: P_drop.
        epsilon: added to the variance in LayerNorm.
    """

    norm_class: type[keras.layers.Layer] = keras.layers.LayerNormalization
    norm_weights = 2  # arrays of d_model that a norm has: gamma and beta
    leaves_sum = False  # True: a stack of such blocks needs one more norm at its end

    def __init__(self, dropout: float = 0.0, epsilon: float = 1e-6, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate = dropout
        self.epsilon = epsilon
        self.norm = self.norm_class(epsilon=epsilon, name="norm", **self.for_parts())
        self.dropout = Dropout(dropout, **self.for_parts())

    def build(self, input_shape: tuple):
        self.norm.build(input_shape)

    def get_config(self) -> dict:
        return {**super().get_config(), "dropout": self.dropout_rate, "epsilon": self.epsilon}


@keras.saving.register_keras_serializable("keras_transformer")
class PostNormResidual(Residual):
    """LayerNorm(x + Dropout(Sublayer(x))), as in the paper (section 3.1)."""

    def sublayer_input(self, states):
        return states

    def add_and_norm(self, states, output):
        return self.norm(states + self.dropout(output))


@keras.saving.register_keras_serializable("keras_transformer")
class PreNormResidual(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))) (Xiong et al. 2020).

    It trains without warm-up. A stack of such blocks needs one more LayerNorm at its end.
    """

    leaves_sum = True

    def sublayer_input(self, states):
        return self.norm(states)

    def add_and_norm(self, states, output):
        """Only adds: the norm was applied to the sublayer's input."""
        return states + self.dropout(output)


NORMS: dict[str, type[Residual]] = {"post": PostNormResidual, "pre": PreNormResidual}  # by `config.NORMS`


def last_norm(norm: str, epsilon: float, **kwargs) -> keras.layers.Layer | None:
    """Return the norm that ends a stack of blocks, made with the arguments of a layer; None if it needs none."""
    residual = NORMS[norm]
    return residual.norm_class(epsilon=epsilon, **kwargs) if residual.leaves_sum else None
