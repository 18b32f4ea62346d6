"""The score of a hypothesis, and which tokens may continue it."""

import math

import numpy as np

from keras_transformer.decoding.scores import NEVER, allowed_tokens, length_penalty, log_normaliser
from keras_transformer.tokens import BOS, EOS, PAD, UNK
from tests.support.models import as_numpy, assert_close, normal


def test_the_penalty_of_1_token_is_1_and_of_7_tokens_2_to_the_alpha():
    assert_close(length_penalty(np.array([1, 7]), 1.0), [1.0, 2.0])
    assert_close(length_penalty(np.array([1, 7]), 0.6), [1.0, 2.0**0.6])
    assert_close(length_penalty(np.array([1, 7]), 0.0), [1.0, 1.0])


def test_a_logit_minus_the_normaliser_is_a_log_probability():
    assert_close(log_normaliser(np.log([[1.0, 3.0]]).astype("float32")), [[math.log(4.0)]])
    logits = normal(5, 9)
    assert_close(np.exp(logits - as_numpy(log_normaliser(logits))).sum(-1), np.ones(5))


def test_words_and_eos_may_come_next_and_only_eos_at_the_last_position():
    allowed = as_numpy(allowed_tokens(7, np.array([False, True]))).astype(bool)
    special = [PAD, UNK, BOS]
    assert not allowed[:, special].any()
    assert allowed[0, [EOS, 4, 5, 6]].all()
    assert list(np.flatnonzero(allowed[1])) == [EOS]


def test_sums_of_never_stay_finite_and_below_every_real_score():
    assert np.isfinite(np.float32(NEVER) * 1000)
    assert np.float32(NEVER) + np.float32(-1e4) < np.float32(-1e6)
