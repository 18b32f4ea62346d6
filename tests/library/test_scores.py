"""The score of a hypothesis."""

import math

import numpy as np

from keras_transformer.search.options import LONGEST_OUTPUT, OPTIONS
from keras_transformer.search.scores import LEAST_COVERED, NEVER, length_penalty, log_coverage, log_normaliser
from tests.support.models import assert_close, normal


def test_the_penalty_of_1_token_is_1_and_of_7_tokens_2_to_the_alpha():
    assert_close(length_penalty(np.array([1, 7]), 1.0), [1.0, 2.0])
    assert_close(length_penalty(np.array([1, 7]), 0.6), [1.0, 2.0**0.6])
    assert_close(length_penalty(np.array([1, 7]), 0.0), [1.0, 1.0])


def test_by_tokens_the_penalty_is_the_number_of_tokens_to_the_alpha():
    assert_close(length_penalty(np.array([1, 7]), 1.0, "tokens"), [1.0, 7.0])
    assert_close(length_penalty(np.array([1, 4]), 0.5, "tokens"), [1.0, 2.0])
    assert_close(length_penalty(np.array([1, 7]), 0.0, "tokens"), [1.0, 1.0])


def test_coverage_is_the_sum_of_logarithms_of_attention_up_to_1():
    """Wu et al. 2016, eq. 14, of one hypothesis and three: more than 1 counts as 1, and what is no token not at all."""
    is_source = np.array([[[True, True, True, False]]])
    attended = np.array([[[0.5, 0.25, 1.5, 0.0], [1.0, 1.0, 1.0, 9.0], [3.0, 2.0, 1.0, 0.1]]], "float32")
    assert_close(log_coverage(attended, is_source), [[math.log(0.5 * 0.25), 0.0, 0.0]])


def test_coverage_without_any_attention_is_finite():
    found = log_coverage(np.array([[0.0, 1e-30, 1.0]], "float32"), np.array([[True, True, True]]))
    assert_close(found, [2 * math.log(LEAST_COVERED)])
    assert_close(log_coverage(np.zeros((1, 2), "float32"), np.zeros((1, 2), bool)), [0.0])  # a blank source


def test_a_logit_minus_the_normaliser_is_a_log_probability():
    logits = np.log([[1.0, 3.0], [2.0, 2.0]]).astype("float32")
    found = log_normaliser(logits, logits.max(1, keepdims=True), np.array([1, 0], "int32"))
    assert_close(found, [[math.log(4.0)], [math.log(4.0)]])


def test_the_normaliser_is_that_of_every_logit_however_far_they_lie_apart():
    logits = normal(5, 9) * 40.0
    found = log_normaliser(logits, logits.max(1, keepdims=True), logits.argmax(1).astype("int32"))
    assert_close(found, np.logaddexp.reduce(logits.astype("float64"), axis=1, keepdims=True))


def test_sums_of_never_stay_finite_and_below_every_real_score():
    assert np.isfinite(np.float32(NEVER) * 1000)
    assert np.float32(NEVER) + np.float32(-1e4) < np.float32(-1e6)


def test_the_largest_length_penalty_of_the_longest_output_is_finite():
    penalty = length_penalty(LONGEST_OUTPUT, OPTIONS["length_penalty"].highest)
    assert np.isfinite(float(penalty))
