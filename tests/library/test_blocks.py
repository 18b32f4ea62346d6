"""Residual connections with LayerNorm, and the blocks that they hold together."""

import keras
import numpy as np
import pytest

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.blocks import DecoderBlock, EncoderBlock
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.normalization import PostNormResidual, PreNormResidual
from tests.support.models import as_numpy, assert_close, layer_norm, normal, randomise

EPSILON = 0.01  # far from the default, so that a block that does not pass it on is seen
STATES, MEMORY = normal(2, 4, 8), normal(2, 5, 8, seed=1)
BEFORE = np.tril(np.ones((1, 4, 4), bool))  # a position attends to itself and to those before it


def encoder_block(norm, **arguments):
    block = EncoderBlock(num_heads=2, key_dim=3, d_ff=12, norm=norm, norm_epsilon=EPSILON, **arguments)
    block.build(STATES.shape)
    return block


def decoder_block(norm, **arguments):
    block = DecoderBlock(num_heads=2, key_dim=3, d_ff=12, norm=norm, norm_epsilon=EPSILON, **arguments)
    block.build(STATES.shape, MEMORY.shape)
    return block


def normalised(residual, states):
    return layer_norm(states, EPSILON, residual.norm.gamma, residual.norm.beta).astype("float32")


def test_the_layer_norm_of_4_2_3_5():
    # mean 3.5, variance 1.25: (0.5, -1.5, -0.5, 1.5) / sqrt(1.25)
    residual = PostNormResidual()
    residual.build((1, 1, 4))
    states = np.array([[[4.0, 2.0, 3.0, 5.0]]], "float32")
    assert_close(residual.add_and_norm(states, np.zeros_like(states)), [[[0.447, -1.342, -0.447, 1.342]]], atol=5e-4)


def test_the_rms_norm_of_1_2_2_4():
    # mean square 25 / 4: each number divided by 2.5, and no number subtracted
    residual = PostNormResidual(norm_kind="rms")
    residual.build((1, 1, 4))
    states = np.array([[[1.0, 2.0, -2.0, 4.0]]], "float32")
    assert_close(residual.add_and_norm(states, np.zeros_like(states)), [[[0.4, 0.8, -0.8, 1.6]]])
    assert [tuple(weight.shape) for weight in residual.weights] == [(4,)]


def test_post_norm_adds_and_then_normalises():
    residual, output = PostNormResidual(epsilon=EPSILON), normal(2, 4, 8, seed=1)
    residual.build(STATES.shape)
    randomise(residual)
    assert_close(residual.sublayer_input(STATES), STATES)
    assert_close(residual.add_and_norm(STATES, output), normalised(residual, STATES + output))


def test_pre_norm_normalises_the_input_of_the_sublayer_and_adds_its_output():
    residual, output = PreNormResidual(epsilon=EPSILON), normal(2, 4, 8, seed=1)
    residual.build(STATES.shape)
    randomise(residual)
    assert_close(residual.sublayer_input(STATES), normalised(residual, STATES))
    assert_close(residual.add_and_norm(STATES, output), STATES + output)


def test_a_post_norm_encoder_block_is_layer_norm_of_x_plus_sublayer_of_x_twice():
    block = randomise(encoder_block("post"))
    attended, expected_weights = block.self_attention(STATES, STATES)
    states = normalised(block.self_attention_residual, STATES + as_numpy(attended))
    expected = normalised(block.feed_forward_residual, states + as_numpy(block.feed_forward(states)))
    output, weights = block(STATES)
    assert_close(output, expected)
    assert_close(weights, expected_weights)


def test_a_pre_norm_encoder_block_is_x_plus_sublayer_of_layer_norm_of_x_twice():
    block = randomise(encoder_block("pre"))
    query = normalised(block.self_attention_residual, STATES)
    states = STATES + as_numpy(block.self_attention(query, query)[0])
    expected = states + as_numpy(block.feed_forward(normalised(block.feed_forward_residual, states)))
    assert_close(block(STATES)[0], expected)


def test_a_post_norm_decoder_block_attends_to_itself_then_to_the_memory_then_feeds_forward():
    block = randomise(decoder_block("post"))
    attended, expected_self_weights = block.self_attention(STATES, STATES, BEFORE)
    states = normalised(block.self_attention_residual, STATES + as_numpy(attended))
    attended, expected_memory_weights = block.memory_attention(states, MEMORY)
    states = normalised(block.memory_attention_residual, states + as_numpy(attended))
    expected = normalised(block.feed_forward_residual, states + as_numpy(block.feed_forward(states)))
    output, self_weights, memory_weights = block(STATES, MEMORY)
    assert_close(output, expected)
    assert_close(self_weights, expected_self_weights)
    assert_close(memory_weights, expected_memory_weights)


def test_a_pre_norm_decoder_block_normalises_its_queries_but_not_the_memory():
    block = randomise(decoder_block("pre"))
    query = normalised(block.self_attention_residual, STATES)
    states = STATES + as_numpy(block.self_attention(query, query, BEFORE)[0])
    query = normalised(block.memory_attention_residual, states)
    states = states + as_numpy(block.memory_attention(query, MEMORY)[0])
    expected = states + as_numpy(block.feed_forward(normalised(block.feed_forward_residual, states)))
    assert_close(block(STATES, MEMORY)[0], expected)


def test_a_decoder_block_without_a_mask_sees_nothing_of_what_follows():
    block = randomise(decoder_block("post"))
    changed = np.concatenate([STATES[:, :2], STATES[:, 2:] + 1.0], axis=1)
    output, weights, _ = block(STATES, MEMORY)
    assert (as_numpy(weights)[:, :, ~BEFORE[0]] == 0).all()
    assert_close(block(changed, MEMORY)[0][:, :2], output[:, :2])
    assert not np.allclose(as_numpy(block(changed, MEMORY)[0])[:, 2:], as_numpy(output)[:, 2:])


def test_a_mask_of_padding_keeps_a_decoder_block_causal():
    block, is_token = randomise(decoder_block("post")), np.ones(STATES.shape[:2], bool)
    is_token[:, -1] = is_token[1:, 0] = False
    expected = block(STATES, MEMORY, self_mask=is_token[:, None] & BEFORE)
    for found, wanted in zip(block(STATES, MEMORY, self_mask=is_token), expected, strict=True):
        assert_close(found, wanted)


def test_a_mask_of_positions_that_is_given_stays_with_the_states_and_one_of_queries_and_keys_does_not():
    is_token = np.arange(STATES.shape[1])[None] < np.array([[2]] * len(STATES))
    for block in (encoder_block("post"), encoder_block("pre")):
        states, _ = block(STATES, mask=is_token)
        assert (as_numpy(states._keras_mask) == is_token).all()
        states, _ = block(STATES, mask=is_token[:, None] & is_token[:, :, None])
        assert getattr(states, "_keras_mask", None) is None


def zero_outputs(block):
    """The block with last matrices and biases of 0, so that every sublayer returns 0."""
    attentions = [block.self_attention] + ([block.memory_attention] if isinstance(block, DecoderBlock) else [])
    for layer in [attention.output_projection for attention in attentions] + [block.feed_forward.outer]:
        layer.set_weights([np.zeros_like(weight) for weight in layer.get_weights()])
    return block


def test_sublayers_of_zero_make_a_pre_norm_block_the_identity():
    assert_close(zero_outputs(encoder_block("pre"))(STATES)[0], STATES)
    assert_close(zero_outputs(decoder_block("pre"))(STATES, MEMORY)[0], STATES)


def test_sublayers_of_zero_reduce_a_post_norm_block_to_its_layer_norms():
    twice = layer_norm(layer_norm(STATES, EPSILON), EPSILON)
    assert_close(zero_outputs(encoder_block("post"))(STATES)[0], twice)
    assert_close(zero_outputs(decoder_block("post"))(STATES, MEMORY)[0], layer_norm(twice, EPSILON))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_each_mask_reaches_the_attention_that_it_is_for(norm):
    block = randomise(decoder_block(norm))
    self_mask = np.eye(4, dtype=bool)[np.newaxis]
    memory_mask = np.array([[[True, True, False, True, False]] * 4] * 2)
    _, self_weights, memory_weights = block(STATES, MEMORY, self_mask, memory_mask)
    assert_close(as_numpy(self_weights)[..., ~self_mask[0]], np.zeros((2, 2, 12)), atol=0)
    assert_close(as_numpy(memory_weights)[..., [2, 4]], np.zeros((2, 2, 4, 2)), atol=0)
    assert_close(np.sum(as_numpy(memory_weights), -1), np.ones((2, 2, 4)))


def as_model(norm, dropout):
    """A block in a functional model, which passes `training` on to it."""
    states = keras.Input((4, 8))
    block = EncoderBlock(num_heads=2, key_dim=3, d_ff=12, norm=norm, dropout=dropout)
    return keras.Model(states, block(states)[0])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_acts_in_training_only(norm):
    model = as_model(norm, dropout=0.5)
    without = as_model(norm, dropout=0.0)
    without.set_weights([weight.numpy() for weight in model.trainable_weights])
    assert_close(model(STATES), without(STATES), atol=0)
    assert_close(model(STATES, training=False), model(STATES), atol=0)
    assert np.abs(as_numpy(model(STATES, training=True)) - as_numpy(model(STATES))).max() > 0.01
    assert_close(without(STATES, training=True), without(STATES), atol=0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_changes_nothing_if_the_sublayers_return_zero(norm):
    states = keras.Input((4, 8))
    block = EncoderBlock(num_heads=2, key_dim=3, d_ff=12, norm=norm, dropout=0.5)
    model = keras.Model(states, block(states)[0])
    zero_outputs(block)
    assert_close(model(STATES, training=True), model(STATES), atol=0)


def test_dropout_falls_on_the_output_of_each_sublayer_and_never_on_the_sum():
    # Pre-norm, with sublayers of constant output 1: what is added is 0 or 1 / (1 - P_drop), twice.
    states = keras.Input((40, 8))
    block = EncoderBlock(num_heads=2, key_dim=3, d_ff=12, norm="pre", dropout=0.2, attention_bias=True)
    model = keras.Model(states, block(states)[0])
    zero_outputs(block)
    block.self_attention.output_projection.bias.assign(np.ones(8))
    block.feed_forward.outer.bias.assign(np.ones(8))
    many = normal(50, 40, 8)
    added = as_numpy(model(many, training=True)) - many
    shares = [np.isclose(added, count / 0.8, atol=1e-5).mean() for count in range(3)]
    assert sum(shares) == 1.0
    assert shares == pytest.approx([0.04, 0.32, 0.64], abs=0.02)  # 16,000 draws: s.e. below 0.004


@pytest.mark.parametrize(("block_class", "sublayers"), [(EncoderBlock, 2), (DecoderBlock, 3)])
def test_the_options_of_a_block_reach_every_sublayer(block_class, sublayers):
    block = block_class(
        num_heads=3,
        key_dim=5,
        value_dim=7,
        d_ff=11,
        activation="gelu",
        dropout=0.25,
        norm_kind="rms",
        norm_epsilon=0.5,
        attention_bias=True,
        dtype="mixed_bfloat16",
    )
    block.build(STATES.shape)
    parts = {}
    for layer in block._flatten_layers(include_self=False):
        parts.setdefault(type(layer), []).append(layer)
    assert {layer.dtype_policy.name for layers in parts.values() for layer in layers} == {"mixed_bfloat16"}
    assert [norm.epsilon for norm in parts[keras.layers.RMSNormalization]] == [0.5] * sublayers
    assert [dropout.rate for dropout in parts[Dropout]] == [0.25] * sublayers
    for attention in parts[MultiHeadAttention]:
        assert (attention.num_heads, attention.key_dim, attention.value_dim, attention.use_bias) == (3, 5, 7, True)
    assert len(parts[MultiHeadAttention]) == sublayers - 1
    assert (block.feed_forward.d_ff, block.feed_forward.activation) == (11, "gelu")


@pytest.mark.parametrize("name", ["norm", "norm_kind"])
def test_an_unknown_norm_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}='batch'"):
        EncoderBlock(num_heads=2, key_dim=3, d_ff=12, **{name: "batch"})
