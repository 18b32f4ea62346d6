"""Beam search over tables of probabilities, small enough to look at every output."""

import numpy as np
import pytest

from keras_transformer.decoding import beam_search, greedy_search
from keras_transformer.decoding.scores import NEVER
from keras_transformer.tokens import BOS, EOS, PAD, UNK
from tests.support.models import as_numpy, assert_close
from tests.support.tables import LENGTH, OUTPUTS, A, B, decoder_of, random_tables, ranked_outputs, table, tokens_of

ALPHAS = [0.0, 0.6, 1.0]


def beam(tables, beam_size, alpha=0.6, n_best=1, limits=None):
    """Returns for each table a list of (score, tokens), best first, without the places that stayed empty."""
    step, cache = decoder_of(tables, beam_size)
    limits = np.full(len(tables), LENGTH, "int32") if limits is None else np.array(limits, "int32")
    ids, scores = beam_search(step, cache, limits, LENGTH, beam_size, alpha, n_best)
    assert ids.shape == (len(tables), beam_size, LENGTH) and scores.shape == (len(tables), beam_size)
    pairs = zip(as_numpy(ids), as_numpy(scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


def best(log_probs, *args, **kwargs):
    """The best output of one table."""
    return beam([log_probs], *args, **kwargs)[0][0][1]


def assert_same_ranking(found, expected):
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert_close([score for score, _ in found], [score for score, _ in expected])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_as_wide_as_the_language_ranks_all_its_outputs(alpha):
    tables, limits = random_tables(8), [4, 4, 4, 4, 4, 3, 2, 1]
    found = beam(tables, len(OUTPUTS), alpha, n_best=len(OUTPUTS), limits=limits)
    for log_probs, ranking, limit in zip(tables, found, limits, strict=True):
        assert_same_ranking(ranking, ranked_outputs(log_probs, alpha, limit))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_best", [1, 3])
def test_stopping_early_loses_none_of_the_n_best(alpha, n_best):
    tables = random_tables(16, seed=1)
    for log_probs, ranking in zip(tables, beam(tables, len(OUTPUTS), alpha, n_best), strict=True):
        assert_same_ranking(ranking[:n_best], ranked_outputs(log_probs, alpha)[:n_best])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_of_one_is_greedy(alpha):
    tables, limits = random_tables(32, seed=2), np.arange(32, dtype="int32") % LENGTH + 1
    found = beam(tables, 1, alpha, limits=limits)
    step, cache = decoder_of(tables, 1)
    ids, scores = greedy_search(step, cache, limits, LENGTH, alpha)
    assert [ranking[0][1] for ranking in found] == [tokens_of(row) for row in as_numpy(ids)[:, 0]]
    assert_close([ranking[0][0] for ranking in found], as_numpy(scores)[:, 0])


def test_a_beam_of_two_comes_back_from_a_garden_path():
    garden = table(start=[0.0, 0.6, 0.4], A=[0.3, 0.3, 0.4], B=[0.9, 0.1, 0.0])
    assert best(garden, 1)[:1] == (A,)  # 0.6 * 0.4 at the most
    assert best(garden, 2) == (B, EOS)  # 0.4 * 0.9


def test_the_length_penalty_decides_between_short_and_long():
    log_probs = table(start=[0.5, 0.45, 0.05], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])
    assert best(log_probs, 2, alpha=0.0) == (EOS,)  # ln 0.50 = -0.69 against ln 0.45 = -0.80
    assert best(log_probs, 2, alpha=1.0) == (A, A, A, EOS)  # -0.69 / 1 against -0.80 / 1.5 = -0.53


@pytest.mark.parametrize("alpha, expected", [(0.0, 1), (1.0, 4)])
def test_it_goes_on_while_a_live_hypothesis_could_win_and_no_longer(alpha, expected):
    """After the first step EOS leads with -0.69; A has -0.80, which the penalty of 4 tokens can raise to -0.53."""
    step, cache = decoder_of([table(start=[0.5, 0.45, 0.05], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])], 2)
    positions = []

    def counted(cache, tokens, position):
        positions.append(int(position))
        return step(cache, tokens, position)

    beam_search(counted, cache, np.array([LENGTH], "int32"), LENGTH, 2, alpha)
    assert len(positions) == expected


def test_the_second_best_is_waited_for_where_two_are_asked():
    log_probs = table(start=[0.9, 0.06, 0.04], A=[0.1, 0.9, 0.0])
    assert [tokens for _, tokens in beam([log_probs], 3, alpha=0.0, n_best=1)[0]] == [(EOS,)]
    assert [tokens for _, tokens in beam([log_probs], 3, alpha=0.0, n_best=2)[0]][:2] == [(EOS,), (A, A, EOS)]


def test_an_ended_hypothesis_keeps_its_place_so_the_beam_narrows():
    """EOS takes one of two places at the first step, so of A only its best continuation is followed."""
    log_probs = table(start=[0.4, 0.6, 0.0], A=[0.0, 0.6, 0.4])
    assert [tokens for _, tokens in beam([log_probs], 2, n_best=2)[0]] == [(A, A, EOS), (EOS,)]


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_no_output_comes_twice_and_each_has_its_own_score(beam_size):
    tables = random_tables(16, seed=3)
    for log_probs, ranking in zip(tables, beam(tables, beam_size, n_best=beam_size), strict=True):
        scores = {tokens: score for score, tokens in ranked_outputs(log_probs, 0.6)}
        outputs = [tokens for _, tokens in ranking]
        assert len(set(outputs)) == len(outputs) == beam_size
        assert_close([score for score, _ in ranking], [scores[tokens] for tokens in outputs])
        assert [score for score, _ in ranking] == sorted((score for score, _ in ranking), reverse=True)


def test_an_output_is_words_then_eos_then_padding():
    tables = random_tables(16, seed=4)
    tables[:, :, [PAD, UNK, BOS]] += 20.0  # however probable special ids are
    limits = np.arange(16, dtype="int32") % LENGTH + 1
    step, cache = decoder_of(tables, 3)
    ids, scores = beam_search(step, cache, limits, LENGTH, 3, 0.6, 3)
    for hypotheses, row_scores, limit in zip(as_numpy(ids), as_numpy(scores), limits, strict=True):
        for row, score in zip(hypotheses, row_scores, strict=True):
            if score < NEVER / 2:
                assert not row.any()  # a place that no output reached
                continue
            end = list(row).index(EOS)
            assert end < limit and set(row[:end]) <= {A, B} and not row[end + 1 :].any()


def test_a_limit_of_one_leaves_the_empty_output_at_the_price_of_eos():
    assert_same_ranking(
        beam([table(start=[0.1, 0.5, 0.4])], 4, n_best=4, limits=[1])[0], [(np.log(0.1), (EOS,))]
    )  # fmt: skip


def test_a_beam_wider_than_the_vocabulary():
    tables = random_tables(3, seed=5)
    for log_probs, ranking in zip(tables, beam(tables, 40, n_best=40), strict=True):
        assert_same_ranking(ranking, ranked_outputs(log_probs, 0.6))
