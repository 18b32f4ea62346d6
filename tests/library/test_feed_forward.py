"""The position-wise network."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import GATED_ACTIVATIONS
from keras_transformer.layers.feed_forward import ACTIVATIONS, FeedForward
from tests.support.models import as_numpy, assert_close, normal, randomise


def built(d_ff, activation="relu", d_model=4):
    layer = FeedForward(d_ff, activation)
    layer.build((None, None, d_model))
    return randomise(layer)


def test_two_numbers_by_hand():
    # max(0, [1, -2] W_1 + b_1) = max(0, [1 - 2 + 0.5, 1 + 2 - 1, -2 + 0]) = [0, 2, 0];  [0, 2, 0] W_2 + b_2 = [6.5, -4]
    layer = built(3, d_model=2)
    inner, outer = [[1.0, 1.0, 0.0], [1.0, -1.0, 1.0]], [[5.0, 5.0], [3.0, -2.0], [7.0, 7.0]]
    layer.set_weights([np.array(inner), np.array([0.5, -1.0, 0.0]), np.array(outer), np.array([0.5, 0.0])])
    assert_close(layer(np.array([[[1.0, -2.0]]], "float32")), [[[6.5, -4.0]]])


def test_the_layer_is_equation_2():
    layer, states = built(7), normal(2, 5, 4)
    inner_kernel, inner_bias, outer_kernel, outer_bias = map(as_numpy, layer.weights)
    expected = np.maximum(0.0, states @ inner_kernel + inner_bias) @ outer_kernel + outer_bias
    assert_close(layer(states), expected)


def test_a_gate_by_hand():
    # x W = [ln 3, 0], x V = [4, 5]: swish(ln 3) = ln 3 * 3/4, so (gate * x V) W_2 = 3 ln 3 * 2 + 0 * 5 * 7 = 6 ln 3
    layer, log_3 = built(2, "swiglu", d_model=1), math.log(3.0)
    layer.set_weights([np.array([[log_3, 0.0]]), np.array([[4.0, 5.0]]), np.array([[2.0], [7.0]])])
    assert_close(layer(np.ones((1, 1, 1), "float32")), [[[6.0 * log_3]]])


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_without_biases_a_network_is_two_matrices(activation):
    layer, states = FeedForward.from_config(FeedForward(7, activation, use_bias=False).get_config()), normal(2, 5, 4)
    layer.build((None, None, 4))
    inner, outer = map(as_numpy, randomise(layer).weights)  # and no more
    expected = as_numpy(getattr(keras.activations, activation)(states @ inner)) @ outer
    assert_close(layer(states), expected)


@pytest.mark.parametrize("activation", GATED_ACTIVATIONS)
def test_a_gated_network_is_its_equation_without_biases(activation):
    layer, states = built(7, activation), normal(2, 5, 4)
    gate, linear, outer = map(as_numpy, layer.weights)  # and no more
    expected = (np.vectorize(FORMULAS[activation])(states @ gate) * (states @ linear)) @ outer
    assert_close(layer(states), expected)


def test_two_thirds_of_the_width_give_a_gated_network_as_many_weights():
    assert built(8, "geglu").count_params() == 3 * 8 * 4 == built(12).count_params() - 12 - 4  # its biases


def test_changing_one_position_changes_only_that_position():
    layer, states = built(7), normal(1, 5, 4)
    changed = states.copy()
    changed[:, 2] += 1.0
    difference = np.abs(as_numpy(layer(states)) - as_numpy(layer(changed))).max(axis=(0, 2))
    assert difference[2] > 0.1
    assert_close(difference[[0, 1, 3, 4]], np.zeros(4), atol=1e-6)


def test_every_position_goes_through_the_same_function():
    state = normal(1, 1, 4)
    output = as_numpy(built(7)(np.repeat(state, 3, axis=1)))
    assert_close(output[:, 1:], output[:, :2], atol=1e-6)


FORMULAS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),  # Hendrycks and Gimpel 2016
    "silu": lambda x: x / (1.0 + math.exp(-x)),
}


FORMULAS |= {"geglu": FORMULAS["gelu"], "swiglu": FORMULAS["silu"]}
FORMULAS["geglu_tanh"] = lambda x: 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_an_activation_named_in_the_config_is_its_formula(activation):
    layer = built(1, activation, d_model=1)
    layer.set_weights([np.ones((1, 1)), np.zeros(1), np.ones((1, 1)), np.zeros(1)])
    numbers = np.linspace(-3.0, 3.0, 13)
    expected = [FORMULAS[activation](x) for x in numbers]
    assert_close(layer(numbers[None, :, None].astype("float32"))[0, :, 0], expected)


@pytest.mark.parametrize("name", ["silu", "swish"])
def test_a_swish_is_keras_own_bit_for_bit_and_brings_no_gradient_into_a_graph(name):
    states = normal(2, 5, 4) * 4.0
    assert np.array_equal(as_numpy(ACTIVATIONS[name](states)), as_numpy(keras.activations.get(name)(states)))
    layer = built(7, "swiglu" if name == "swish" else name)
    graph = tf.function(layer).get_concrete_function(tf.TensorSpec((None, None, 4))).graph
    assert not [node.type for node in graph.get_operations() if "_gradient_op_type" in node.node_def.attr]
