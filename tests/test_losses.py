"""Label-smoothed cross-entropy: closed forms, sums that add up, and the gradient softmax - q."""

import importlib.util
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import TokenSums, token_sums
from tests.support.models import as_numpy, assert_close, normal, softmax

ROWS, LENGTH, VOCABULARY = 4, 6, 11
SMOOTHING = (0.0, 0.1, 0.5)


@pytest.fixture
def batch():
    """logits, labels, and segments of two packed sentences a row and some padding; the last row is all padding."""
    labels = np.random.default_rng(1).integers(0, VOCABULARY, (ROWS, LENGTH)).astype("int32")
    segments = np.array([[1, 1, 1, 2, 2, 2], [1, 1, 2, 2, 0, 0], [1, 0, 0, 0, 0, 0], [0] * 6], "int32")
    return 3.0 * normal(ROWS, LENGTH, VOCABULARY), labels, segments


def sums_of(logits, labels, segments, smoothing=0.1):
    """token_sums of nested lists."""
    return token_sums(np.array(logits, "float32"), np.array(labels, "int32"), np.array(segments, "int32"), smoothing)


def smoothed(labels, smoothing):
    """q: the label with 1 - smoothing, and smoothing shared by the whole vocabulary, the label included."""
    return (1 - smoothing) * np.eye(VOCABULARY)[labels] + smoothing / VOCABULARY


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_where_all_words_are_as_likely_a_token_costs_log_V(smoothing):
    sums = sums_of(np.full((2, 3, 8), 5.0), [[0, 7, 3], [1, 1, 1]], np.ones((2, 3)), smoothing)
    assert_close(sums, TokenSums(loss=6 * math.log(8), nll=6 * math.log(8), correct=6, tokens=6))


def test_a_label_three_times_as_likely_as_the_other_word_costs_log_4_thirds():
    sums = sums_of([[[math.log(3), 0.0]]], [[0]], [[1]], smoothing=0.0)
    assert_close(sums, TokenSums(loss=math.log(4 / 3), nll=math.log(4 / 3), correct=1, tokens=1))


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_the_loss_is_the_sum_of_minus_q_log_p(smoothing, batch):
    logits, labels, segments = batch
    log_p = np.log(softmax(logits.astype("float64")))
    expected = -(smoothed(labels, smoothing) * log_p).sum(-1)[segments > 0].sum()
    assert_close(token_sums(*batch, smoothing).loss, expected)


def test_without_smoothing_it_is_keras_cross_entropy_and_the_negative_log_likelihood(batch):
    logits, labels, segments = batch
    expected = as_numpy(keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))
    sums = token_sums(*batch, smoothing=0.0)
    assert_close(sums.loss, expected[segments > 0].sum())
    assert_close(sums.nll, sums.loss)


def test_the_likelihood_does_not_depend_on_smoothing(batch):
    assert_close(token_sums(*batch, smoothing=0.3).nll, token_sums(*batch, smoothing=0.0).nll)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install -r requirements-peers.txt"
)
@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_it_is_torchs_cross_entropy(smoothing, batch):
    import torch

    logits, labels, segments = (torch.from_numpy(array) for array in batch)
    labels = labels.long().masked_fill(segments == 0, -100)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing, reduction="sum"
    )
    assert_close(token_sums(*batch, smoothing).loss, expected.item())


def test_padding_counts_nothing(batch):
    logits, labels, segments = batch
    is_padding = (segments == 0)[..., None]
    for filled in (np.where(is_padding, 1e4, logits), np.where(is_padding, 0.0, logits)):
        assert_close(token_sums(filled, labels, segments), token_sums(*batch))
    assert_close(token_sums(logits[3:], labels[3:], segments[3:]), TokenSums(0, 0, 0, 0))


def test_tokens_are_the_places_of_any_segment(batch):
    assert float(token_sums(*batch).tokens) == 6 + 4 + 1


def test_the_sums_of_two_halves_add_up_to_those_of_the_whole(batch):
    one, other = (token_sums(*(array[half] for array in batch)) for half in (slice(0, 1), slice(1, None)))
    assert_close([a + b for a, b in zip(one, other, strict=True)], token_sums(*batch))


def test_correct_counts_labels_with_the_highest_logit():
    logits = [[[0, 2, 1], [0, 2, 1], [5, 2, 1], [0, 2, 1]]]
    assert float(sums_of(logits, [[1, 2, 0, 1]], [[1, 1, 1, 0]]).correct) == 2


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_the_gradient_is_softmax_minus_q_at_every_real_token(smoothing, batch):
    logits, labels, segments = tf.constant(batch[0]), *batch[1:]
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = token_sums(logits, labels, segments, smoothing).loss
    expected = softmax(as_numpy(logits)) - smoothed(labels, smoothing)
    assert_close(tape.gradient(loss, logits), expected * (segments > 0)[..., None])


def test_large_logits_neither_overflow_nor_lose_the_loss():
    sums = sums_of([[[1e4, 0.0], [1e4, 0.0]]], [[0, 1]], [[1, 1]], smoothing=0.0)
    assert_close(sums, TokenSums(loss=1e4, nll=1e4, correct=1, tokens=2))


def test_half_precision_logits_are_summed_in_float32():
    logits = tf.zeros((8, 1000, 4), "float16")  # 8,000 log 4 has no neighbour in float16
    sums = token_sums(logits, np.zeros((8, 1000), "int32"), np.ones((8, 1000), "int32"))
    assert {value.dtype for value in sums} == {tf.float32}
    assert_close(sums.loss, 8000 * math.log(4))
