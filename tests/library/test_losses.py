"""Label-smoothed cross-entropy: closed forms, sums that add up, and the gradient softmax - q."""

import importlib.util
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import losses as losses_module
from keras_transformer.ground.tokens import NO_CLASS
from keras_transformer.losses import (
    LabelSmoothedCrossentropy,
    TokenSums,
    perplexity,
    perplexity_text,
    shares,
    token_losses,
    token_sums,
)
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


@pytest.mark.slow
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


@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("of_loss", [0.0, 2.0])
def test_the_gradients_of_loss_and_negative_log_likelihood_add_up(of_loss, smoothing, batch):
    """Each is softmax minus what the label should have: q, or 1 at the label."""
    logits, labels, _ = tf.constant(batch[0]), *batch[1:]
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, nll, _ = token_losses(logits, labels, smoothing)
        total = of_loss * loss + 3.0 * nll
    probabilities = softmax(as_numpy(logits))
    expected = of_loss * (probabilities - smoothed(labels, smoothing)) + 3.0 * (probabilities - smoothed(labels, 0.0))
    assert_close(tape.gradient(total, logits), expected)


def test_large_logits_neither_overflow_nor_lose_the_loss():
    sums = sums_of([[[1e4, 0.0], [1e4, 0.0]]], [[0, 1]], [[1, 1]], smoothing=0.0)
    assert_close(sums, TokenSums(loss=1e4, nll=1e4, correct=1, tokens=2))


def test_half_precision_logits_are_summed_in_float32():
    logits = tf.zeros((8, 1000, 4), "float16")  # 8,000 log 4 has no neighbour in float16
    sums = token_sums(logits, np.zeros((8, 1000), "int32"), np.ones((8, 1000), "int32"))
    assert {value.dtype for value in sums} == {tf.float32}
    assert_close(sums.loss, 8000 * math.log(4))


# The loss for `model.compile`. Two replicas: test_two_replicas.py


@pytest.fixture
def padded_batch(batch):
    """labels 0 where `batch` has segment 0, and nowhere else; logits; segments."""
    logits, labels, segments = batch
    return np.where(segments == 0, 0, np.maximum(labels, 1)), logits, segments


def value_and_gradient(function, logits):
    logits = tf.convert_to_tensor(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = function(logits)
    return value, tape.gradient(value, logits)


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_the_keras_loss_has_value_and_gradient_of_the_training_steps_mean(smoothing, padded_batch):
    labels, logits, segments = padded_batch

    def mean(logits):
        sums = token_sums(logits, labels, segments, smoothing)
        return sums.loss / sums.tokens

    found = value_and_gradient(lambda logits: LabelSmoothedCrossentropy(smoothing)(labels, logits), logits)
    for one, other in zip(found, value_and_gradient(mean, logits), strict=True):
        assert_close(one, other, atol=1e-6, rtol=1e-6)


def test_the_smoothing_of_the_keras_loss_is_the_papers():
    assert LabelSmoothedCrossentropy().smoothing == 0.1
    confident = LabelSmoothedCrossentropy()([[1]], [[[-30.0, 30.0]]])  # p = (0, 1), q = (0.05, 0.95)
    assert_close(confident, 0.05 * 60)


def test_a_label_of_0_is_padding_to_the_keras_loss(padded_batch):
    labels, logits, _ = padded_batch
    expected = LabelSmoothedCrossentropy()(labels, logits)
    assert_close(LabelSmoothedCrossentropy()(labels, np.where(labels[..., None] == 0, 1e4, logits)), expected)
    wider = np.pad(labels, ((0, 3), (0, 2))), np.pad(logits, ((0, 3), (0, 2), (0, 0)))
    assert_close(LabelSmoothedCrossentropy()(*wider), expected)


def test_a_batch_of_padding_alone_has_loss_and_gradient_0():
    loss = LabelSmoothedCrossentropy()
    value, gradient = value_and_gradient(lambda logits: loss(np.zeros((2, 3)), logits), normal(2, 3, 5))
    assert float(value) == 0.0
    assert_close(gradient, np.zeros((2, 3, 5)))


def test_a_label_is_that_label_whatever_keras_default_is(bfloat16_by_default):
    logits = 9.0 * np.eye(300, dtype="float32")[[[257]]]  # in bfloat16 the label 257 would be 256
    loss = LabelSmoothedCrossentropy(smoothing=0.0)([[257]], logits)
    assert loss.dtype == "float32"
    assert_close(loss, math.log(1 + 299 * math.exp(-9)))


@pytest.mark.parametrize("reduction", ["none", None])
def test_unreduced_it_is_the_loss_of_each_token(reduction, padded_batch):
    labels, logits, segments = padded_batch
    expected = token_losses(logits, labels)[0] * (segments > 0)
    assert_close(LabelSmoothedCrossentropy(reduction=reduction)(labels, logits), expected)


def test_summed_it_is_the_sum_of_the_training_step(padded_batch):
    labels, logits, segments = padded_batch
    found = LabelSmoothedCrossentropy(reduction="sum")(labels, logits)
    assert_close(found, token_sums(logits, labels, segments).loss)


def test_a_weight_multiplies_the_loss_of_its_tokens(padded_batch):
    labels, logits, _ = padded_batch
    weights = np.array([[2.0], [0.0], [1.0], [1.0]])
    losses = as_numpy(LabelSmoothedCrossentropy(reduction=None)(labels, logits))
    expected = (losses * weights).sum() / (labels != 0).sum()
    assert_close(LabelSmoothedCrossentropy()(labels, logits, sample_weight=weights), expected)
    assert_close(LabelSmoothedCrossentropy()(labels, logits, sample_weight=weights[:, 0]), expected)


@pytest.mark.parametrize("weight", [2, 2.0, np.float64(2), np.array([2.0])])
def test_one_weight_for_all_multiplies_the_loss(padded_batch, weight):
    labels, logits, _ = padded_batch
    expected = 2 * as_numpy(LabelSmoothedCrossentropy()(labels, logits))
    assert_close(LabelSmoothedCrossentropy()(labels, logits, sample_weight=weight), expected)


def test_no_rows_have_no_loss():
    labels, logits = np.zeros((0, 3), "int32"), np.zeros((0, 3, 7), "float32")
    assert as_numpy(LabelSmoothedCrossentropy(reduction="sum")(labels, logits)) == 0
    assert as_numpy(token_sums(logits, labels, labels)).tolist() == [0, 0, 0, 0]


def test_one_weight_for_each_row_is_none_for_positions_where_there_are_as_many():
    rng = np.random.default_rng(4)
    labels, logits, weights = rng.integers(1, 7, (3, 3)), rng.normal(size=(3, 3, 7)), np.array([1.0, 0.0, 2.0])
    losses = as_numpy(LabelSmoothedCrossentropy(reduction=None)(labels, logits))
    found = LabelSmoothedCrossentropy()(labels, logits, sample_weight=weights)
    assert_close(found, (losses * weights[:, np.newaxis]).mean(), rtol=1e-5)


def test_a_mask_that_keras_carries_with_the_logits_does_not_weigh_tokens_again(padded_batch):
    labels, logits, _ = padded_batch
    masked = keras.layers.Activation("linear")(keras.layers.Masking()(tf.constant(logits)))
    assert masked._keras_mask is not None
    masked._keras_mask = tf.constant(labels != 0)
    assert_close(LabelSmoothedCrossentropy()(labels, masked), LabelSmoothedCrossentropy()(labels, logits))


def test_the_keras_loss_comes_back_from_its_config():
    loss = LabelSmoothedCrossentropy(0.2, reduction="sum", name="mine")
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert isinstance(restored, LabelSmoothedCrossentropy)
    assert restored.get_config() == {"name": "mine", "reduction": "sum", "smoothing": 0.2}


@pytest.mark.parametrize(
    "arguments",
    [{"smoothing": 1.0}, {"smoothing": -0.1}, {"smoothing": "0.1"}, {"reduction": "mean_with_sample_weight"}],
)
def test_what_makes_no_sense_is_refused_by_name(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must be .* Received: {name}='?{value}"):
        LabelSmoothedCrossentropy(**arguments)


def test_a_perplexity_that_no_float_holds_is_a_large_number():
    assert 1e300 < perplexity(1e4) < math.inf and perplexity(0.0) == 1.0
    assert [perplexity_text(perplexity(nll), 2) for nll in (0.0, 9.0, 1e4)] == ["1.00", "8103.08", "1.01e+304"]


def test_losses_of_replicas_with_other_numbers_of_rows_have_the_mean_of_all_and_the_same_gradient(monkeypatch):
    """Keras averages what is logged by rows; a replica with 2 of the 8 rows of 2 replicas counts half."""
    monkeypatch.setattr(losses_module, "replica_count", lambda: 2)
    monkeypatch.setattr(losses_module, "sum_over_replicas", lambda rows: rows + 6)
    losses = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(losses)
        logged = losses_module.as_logged(losses)
    assert_close(logged, as_numpy(losses) * 2)
    assert_close(tape.gradient(logged, losses), np.ones((2, 3)))


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_pieces_that_are_never_written_have_no_share_of_the_smoothing(smoothing, batch):
    """The loss and its gradient are those of a model without these classes."""
    logits, labels, segments = batch
    logits = np.array(logits)
    bias = np.append(np.zeros(VOCABULARY, "float32"), [NO_CLASS, NO_CLASS])
    wider = tf.constant(np.concatenate([logits, np.full((*logits.shape[:2], 2), NO_CLASS, "float32")], axis=-1))
    with tf.GradientTape() as tape:
        tape.watch(wider)
        loss = token_sums(wider, labels, segments, shares(smoothing, bias)).loss
    assert_close(loss, token_sums(logits, labels, segments, smoothing).loss)
    gradient, narrow = as_numpy(tape.gradient(loss, wider)), tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(narrow)
        loss = token_sums(narrow, labels, segments, smoothing).loss
    assert_close(gradient[..., :VOCABULARY], tape.gradient(loss, narrow))
    assert np.abs(gradient[..., VOCABULARY:]).max() < 1e-30
    assert shares(smoothing, None) == smoothing
