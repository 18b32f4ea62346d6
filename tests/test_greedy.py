"""Greedy search over tables of probabilities."""

import numpy as np
import pytest

from keras_transformer.decoding import greedy_search
from keras_transformer.tokens import BOS, EOS, PAD, UNK
from tests.support.models import as_numpy, assert_close
from tests.support.tables import LENGTH, PREFIXES, A, B, decoder_of, random_tables, table, tokens_of


def greedy(tables, limits=None, alpha=0.6):
    """Returns a list of outputs and their scores (B,)."""
    step, cache = decoder_of(tables, 1)
    limits = np.full(len(tables), LENGTH, "int32") if limits is None else np.array(limits, "int32")
    ids, scores = greedy_search(step, cache, limits, LENGTH, alpha)
    assert ids.shape == (len(tables), 1, LENGTH) and scores.shape == (len(tables), 1)
    return [tokens_of(row) for row in as_numpy(ids)[:, 0]], as_numpy(scores)[:, 0]


def follow(log_probs, limit):
    """The most probable token again and again, in Python: tokens and their log-probability."""
    output, total = (), 0.0
    while EOS not in output:
        row = log_probs[PREFIXES.index(output)]
        token = EOS if len(output) + 1 == limit else max((EOS, A, B), key=lambda choice: row[choice])
        output, total = (*output, token), total + row[token]
    return output, total


def test_it_takes_the_most_probable_token_every_time():
    outputs, scores = greedy([table(start=[0.3, 0.4, 0.3], A=[0.2, 0.1, 0.7], AB=[0.9, 0.1, 0.0])], alpha=0.0)
    assert outputs == [(A, B, EOS)]
    assert_close(scores, [np.log(0.4 * 0.7 * 0.9)])


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_random_tables_within_their_limits(alpha):
    tables, limits = random_tables(12), np.arange(12) % LENGTH + 1
    outputs, scores = greedy(tables, limits, alpha)
    expected = [follow(log_probs, limit) for log_probs, limit in zip(tables, limits, strict=True)]
    assert outputs == [output for output, _ in expected]
    assert_close(scores, [total / ((5 + len(output)) / 6) ** alpha for output, total in expected])


def test_special_ids_never_come_out_however_probable():
    tables = random_tables(4)
    tables[:, :, [PAD, UNK, BOS]] += 20.0
    outputs, scores = greedy(tables)
    assert all(token in (EOS, A, B) for output in outputs for token in output)
    assert (scores < -15).all()  # what they take of the probability is missing
