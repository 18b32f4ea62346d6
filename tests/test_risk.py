"""The expected cost of minimum risk training: its formula, its laws, and what a block of rows adds."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import token_sums
from keras_transformer.risk import expected_costs, risk_sums

B, K, M, V, T = 3, 4, 2, 7, 6


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def example(rng):
    """log_probs, costs (B, K, M), and which of them are candidates: at least two of each sentence."""
    is_candidate = rng.random((B, K, M)) < 0.7
    is_candidate[:, :2] = True
    return -10 * rng.random((B, K, M)), rng.random((B, K, M)), is_candidate


@pytest.mark.parametrize("sharpness", [0.005, 0.5, 1.0, 3.0])
def test_the_cost_is_the_mean_over_the_sharpened_distribution_of_the_candidates(rng, sharpness):
    """Shen et al. 2016, eq. 11 and 12, with probabilities in place of logarithms."""
    log_probs, costs, is_candidate = example(rng)
    powers = np.where(is_candidate, np.exp(log_probs) ** sharpness, 0.0)
    expected = (powers * costs).sum(1) / powers.sum(1)
    np.testing.assert_allclose(expected_costs(log_probs, costs, is_candidate, sharpness), expected, rtol=1e-5)


def test_with_a_sharpness_of_0_every_candidate_counts_the_same(rng):
    log_probs, costs, is_candidate = example(rng)
    expected = (costs * is_candidate).sum(1) / is_candidate.sum(1)
    np.testing.assert_allclose(expected_costs(log_probs, costs, is_candidate, 0.0), expected, rtol=1e-5)


def test_a_large_sharpness_leaves_the_most_probable_candidate(rng):
    log_probs, costs, is_candidate = example(rng)
    best = np.where(is_candidate, log_probs, -np.inf).argmax(1)
    expected = np.take_along_axis(costs, best[:, None], 1)[:, 0]
    np.testing.assert_allclose(expected_costs(log_probs, costs, is_candidate, 1e4), expected, rtol=1e-5)


def test_what_is_no_candidate_has_no_influence_and_without_any_the_cost_is_0(rng):
    log_probs, costs, is_candidate = example(rng)
    found = expected_costs(log_probs, costs, is_candidate, 0.5)
    others = np.where(is_candidate, log_probs, 50.0), np.where(is_candidate, costs, -1.0)
    np.testing.assert_array_equal(expected_costs(*others, is_candidate, 0.5), found)
    np.testing.assert_array_equal(expected_costs(log_probs, costs, np.zeros_like(is_candidate), 0.5), np.zeros((B, M)))


def test_equal_costs_are_the_expected_cost_whatever_is_probable(rng):
    log_probs, _, is_candidate = example(rng)
    found = expected_costs(log_probs, np.full_like(log_probs, 0.3), is_candidate, 0.5)
    np.testing.assert_allclose(found, np.full((B, M), 0.3), rtol=1e-6)


def block(rng, candidates=3, segments=(1, 1, 2, 2, 2, 0)):
    """Logits, labels, segments and costs of two blocks of 1 + candidates rows, each with two sentences."""
    rows = 2 * (1 + candidates)
    segments = np.tile(segments, (rows, 1))
    segments[1, 1], segments[2, 5] = 2, 2  # candidates are longer or shorter than their references
    costs = rng.random((rows, 3))
    costs[:: 1 + candidates] = -1  # references
    costs[1 + candidates + 2, 1] = -1  # the second sentence of the second block has fewer candidates
    costs[1, 1] = 0  # as good as its reference
    costs = np.where(segments > 0, np.take_along_axis(costs, segments, 1), -1.0)
    return rng.normal(size=(rows, T, V)), rng.integers(0, V, (rows, T)), segments, costs.astype("float32")


def log_prob(logits, labels, segments, row, segment):
    """The log-probability of one sentence, summed token by token."""
    found = 0.0
    for place in np.flatnonzero(segments[row] == segment):
        exponentials = np.exp(logits[row, place])
        found += np.log(exponentials[labels[row, place]] / exponentials.sum())
    return found


def test_a_batch_adds_the_expected_cost_of_each_sentence_as_often_as_its_reference_has_tokens(rng):
    logits, labels, segments, costs = block(rng)
    expected = 0.0
    for first in (0, 4):
        for segment in (1, 2):
            shares, of_candidates = [], []
            for row in range(first + 1, first + 4):
                cost = costs[row][segments[row] == segment][0]
                if cost >= 0:
                    shares.append(np.exp(log_prob(logits, labels, segments, row, segment)) ** 0.5)
                    of_candidates.append(cost)
            tokens = (segments[first] == segment).sum()
            expected += tokens * np.dot(shares, of_candidates) / np.sum(shares)
    sums = risk_sums(logits.astype("float32"), labels, segments, costs, 3, 0.5)
    assert float(sums.loss) == pytest.approx(expected, rel=1e-5)


def test_likelihood_hits_and_tokens_are_those_of_the_references(rng):
    logits, labels, segments, costs = block(rng)
    logits = logits.astype("float32")
    found = risk_sums(logits, labels, segments, costs, 3, 0.5)
    expected = token_sums(logits[::4], labels[::4], segments[::4], smoothing=0.0)
    for name in ("nll", "correct", "tokens"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(expected, name)), rel=1e-5), name


def test_blocks_are_added(rng):
    logits, labels, segments, costs = block(rng)
    parts = [
        risk_sums(*(one[rows] for one in (logits.astype("float32"), labels, segments, costs)), 3, 0.5)
        for rows in (slice(0, 4), slice(4, 8))
    ]
    for one, other, both in zip(
        *parts, risk_sums(logits.astype("float32"), labels, segments, costs, 3, 0.5), strict=True
    ):
        assert float(one) + float(other) == pytest.approx(float(both), rel=1e-5)


def differences(logits, *others):
    """The gradient of the summed risk with respect to the logits, by central differences."""
    found = np.zeros_like(logits)
    for place in np.ndindex(*logits.shape):
        values = []
        for step in (1e-2, -1e-2):
            moved = logits.copy()
            moved[place] += step
            values.append(float(risk_sums(moved.astype("float32"), *others).loss))
        found[place] = (values[0] - values[1]) / 2e-2
    return found


def gradient_of(logits, *others):
    logits = tf.constant(logits, "float32")
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = risk_sums(logits, *others).loss
    return tape.gradient(loss, logits).numpy()


def test_the_gradient_is_that_of_central_differences_and_references_and_padding_have_none(rng):
    logits, *others = block(rng)
    gradient = gradient_of(logits, *others, 3, 0.5)
    np.testing.assert_allclose(gradient, differences(logits, *others, 3, 0.5), atol=2e-3)
    _, segments, _ = others
    assert not gradient[::4].any() and not gradient[segments == 0].any() and gradient[segments > 0].any()


def test_a_step_down_makes_the_cheaper_candidate_more_probable_and_the_dearer_one_less(rng):
    labels = np.array([[1, 2], [3, 4], [5, 6]])
    segments, costs = np.ones((3, 2), int), np.array([[-1, -1], [0.2, 0.2], [0.7, 0.7]], "float32")
    before = rng.normal(size=(3, 2, V))
    after = before - gradient_of(before, labels, segments, costs, 2, 0.5)
    assert log_prob(after, labels, segments, 1, 1) > log_prob(before, labels, segments, 1, 1)
    assert log_prob(after, labels, segments, 2, 1) < log_prob(before, labels, segments, 2, 1)
    np.testing.assert_array_equal(after[0], before[0])
