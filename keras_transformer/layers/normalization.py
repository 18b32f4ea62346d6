"""Residual connections (Vaswani et al. 2017, section 3.1), a class per row of NORMS, and the norms in NORM_KINDS.

Another norm is its row here, and its name in `config.NORM_KINDS`. The decoder's step and the cost read the row, and
exporters refuse it by name until what they have (`HAS`) names it. Another order is a class, a row of NORMS, and its
name in `config.NORMS`.
"""

from typing import NamedTuple

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout


class NormKind(NamedTuple):
    """A norm of states: its layer, made with `epsilon`, and how many arrays of d_model it has."""

    layer: type[keras.layers.Layer]
    arrays: int


# By `config.NORM_KINDS`. RMSNorm(x) = x / sqrt(mean(x^2) + epsilon) * scale (Zhang and Sennrich 2019, eq. 4).
NORM_KINDS = {
    "layer": NormKind(keras.layers.LayerNormalization, 2),  # gamma and beta
    "rms": NormKind(keras.layers.RMSNormalization, 1),  # scale
}


class Residual(CompositeLayer):
    """What surrounds a sublayer, the box "Add & Norm" of figure 1: residual sum, norm and dropout.

        output = sublayer(residual.sublayer_input(states))        states = residual.add_and_norm(states, output)

    Dropout is applied to the output of the sublayer, before the sum (section 5.4). Every shape is (B, L, d_model).

    Args:
        dropout: P_drop.
        epsilon: added to the variance in LayerNorm, to the mean square in RMSNorm.
        norm_kind: one of NORM_KINDS.
    """

    leaves_sum = False  # True: a stack of such blocks needs one more norm at its end

    def __init__(self, dropout: float = 0.0, epsilon: float = 1e-6, norm_kind: str = "layer", **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate = dropout
        self.epsilon = epsilon
        self.norm_kind = norm_kind
        self.norm = NORM_KINDS[norm_kind].layer(epsilon=epsilon, name="norm", **self.for_parts())
        self.dropout = Dropout(dropout, **self.for_parts())

    def build(self, input_shape: tuple):
        self.norm.build(input_shape)

    def get_config(self) -> dict:
        values = {"dropout": self.dropout_rate, "epsilon": self.epsilon, "norm_kind": self.norm_kind}
        return {**super().get_config(), **values}


@keras.saving.register_keras_serializable("keras_transformer")
class PostNormResidual(Residual):
    """LayerNorm(x + Dropout(Sublayer(x))), as in the paper (section 3.1).

    Shapes: states x and the sublayer's output (B, L, d_model) -> (B, L, d_model).
    """

    def sublayer_input(self, states):
        return states

    def add_and_norm(self, states, output):
        return self.norm(states + self.dropout(output))


@keras.saving.register_keras_serializable("keras_transformer")
class PreNormResidual(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))) (Xiong et al. 2020).

    It trains without warm-up. A stack of such blocks needs one more LayerNorm at its end.
    Shapes: those of PostNormResidual, (B, L, d_model) -> (B, L, d_model).
    """

    leaves_sum = True

    def sublayer_input(self, states):
        return self.norm(states)

    def add_and_norm(self, states, output):
        """Only adds: the norm was applied to the sublayer's input."""
        return states + self.dropout(output)


NORMS: dict[str, type[Residual]] = {"post": PostNormResidual, "pre": PreNormResidual}  # by `config.NORMS`


def norm_of(config: TransformerConfig, **kwargs) -> keras.layers.Layer:
    """Return a norm of the kind in a configuration, made with the arguments of a layer."""
    return NORM_KINDS[config.norm_kind].layer(epsilon=config.norm_epsilon, **kwargs)
