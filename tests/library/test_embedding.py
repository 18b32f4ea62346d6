"""Token embedding with tied logits, sinusoidal and learned positions."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.layers import LearnedPositions, SinusoidalPositions, TokenEmbedding, sinusoidal_encoding
from keras_transformer.layers.embedding import OutputWeights, logits_by
from tests.support.models import as_numpy, assert_close, layer_norm, normal
from tests.support.processes import run_without_tensorflow

MATRIX = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, -1.0, 0.5], [2.0, 2.0, 0.0, -1.0]], "float32")


def embedding():
    layer = TokenEmbedding(vocab_size=3, d_model=4)
    layer.build()
    layer.matrix.assign(MATRIX)
    return layer


# Tokens


def test_a_token_is_its_row_times_the_square_root_of_d_model():
    assert_close(embedding()(np.array([[2, 0]])), [[[4.0, 4.0, 0.0, -2.0], [0.0, 2.0, 4.0, 6.0]]])


def test_a_logit_is_the_product_of_state_and_row():
    assert_close(embedding()(np.array([[[1.0, 0.0, 0.0, 2.0]]], "float32"), reverse=True), [[[6.0, 2.0, 0.0]]])


def test_reading_and_scoring_share_one_matrix():
    layer = embedding()
    assert [weight.shape for weight in layer.weights] == [(3, 4)]


def test_gradients_flow_from_both_uses():
    layer, states = embedding(), tf.constant([[[1.0, 0.0, 0.0, 2.0]]])
    with tf.GradientTape(persistent=True) as tape:
        read, scored = tf.reduce_sum(layer(np.array([[1]]))), tf.reduce_sum(layer(states, reverse=True))
        both = read + scored
    gradient = {
        name: as_numpy(tf.convert_to_tensor(tape.gradient(loss, layer.matrix.value)))
        for name, loss in {"read": read, "scored": scored, "both": both}.items()
    }
    assert_close(gradient["read"], [[0.0] * 4, [2.0] * 4, [0.0] * 4])  # sqrt(4), in the row that was read
    assert_close(gradient["scored"], [[1.0, 0.0, 0.0, 2.0]] * 3)  # the state, in every row
    assert_close(gradient["both"], gradient["read"] + gradient["scored"])


def test_new_embeddings_have_variance_1_after_scaling():
    layer = TokenEmbedding(vocab_size=500, d_model=64)
    assert np.var(as_numpy(layer(np.arange(500)[None]))) == pytest.approx(1.0, rel=0.05)  # 32,000 draws: s.e. 0.8 %


def test_a_bias_is_added_to_the_logits_alone():
    layer, states = TokenEmbedding(vocab_size=3, d_model=4, use_bias=True), normal(1, 2, 4)
    layer.build()
    layer.matrix.assign(MATRIX)
    assert_close(layer(states, reverse=True), embedding()(states, reverse=True), atol=0, rtol=0)  # it begins with 0
    layer.bias.assign([1.0, -100.0, 0.25])
    assert_close(layer(states, reverse=True), states @ MATRIX.T + [1.0, -100.0, 0.25])
    assert_close(layer(np.array([[2, 0]])), embedding()(np.array([[2, 0]])), atol=0, rtol=0)


@pytest.mark.parametrize(("name", "start"), [("eos", EOS), ("pad", PAD), ("unk", UNK)])
def test_a_model_without_bos_reads_another_token_in_its_place(name, start):
    layer = TokenEmbedding(vocab_size=6, d_model=4, use_bias=True, starts_with=name)
    layer.build()
    table = np.arange(24, dtype="float32").reshape(6, 4)
    layer.matrix.assign(table)
    layer.bias.assign([0.0, 0.0, -100.0, 0.0, 0.0, 0.0])
    assert_close(layer(np.array([[BOS, EOS, PAD, 4]])), 2.0 * table[[[start, EOS, PAD, 4]]], atol=0, rtol=0)
    assert_close(layer(normal(1, 1, 4), reverse=True)[..., BOS] + 100, normal(1, 1, 4) @ table[BOS], atol=1e-3)
    assert [weight.path.rpartition("/")[2] for weight in layer.trainable_weights] == ["matrix"]
    layer.trainable = False
    layer.trainable = True
    assert len(layer.trainable_weights) == 1


def test_the_bias_of_logits_can_be_folded_into_a_matrix_that_reads_a_layernorm():
    # x has mean 0, so E (g x + b) + c = M (x + 1) with M = E g + a 1^T and a = (E b + c - sum(E g)) / d
    generator, d_model = np.random.default_rng(3), 8
    matrix, gamma, beta, bias = (generator.normal(size=size) for size in [(5, d_model), d_model, d_model, 5])
    normalised = layer_norm(normal(2, 3, d_model), epsilon=0.0)
    biased, folded = TokenEmbedding(5, d_model, use_bias=True), TokenEmbedding(5, d_model)
    biased.build()
    folded.build()
    biased.set_weights([matrix, bias])
    scaled = matrix * gamma
    folded.set_weights([scaled + ((matrix @ beta + bias - scaled.sum(1)) / d_model)[:, None]])
    logits = biased((normalised * gamma + beta).astype("float32"), reverse=True)
    assert_close(folded((normalised + 1).astype("float32"), reverse=True), logits)


# Sinusoids


def test_the_first_sinusoids_can_be_computed_by_hand():
    # d_model 4: the waves are sin(pos), cos(pos), sin(pos / 100), cos(pos / 100)
    assert_close(
        sinusoidal_encoding(np.array([0, 1, 2]), 4),
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.841471, 0.540302, 0.0099998, 0.99995],
            [0.909297, -0.416147, 0.0199987, 0.9998],
        ],
    )


@pytest.mark.parametrize("d_model", [2, 6, 512])
def test_sinusoids_are_the_formula_of_section_3_5_interleaved(d_model):
    positions = np.arange(1024)
    expected = np.empty((1024, d_model))
    for i in range(d_model // 2):
        expected[:, 2 * i] = np.sin(positions / 10000 ** (2 * i / d_model))
        expected[:, 2 * i + 1] = np.cos(positions / 10000 ** (2 * i / d_model))
    found = sinusoidal_encoding(positions, d_model)
    assert_close(found, expected, atol=5e-4, rtol=0)  # angles up to 1,024 in float32: steps of 1.2e-4
    assert_close(found[:32], expected[:32], atol=1e-5, rtol=0)


@pytest.mark.parametrize("d_model", [2, 6, 512])
def test_tensor2tensors_sinusoids_are_its_formula_in_another_order(d_model):
    # all sines, then all cosines, of pos * exp(-i ln(10000) / (n - 1)), i = 0 ... n - 1
    pairs, positions = d_model // 2, np.arange(1024)
    angles = positions[:, None] * np.exp(-np.arange(pairs) * math.log(10000) / max(pairs - 1, 1))
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    found = as_numpy(sinusoidal_encoding(positions, d_model, "tensor2tensor"))
    found = np.concatenate([found[:, 0::2], found[:, 1::2]], axis=1)
    assert_close(found, expected, atol=5e-4, rtol=0)
    assert_close(found[:32], expected[:32], atol=1e-5, rtol=0)
    if pairs > 1:
        assert abs(found - as_numpy(sinusoidal_encoding(positions, d_model))).max() > 0.5  # the paper's are others


@pytest.mark.parametrize("first", [1, 2, 300])
def test_positions_that_begin_later_are_those_of_a_later_token(first):
    states, positions = np.zeros((1, 3, 6), "float32"), np.array([[0, 1, 2]], "int32")
    later = SinusoidalPositions("tensor2tensor", first_position=first)
    from_0 = SinusoidalPositions("tensor2tensor")
    assert_close(later(states, positions), from_0(states, positions + first))
    assert_close(later.encodings(4, 6), from_0.encodings(first + 4, 6)[first:])


def test_other_sinusoids_are_refused():
    with pytest.raises(ValueError, match="one of paper, tensor2tensor. Received: sinusoids='marian'"):
        SinusoidalPositions("marian")


@pytest.mark.parametrize("offset", [1, 7])
def test_a_shift_by_k_positions_rotates_each_pair_by_an_angle_that_depends_on_k_alone(offset):
    # "for any fixed offset k, PE(pos + k) can be represented as a linear function of PE(pos)"
    d_model, positions = 8, np.arange(200)
    pairs = as_numpy(sinusoidal_encoding(positions, d_model)).reshape(200, 4, 2)
    shifted = as_numpy(sinusoidal_encoding(positions + offset, d_model)).reshape(200, 4, 2)
    angles = offset / 10000 ** (np.arange(4) / 4)
    rotations = np.array([[[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]] for a in angles])
    assert_close(shifted, np.einsum("irc,pic->pir", rotations, pairs), atol=1e-4)


def test_positions_of_any_shape_are_encoded():
    positions = np.array([[0, 1, 2], [0, 0, 1]])
    encoding = sinusoidal_encoding(positions, 6)
    assert tuple(encoding.shape) == (2, 3, 6)
    assert_close(encoding[1, 2], sinusoidal_encoding(np.array([1]), 6)[0])


def test_sinusoids_are_float32_whatever_the_policy_so_that_256_and_257_differ():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        encoding = sinusoidal_encoding(np.array([256, 257], "int32"), 64)
        states = SinusoidalPositions()(np.zeros((1, 2, 64), "float32"), np.array([[256, 257]], "int32"))
    finally:
        keras.config.set_dtype_policy(policy)
    assert keras.backend.standardize_dtype(encoding.dtype) == "float32"
    assert_close(encoding[:, :2], [[math.sin(256), math.cos(256)], [math.sin(257), math.cos(257)]], atol=1e-4)
    assert keras.backend.standardize_dtype(states.dtype) == "bfloat16"
    assert_close(keras.ops.cast(states[0], "float32"), encoding, atol=2.0**-8)


def test_an_odd_d_model_is_refused():
    with pytest.raises(ValueError, match="d_model=5"):
        sinusoidal_encoding(np.arange(3), 5)


def test_positions_are_added_to_what_is_embedded():
    states, positions = normal(2, 3, 4), np.array([[0, 1, 2], [0, 1, 0]])
    assert_close(SinusoidalPositions()(states, positions), states + as_numpy(sinusoidal_encoding(positions, 4)))


# Learned positions


def test_learned_positions_add_the_row_of_each_position():
    layer, states = LearnedPositions(max_positions=3), normal(1, 4, 4)
    layer.build(states.shape)
    layer.table.assign(MATRIX)
    assert_close(layer(states, np.array([[2, 0, 1, 0]])), states + MATRIX[[2, 0, 1, 0]])


def test_a_position_past_the_last_row_gets_the_last_row():
    layer, states = LearnedPositions(max_positions=3), np.zeros((1, 2, 4), "float32")
    layer.build(states.shape)
    layer.table.assign(MATRIX)
    assert_close(layer(states, np.array([[2, 7]])), [MATRIX[[2, 2]]])


# Their gradients

SUMS = """
import sys, jax, keras, numpy as np
from keras_transformer.layers import LearnedPositions, TokenEmbedding
keras.config.set_dtype_policy("mixed_bfloat16")
ids = keras.Input((1001,), dtype="int32")
model = keras.Model(ids, LearnedPositions(3)(TokenEmbedding(3, 4)(ids), ids))
def total(weights):
    return model.stateless_call(weights, [], np.ones((1, 1001), "int32"))[0].astype("float32").sum()
np.savez(sys.argv[1], *jax.grad(total)([weight.value for weight in model.trainable_variables]))
print("tensorflow" in sys.modules)
"""


@pytest.mark.release
def test_the_gradient_of_a_row_that_is_read_1001_times_is_exact_under_mixed_bfloat16(tmp_path):
    run_without_tensorflow("jax", SUMS, tmp_path / "found.npz")  # TensorFlow sums in float32 whatever it is given
    with np.load(tmp_path / "found.npz") as gradients:
        for of_one, gradient in zip((2.0, 1.0), gradients.values(), strict=True):  # a token's is sqrt(4)
            assert_close(gradient, [[0.0] * 4, [1001 * of_one] * 4, [0.0] * 4], atol=0, rtol=0)


@pytest.mark.parametrize("has_bias", [False, True])
def test_each_sentence_may_have_logits_of_its_own_tokens(has_bias):
    """Those of hypothesis k of sentence b are row b * K + k."""
    states, kernel, bias = normal(6, 4, seed=1), normal(2, 4, 5, seed=2), normal(2, 5, seed=3) if has_bias else None
    found = as_numpy(logits_by(OutputWeights(tf.constant(kernel), None if bias is None else tf.constant(bias)), states))
    for row in range(6):
        expected = states[row] @ kernel[row // 3] + (bias[row // 3] if has_bias else 0)
        assert_close(found[row], expected)


def test_learned_positions_need_at_least_one():
    with pytest.raises(ValueError, match="max_positions must be at least 1. Received: max_positions=0"):
        LearnedPositions(max_positions=0)
    one = LearnedPositions(max_positions=1)
    assert one(np.zeros((1, 1, 3), "float32"), np.zeros((1, 1), "int32")).shape == (1, 1, 3)
