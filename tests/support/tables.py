"""Decoders whose outputs are known: tables of probabilities."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.state import AttendedSource, PerSentence
from tests.support.models import as_numpy, assert_close

A, B = 4, 5  # the words of the tables' language
VOCABULARY = 6  # PAD, UNK, BOS, EOS, A, B
LENGTH = 4  # of the longest output of a table, EOS included
PREFIXES = [word for length in range(LENGTH) for word in itertools.product((A, B), repeat=length)]  # (), (A,), (B,) ...
OUTPUTS = [(*prefix, EOS) for prefix in PREFIXES]


class PrefixNumbers(NamedTuple):
    """The state of a decoder of tables."""

    prefixes: Any  # int32 (B, K): places in PREFIXES
    first_rows: Any  # int32 (B, K): the first row of each sentence's table
    attended: AttendedSource  # whose `log_coverage` is the one given


class Decoder(NamedTuple):
    step: Any
    state: Any


def table(**probabilities):
    """log P(next | prefix) as (prefixes, VOCABULARY), from `AB=[P(EOS), P(A), P(B)]`; `start` is the empty prefix.

    What is not given ends with probability 1.
    """
    rows = np.full((len(PREFIXES), VOCABULARY), 1e-12)
    rows[:, EOS] = 1.0
    for name, values in probabilities.items():
        prefix = () if name == "start" else tuple({"A": A, "B": B}[letter] for letter in name)
        rows[PREFIXES.index(prefix), [EOS, A, B]] = np.maximum(values, 1e-12)
    return np.log(rows)


def random_tables(count, seed=0):
    """`count` tables of (prefixes, VOCABULARY) in which PAD, UNK and BOS are as probable as anything."""
    logits = np.random.default_rng(seed).normal(0.0, 2.0, (count, len(PREFIXES), VOCABULARY))
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def decoder_of(tables, hypotheses, coverages=None):
    """A step function over `tables` (B, prefixes, VOCABULARY), whose state is the number of each hypothesis's prefix.

    Its logits are the tables' log-probabilities plus a number that differs from row to row, as a network's are.
    `coverages` (B, prefixes) is `log_coverage` of the outputs that consist of a prefix and EOS.
    """
    coverages = np.zeros((len(tables), len(PREFIXES))) if coverages is None else coverages
    coverages = ops.convert_to_tensor(np.reshape(coverages, -1), dtype="float32")
    logits = np.reshape(tables, (-1, VOCABULARY))
    logits = ops.convert_to_tensor(logits + np.sin(np.arange(len(logits)))[:, np.newaxis], dtype="float32")
    first_rows = np.repeat(np.arange(len(tables))[:, np.newaxis] * len(PREFIXES), hypotheses, axis=1).astype("int32")

    def step(state, tokens, position):
        longer = ops.clip(2 * state.prefixes + 1 + (tokens - A), 0, len(PREFIXES) - 1)  # its place in PREFIXES
        prefixes = ops.where(position == 0, 0, longer)
        rows = state.first_rows + prefixes
        sums = ops.exp(ops.expand_dims(ops.take(coverages, rows), 2))  # of a source of one token
        state = state._replace(prefixes=prefixes, attended=state.attended._replace(sums=sums))
        return ops.take(logits, ops.reshape(rows, (-1,)), axis=0), state

    no_prefix = ops.zeros((len(tables), hypotheses), dtype="int32")
    attended = AttendedSource(ops.zeros((*first_rows.shape, 1)), PerSentence(ops.ones((len(tables), 1, 1), "bool")))
    return Decoder(step, PrefixNumbers(no_prefix, ops.convert_to_tensor(first_rows), attended))


DIVISORS = {"gnmt": lambda length: (5 + length) / 6, "tokens": lambda length: length}  # of log P, to the alpha


def ranked_outputs(log_probs, alpha, limit=LENGTH, penalties=None, normalization="gnmt"):
    """Every output of one table with at most `limit` tokens, and its score: a list of (score, tokens), best first.

    `penalties` (prefixes,) are added to the scores of the outputs that consist of a prefix and EOS.
    """
    penalties = np.zeros(len(PREFIXES)) if penalties is None else penalties
    scored = []
    for output in OUTPUTS:
        if len(output) <= limit:
            gained = [log_probs[PREFIXES.index(output[:n]), token] for n, token in enumerate(output)]
            score = sum(gained) / DIVISORS[normalization](len(output)) ** alpha
            score += penalties[PREFIXES.index(output[:-1])]
            scored.append((score, output))
    return sorted(scored, reverse=True)


def tokens_of(ids):
    """One output without its padding."""
    return tuple(int(token) for token in np.asarray(ids) if token)


def assert_ranked(found, expected):
    """The same outputs in the same order, with the same scores: lists of (score, tokens)."""
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    np.testing.assert_allclose([score for score, _ in found], [score for score, _ in expected], atol=1e-4)


def assert_same_hypotheses(some, others):
    """Two searches found the same outputs with the same scores: of each, ids (B, K, L) and scores (B, K)."""
    for row, other, scores, other_scores in zip(*map(as_numpy, (some[0], others[0])), some[1], others[1], strict=True):
        assert [tokens_of(ids) for ids in row] == [tokens_of(ids) for ids in other]
        assert_close(scores, other_scores, atol=1e-4)
