"""TokenAccuracy and Perplexity: closed forms, padding, weights, batches that add up, and their way through a file."""

import math

import keras
import numpy as np
import pytest

from keras_transformer.losses import perplexity, token_sums
from keras_transformer.metrics import Perplexity, TokenAccuracy, TokenMean
from tests.support.models import assert_close, normal

LABELS = np.array([[1, 2, 3, 0], [4, 0, 0, 0]], "int32")
LOGITS = 2.0 * normal(2, 4, 5)


@pytest.fixture(params=[TokenAccuracy, Perplexity])
def metric(request):
    return request.param()


def test_if_all_words_are_as_likely_the_perplexity_is_their_number():
    assert_close(Perplexity()(LABELS, np.zeros((2, 4, 5))), 5.0)


def test_the_perplexity_of_a_diverged_model_is_a_number():
    assert perplexity(0.0) == 1.0 and math.isfinite(perplexity(1e6))


def test_a_label_three_times_as_likely_as_the_other_word_has_a_perplexity_of_4_thirds():
    assert_close(Perplexity()([[1]], [[[0.0, math.log(3)]]]), 4 / 3)


def test_accuracy_is_the_share_of_real_tokens_with_the_highest_logit():
    logits = 9.0 * np.eye(5)[[[1, 2, 4, 0], [0, 0, 0, 0]]]
    assert_close(TokenAccuracy()(LABELS, logits), 2 / 4)


def test_both_are_those_of_token_sums():
    sums = token_sums(LOGITS, LABELS, LABELS, smoothing=0.3)
    assert_close(Perplexity()(LABELS, LOGITS), math.exp(float(sums.nll / sums.tokens)))
    assert_close(TokenAccuracy()(LABELS, LOGITS), float(sums.correct / sums.tokens))


def test_padding_counts_nothing(metric):
    expected = metric(LABELS, LOGITS)
    metric.reset_state()
    assert_close(metric(LABELS, np.where(LABELS[..., None] == 0, 1e4, LOGITS)), expected)


def test_batches_of_different_numbers_of_tokens_weigh_by_their_tokens(metric):
    expected = metric(LABELS, LOGITS)
    metric.reset_state()
    for row in range(2):  # 3 tokens, then 1
        metric.update_state(LABELS[row : row + 1], LOGITS[row : row + 1])
    assert_close(metric.result(), expected)


def test_a_weight_of_0_leaves_a_row_out(metric):
    expected = metric(LABELS[:1], LOGITS[:1])
    metric.reset_state()
    for weight in ([[1.0], [0.0]], [1.0, 0.0]):
        assert_close(metric(LABELS, LOGITS, sample_weight=np.array(weight)), expected)
        metric.reset_state()


def test_without_tokens_accuracy_is_0_and_perplexity_1_and_nothing_is_nan():
    assert float(TokenAccuracy().result()) == 0.0
    assert float(Perplexity()(np.zeros((1, 2)), np.zeros((1, 2, 5)))) == 1.0


def test_a_reset_forgets(metric):
    metric(LABELS, LOGITS)
    metric.reset_state()
    assert [float(variable.value) for variable in metric.variables] == [0.0, 0.0]


def test_half_precision_logits_are_summed_in_float32():
    logits = keras.ops.zeros((8, 1000, 4), "float16")
    assert_close(Perplexity()(np.ones((8, 1000)), logits), 4.0)


def test_sums_are_float32_whatever_keras_default_is(bfloat16_by_default):
    for kind in (TokenAccuracy, Perplexity):
        metric = kind()
        for _ in range(3):  # neither 301 nor 903 is a bfloat16
            metric.update_state(np.ones((1, 301)), np.zeros((1, 301, 4), "float32"))
        assert float(metric.tokens) == 903.0 and metric.result().dtype == "float32"


@pytest.mark.parametrize(("kind", "name"), [(TokenAccuracy, "accuracy"), (Perplexity, "perplexity")])
def test_it_comes_back_from_its_config(kind, name):
    assert kind().name == name
    metric = kind(name="other")
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(restored) is kind and restored.get_config() == metric.get_config() | {"name": "other"}


def test_a_mean_of_tokens_has_a_value_of_its_own():
    with pytest.raises(NotImplementedError):
        TokenMean().update_state([[1, 0]], np.zeros((1, 2, 3), "float32"))
