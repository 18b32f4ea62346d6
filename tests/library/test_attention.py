"""Scaled dot-product attention and multi-head attention: closed forms, laws, worked examples of the literature."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.inspection.attention import MEASURES, PairAttention, head_measures
from keras_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.masks import causal_mask
from tests.support.models import as_numpy, assert_close, normal, randomise, softmax

log = math.log


def attend(query, key, value, mask=None, dtype="float32", factor=None):
    """One sentence and one head: (Q, d_k), (K, d_k), (K, d_v) -> output (Q, d_v), weights (Q, K)."""
    query, key, value = (ops.cast(ops.convert_to_tensor(x), dtype)[None, None] for x in (query, key, value))
    output, weights = scaled_dot_product_attention(query, key, value, None if mask is None else np.array(mask), factor)
    return output[0, 0], weights[0, 0]


# The function


def test_a_key_three_times_as_likely_gets_three_quarters_of_the_weight():
    output, weights = attend(query=[[log(3)]], key=[[0.0], [1.0]], value=[[0.0], [8.0]])
    assert_close(weights, [[0.25, 0.75]])
    assert_close(output, [[6.0]])


def test_scores_are_divided_by_the_square_root_of_the_key_width():
    # q.k = 4 log(3) over sqrt(16): the same weights as above
    _, weights = attend(query=[[log(3)] * 4 + [0.0] * 12], key=[[0.0] * 16, [1.0] * 16], value=[[0.0], [8.0]])
    assert_close(weights, [[0.25, 0.75]])


def test_scores_with_a_factor_are_not_divided():
    query, key = [[log(3), 0.0, 0.0, 0.0]], [[0.0] * 4, [1.0] * 4]
    _, weights = attend(query, key, [[0.0], [8.0]], factor=1.0)
    assert_close(weights, [[0.25, 0.75]])


def test_scores_that_are_not_divided_begin_as_large_as_those_that_are():
    scores = {}
    for scale_scores in (True, False):
        keras.utils.set_random_seed(3)
        layer = MultiHeadAttention(2, 16, scale_scores=scale_scores)
        scores[scale_scores] = as_numpy(layer(normal(2, 5, 8), normal(2, 6, 8, seed=1))[1])
    assert_close(scores[True], scores[False])


@pytest.mark.parametrize("kind", [list, np.array, lambda x: ops.cast(x, "int32")], ids=["lists", "numpy", "tensors"])
def test_integers_are_taken_as_numbers(kind):
    query, value = [[[[1, 0], [0, 1]]]], [[[[8, 0], [0, 8]]]]
    output, weights = scaled_dot_product_attention(kind(query), kind(query), kind(value))
    expected = softmax(np.eye(2) / math.sqrt(2))[None, None]
    assert_close(weights, expected)
    assert_close(output, 8 * expected)


def test_equal_keys_give_the_mean_of_the_values():
    output, _ = attend(normal(2, 3), np.ones((4, 3)), [[1.0], [2.0], [3.0], [6.0]])
    assert_close(output, [[3.0], [3.0]])


@pytest.mark.parametrize("value_dim", [1, 3, 7])
def test_values_may_be_wider_or_narrower_than_keys(value_dim):
    query, key, value = normal(2, 5, 4, 3), normal(2, 5, 6, 3, seed=1), normal(2, 5, 6, value_dim, seed=2)
    output, weights = scaled_dot_product_attention(*map(ops.convert_to_tensor, (query, key, value)))
    expected = softmax(as_numpy(query) @ as_numpy(key).swapaxes(-1, -2) / math.sqrt(3))
    assert_close(weights, expected)
    assert_close(output, expected @ value)


def test_masked_keys_leave_their_weight_to_the_others():
    query, key, value = [[1.0, 2.0]], normal(4, 2), normal(4, 3, seed=1)
    output, weights = attend(query, key, value, mask=[[True, False, True, False]])
    alone_output, alone_weights = attend(query, key[::2], value[::2])
    assert_close(as_numpy(weights)[0, [1, 3]], [0.0, 0.0], atol=0)
    assert_close(as_numpy(weights)[:, ::2], alone_weights)
    assert_close(output, alone_output)
    assert_close(ops.sum(weights), 1.0)


def test_a_masked_key_gets_no_weight_however_high_its_score():
    _, weights = attend([[1e4]], [[1e4], [0.0]], [[1.0], [2.0]], mask=[[False, True]])
    assert_close(weights, [[0.0, 1.0]], atol=0)


def test_an_allowed_key_gets_all_the_weight_however_low_its_score():
    _, weights = attend([[1e4]], [[-1e4], [0.0]], [[1.0], [2.0]], mask=[[True, False]])
    assert_close(weights, [[1.0, 0.0]], atol=0)


def test_a_query_with_nothing_to_attend_to_gets_zeros_and_finite_gradients():
    query, key, value = (tf.constant(normal(1, 1, 2, 3, seed=seed)) for seed in range(3))
    mask = np.array([[True, False], [False, False]])
    with tf.GradientTape() as tape:
        tape.watch((query, key, value))
        output, weights = scaled_dot_product_attention(query, key, value, mask)
    gradients = tape.gradient(output, (query, key, value))
    assert_close(output[0, 0, 1], np.zeros(3), atol=0)
    assert_close(weights[0, 0], [[1.0, 0.0], [0.0, 0.0]], atol=0)
    assert all(np.isfinite(as_numpy(gradient)).all() for gradient in gradients)
    assert_close(gradients[0][0, 0, 1], np.zeros(3), atol=0)  # of the query without keys
    assert_close(gradients[2][0, 0, 1], np.zeros(3), atol=0)  # of the value that no query may attend to


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_softmax_is_computed_in_float32_and_rounded_once(dtype):
    # d_k 1 and query 1: the scores are the keys, exactly
    keys = ops.cast(ops.convert_to_tensor(3.0 * normal(500, 1)), dtype)
    _, weights = attend([[1.0]], keys, keys, dtype=dtype)
    expected = softmax(as_numpy(ops.cast(keys, "float32"))[:, 0])
    one_rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    smallest = 6e-8 if dtype == "float16" else 0.0  # float16 has no finer steps
    assert ops.is_tensor(weights) and weights.dtype == dtype
    assert_close(ops.cast(weights, "float32")[0], expected, rtol=1.01 * one_rounding, atol=smallest)


def test_float64_stays_float64():
    _, weights = attend(normal(2, 3), normal(4, 3, seed=1), normal(4, 3, seed=2), dtype="float64")
    assert_close(np.sum(as_numpy(weights), -1), [1.0, 1.0], atol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_scores_beyond_the_largest_float16_give_no_nan(dtype):
    # 200 * 200 * 64 / sqrt(64) = 320,000; float16 ends at 65,504
    query, keys = np.full((1, 64), 200.0), np.stack([np.full(64, 200.0), np.full(64, -200.0), np.zeros(64)])
    output, weights = attend(query, keys, [[1.0], [2.0], [3.0]], mask=[[True, True, True]], dtype=dtype)
    assert_close(ops.cast(weights, "float32"), [[1.0, 0.0, 0.0]])
    assert_close(ops.cast(output, "float32"), [[1.0]])
    _, weights = attend(query, keys, [[1.0], [2.0], [3.0]], dtype=dtype)
    assert_close(ops.cast(weights, "float32"), [[1.0, 0.0, 0.0]])
    _, weights = attend(query, keys[[1, 1]], [[1.0], [2.0]], dtype=dtype)
    assert_close(ops.cast(weights, "float32"), [[0.5, 0.5]])


@pytest.mark.parametrize("key_dim", [4, 64, 512])
def test_scaling_brings_the_variance_of_the_dot_product_from_the_key_width_to_1(key_dim):
    # Footnote 4 of the paper. Against a key of zeros the score is log(w / (1 - w)).
    draws = 10_000  # the standard error of a variance is about sqrt(2 / draws) = 1.4 per cent, or 2 at key_dim 4
    query, key = normal(draws, 1, 1, key_dim), normal(draws, 1, 1, key_dim, seed=1)
    key_and_zeros = np.concatenate([key, np.zeros_like(key)], axis=2)
    _, weights = scaled_dot_product_attention(*map(ops.convert_to_tensor, (query, key_and_zeros, key_and_zeros)))
    weights = as_numpy(weights)[:, 0, 0]
    scaled = np.log(weights[:, 0]) - np.log(weights[:, 1])
    assert np.var((query * key).sum(-1)) == pytest.approx(key_dim, rel=0.1)
    assert np.var(scaled) == pytest.approx(1.0, rel=0.1)


# The layer


def by_heads(layer, query, memory, mask=None):
    """MultiHeadAttention in plain numpy: the sum over heads of softmax(Q K^T / sqrt(d_k)) V W^O_head, one at a time."""
    projections = (layer.query_projection, layer.key_projection, layer.value_projection, layer.output_projection)
    matrices = [as_numpy(projection.kernel) for projection in projections]
    biases = [as_numpy(p.bias) if layer.use_bias else 0.0 for p in projections]
    projected = [x @ w + b for x, w, b in zip((query, memory, memory), matrices, biases, strict=False)]
    output, weights = biases[3], []
    for head in range(layer.num_heads):
        keys = slice(head * layer.key_dim, (head + 1) * layer.key_dim)
        values = slice(head * layer.value_dim, (head + 1) * layer.value_dim)
        scores = projected[0][..., keys] @ projected[1][..., keys].swapaxes(-1, -2) / math.sqrt(layer.key_dim)
        weights.append(softmax(scores if mask is None else np.where(mask, scores, -np.inf)))
        output = output + weights[-1] @ projected[2][..., values] @ matrices[3][values]
    return output, np.stack(weights, axis=1)


WIDTHS = [  # num_heads, key_dim, value_dim, use_bias
    (1, 4, None, False),
    (3, 5, None, True),
    (2, 3, 7, False),
    (4, 2, 1, True),
]


@pytest.mark.parametrize("widths", WIDTHS)
def test_self_attention_is_the_sum_over_heads(widths):
    states = normal(2, 5, 8)
    layer = MultiHeadAttention(*widths)
    layer.build(states.shape, states.shape)
    output, weights = randomise(layer)(states, states)
    expected_output, expected_weights = by_heads(layer, states, states)
    assert_close(output, expected_output)
    assert_close(weights, expected_weights)
    assert tuple(output.shape) == layer.compute_output_shape(states.shape, states.shape)[0]
    assert tuple(weights.shape) == layer.compute_output_shape(states.shape, states.shape)[1]


@pytest.mark.parametrize("widths", WIDTHS)
def test_causal_self_attention_sees_no_later_position(widths):
    states, mask = normal(2, 5, 8), as_numpy(causal_mask(5)).astype(bool)
    layer = MultiHeadAttention(*widths)
    layer.build(states.shape, states.shape)
    output, weights = randomise(layer)(states, states, mask)
    expected_output, expected_weights = by_heads(layer, states, states, mask)
    assert_close(output, expected_output)
    assert_close(weights, expected_weights)
    assert_close(np.triu(as_numpy(weights), k=1), np.zeros((2, layer.num_heads, 5, 5)), atol=0)


@pytest.mark.parametrize("widths", WIDTHS)
def test_encoder_decoder_attention_reads_a_memory_of_another_length_and_width(widths):
    states, memory = normal(2, 3, 8), normal(2, 6, 5, seed=1)
    mask = np.array([[[True] * 6], [[True] * 4 + [False] * 2]]).repeat(3, axis=1)
    layer = MultiHeadAttention(*widths)
    layer.build(states.shape, memory.shape)
    output, weights = randomise(layer)(states, memory, mask)
    expected_output, expected_weights = by_heads(layer, states, memory, mask)
    assert_close(output, expected_output)
    assert_close(weights, expected_weights)
    assert_close(np.sum(as_numpy(weights), -1), np.ones((2, layer.num_heads, 3)))


def test_a_mask_of_keys_alone_holds_for_every_query():
    states, memory, keys = normal(2, 3, 8), normal(2, 2, 8, seed=1), np.array([[True, False], [True, True]])
    layer = MultiHeadAttention(2, 4)
    layer.build(states.shape, memory.shape)
    expected_output, expected_weights = randomise(layer)(states, memory, np.repeat(keys[:, None], 3, axis=1))
    output, weights = layer(states, memory, keys)
    assert_close(output, expected_output, atol=0)
    assert_close(weights, expected_weights, atol=0)


def test_without_positions_a_permuted_sentence_gives_permuted_states():
    states, order = normal(1, 6, 8), np.random.default_rng(1).permutation(6)
    layer = MultiHeadAttention(2, 4)
    layer.build(states.shape, states.shape)
    output, _ = randomise(layer)(states, states)
    permuted_output, _ = layer(states[:, order], states[:, order])
    assert_close(permuted_output, as_numpy(output)[:, order])
    permuted_memory_output, _ = layer(states, states[:, order])
    assert_close(permuted_memory_output, output)


def test_the_illustrated_transformer_two_words_of_width_4_through_8_heads_of_width_3():
    # Alammar 2018: X 2x4, W^Q W^K W^V 4x3 for each of 8 heads, Z 2x3 each, concatenated 2x24, W^O 24x4, back to 2x4
    words = np.array([[1.0, 0.5, -1.0, 2.0], [0.0, 1.0, 1.0, -0.5]])
    entries = np.sin(np.arange(4 * 24) + 1.0).reshape(4, 24)
    query_heads, key_heads, value_heads = 0.5 * entries, entries[:, ::-1], entries
    output_matrix = np.cos(np.arange(24 * 4)).reshape(24, 4)
    layer = MultiHeadAttention(num_heads=8, key_dim=3)
    layer.build((1, 2, 4), (1, 2, 4))
    layer.set_weights([query_heads, key_heads, value_heads, output_matrix])
    concatenated = []
    for head in range(8):
        columns = slice(3 * head, 3 * head + 3)
        query, key, value = (words @ heads[:, columns] for heads in (query_heads, key_heads, value_heads))
        assert query.shape == key.shape == value.shape == (2, 3)
        concatenated.append(softmax(query @ key.T / math.sqrt(3)) @ value)
    concatenated = np.concatenate(concatenated, axis=1)
    assert concatenated.shape == (2, 24)
    output, weights = layer(words[None].astype("float32"), words[None].astype("float32"))
    assert weights.shape == (1, 8, 2, 2)
    assert_close(output[0], concatenated @ output_matrix)


@pytest.mark.parametrize(("name", "value"), [("num_heads", 0), ("key_dim", 0), ("value_dim", -1), ("value_dim", 0)])
def test_a_width_below_1_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 1. Received: {name}={value}"):
        MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, name: value})


# what inspections show of it

SOURCE, TARGET = ["a", "b", "c", "</s>"], ["x", "</s>"]
PAIR = PairAttention(SOURCE, TARGET, ["<s>", "x"], {})


@pytest.mark.parametrize(
    ("kind", "queries", "keys"),
    [("memory", TARGET, SOURCE), ("encoder", SOURCE, SOURCE), ("decoder", TARGET, ["<s>", "x"])],
)
def test_the_weights_of_each_kind_are_cut_to_the_pieces_that_attend_and_that_are_attended_to(kind, queries, keys):
    padded = np.arange(2 * 3 * 6 * 5, dtype=np.float32).reshape(2, 3, 6, 5)
    cut = PAIR.with_weights({kind: padded})
    assert (cut.queries(kind), cut.keys(kind)) == (queries, keys) and cut[:3] == PAIR[:3]
    assert list(cut.weights) == [kind]
    np.testing.assert_array_equal(cut.weights[kind], padded[:, :, : len(queries), : len(keys)])


def test_each_head_of_each_layer_and_kind_has_its_own_measures():
    """Head h of layer l puts all weight on one key, another one for each: blocks and heads count from 1."""
    weights = np.zeros((2, 2, 4, 4), np.float32)
    for layer, head in np.ndindex(2, 2):
        weights[layer, head, :, 2 * layer + head] = 1
    pair = PairAttention(SOURCE, SOURCE, ["<s>", *SOURCE[:-1]], dict.fromkeys(MEASURES, weights))
    found = head_measures([pair, pair])
    for kind, layer, head in ((kind, *place) for kind in MEASURES for place in np.ndindex(2, 2)):
        key, name = 2 * layer + head, f"{kind}_{layer + 1}_head_{head + 1}"
        expected = {
            "entropy": 0,
            "end": float(key == 3),
            "begin": float(key == 0),
            "same": 1 / 4,
            "next": (key > 0) / 3,
            "previous": (key < 3) / 3,
        }
        for measure in MEASURES[kind]:
            assert found[f"{name}/{measure}"] == pytest.approx(expected[measure]), (name, measure)
