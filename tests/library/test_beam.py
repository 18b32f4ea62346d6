"""Beam search over tables of probabilities that are small enough to list every output."""

import types

import numpy as np
import pytest

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.search.beam import worst_wanted
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import LEAST_COVERED, NEVER, UNFINISHED
from tests.support.models import as_numpy, assert_close
from tests.support.searches import beam_search
from tests.support.tables import (
    DIVISORS,
    LENGTH,
    OUTPUTS,
    PREFIXES,
    A,
    B,
    decoder_of,
    random_tables,
    ranked_outputs,
    table,
    tokens_of,
)


@pytest.fixture(params=[False, True], ids=["growing", "static"], autouse=True)
def static_shapes(request, monkeypatch):
    """Every law holds for both ways of searching."""
    monkeypatch.setitem(HOW, "static_shapes", request.param)


HOW = {}
penalties = pytest.mark.parametrize(
    ("alpha", "normalization"), [(0.0, "gnmt"), (0.6, "gnmt"), (1.0, "gnmt"), (1.0, "tokens")]
)


def beam(tables, beam_size, alpha=0.6, n_best=1, limits=None, coverages=None, beta=0.0, normalization="gnmt", **rules):
    """Return a list of (score, tokens) per table, best first, without empty slots; `rules` by name."""
    step, state = decoder_of(tables, beam_size, coverages)
    limits = np.full(len(tables), LENGTH, "int32") if limits is None else np.array(limits, "int32")
    options = SearchOptions(beam_size, alpha, coverage_penalty=beta, n_best=n_best, length_normalization=normalization)
    ids, scores, _ = beam_search(step, state, {"limits": limits} | rules, LENGTH, options, **HOW)
    assert ids.shape == (len(tables), beam_size, LENGTH) and scores.shape == (len(tables), beam_size)
    pairs = zip(as_numpy(ids), as_numpy(scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


def best(log_probs, *args, **kwargs):
    """Return the best output of one table."""
    return beam([log_probs], *args, **kwargs)[0][0][1]


def greedy_output(log_probs, limit):
    """Follow the most probable token, in plain Python: the output of one table and its log-probability."""
    output, total = (), 0.0
    while EOS not in output:
        row = log_probs[PREFIXES.index(output)]
        token = EOS if len(output) + 1 == limit else max((EOS, A, B), key=lambda choice: row[choice])
        output, total = (*output, token), total + row[token]
    return output, total


def assert_same_ranking(found, expected):
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert_close([score for score, _ in found], [score for score, _ in expected])


@penalties
def test_a_beam_as_wide_as_the_language_ranks_all_its_outputs(alpha, normalization):
    tables, limits = random_tables(8), [4, 4, 4, 4, 4, 3, 2, 1]
    found = beam(tables, len(OUTPUTS), alpha, n_best=len(OUTPUTS), limits=limits, normalization=normalization)
    for log_probs, ranking, limit in zip(tables, found, limits, strict=True):
        assert_same_ranking(ranking, ranked_outputs(log_probs, alpha, limit, normalization=normalization))


@penalties
@pytest.mark.parametrize("n_best", [1, 3])
def test_stopping_early_loses_none_of_the_n_best(alpha, n_best, normalization):
    tables = random_tables(16, seed=1)
    rankings = beam(tables, len(OUTPUTS), alpha, n_best, normalization=normalization)
    for log_probs, ranking in zip(tables, rankings, strict=True):
        expected = ranked_outputs(log_probs, alpha, normalization=normalization)
        assert_same_ranking(ranking[:n_best], expected[:n_best])


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "normalization"), [(0.0, "gnmt"), (0.3, "gnmt"), (1.0, "gnmt"), (0.3, "tokens")])
@pytest.mark.parametrize("n_best", [1, len(OUTPUTS)])
def test_a_beam_as_wide_as_the_language_ranks_all_its_outputs_by_coverage_too(n_best, beta, normalization):
    """Stopping early loses none of the n_best: a live hypothesis may become covered."""
    tables = random_tables(16, seed=7)
    coverages = -np.random.default_rng(8).exponential(2.0, (len(tables), len(PREFIXES)))
    coverages = np.maximum(coverages, np.log(LEAST_COVERED))
    more = {"normalization": normalization}
    found = beam(tables, len(OUTPUTS), 0.6, n_best, coverages=coverages, beta=beta, **more)
    for log_probs, ranking, of_table in zip(tables, found, coverages, strict=True):
        expected = ranked_outputs(log_probs, 0.6, penalties=beta * of_table, **more)
        assert_same_ranking(ranking[:n_best], expected[:n_best])


def test_coverage_decides_between_an_output_that_is_probable_and_one_that_leaves_nothing_out():
    log_probs, half = table(start=[0.6, 0.4, 0.0]), np.log(0.5)  # EOS alone covers half of the only source token
    coverages = np.array([[half] + [0.0] * (len(PREFIXES) - 1)])
    found = {beta: beam([log_probs], 2, 0.0, coverages=coverages, beta=beta)[0][0] for beta in (0.0, 0.5, 1.0)}
    assert [tokens for _, tokens in found.values()] == [(EOS,), (EOS,), (A, EOS)]  # log(0.6 / 0.4) is 0.58 log(2)
    assert_close([score for score, _ in found.values()], [np.log(0.6), np.log(0.6) + 0.5 * half, np.log(0.4)])


@penalties
def test_a_beam_of_one_is_greedy(alpha, normalization):
    tables, limits = random_tables(32, seed=2), np.arange(32) % LENGTH + 1
    found = beam(tables, 1, alpha, limits=limits, normalization=normalization)
    for log_probs, ranking, limit in zip(tables, found, limits, strict=True):
        output, log_prob = greedy_output(log_probs, limit)
        assert_same_ranking(ranking, [(log_prob / DIVISORS[normalization](len(output)) ** alpha, output)])


@pytest.mark.parametrize("alpha, penalty", [(0.0, 1.0), (1.0, 8 / 6)])
def test_the_score_of_a_greedy_output_is_its_log_probability_over_the_penalty(alpha, penalty):
    log_probs = table(start=[0.3, 0.4, 0.3], A=[0.2, 0.1, 0.7], AB=[0.9, 0.1, 0.0])
    assert_same_ranking(beam([log_probs], 1, alpha)[0], [(np.log(0.4 * 0.7 * 0.9) / penalty, (A, B, EOS))])


def test_a_beam_of_two_recovers_from_a_bad_first_token():
    log_probs = table(start=[0.0, 0.6, 0.4], A=[0.3, 0.3, 0.4], B=[0.9, 0.1, 0.0])
    assert best(log_probs, 1)[:1] == (A,)  # at most 0.6 * 0.4
    assert best(log_probs, 2) == (B, EOS)  # 0.4 * 0.9


def test_the_length_penalty_decides_between_short_and_long():
    log_probs = table(start=[0.5, 0.45, 0.05], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])
    assert best(log_probs, 2, alpha=0.0) == (EOS,)  # ln 0.50 = -0.69 against ln 0.45 = -0.80
    assert best(log_probs, 2, alpha=1.0) == (A, A, A, EOS)  # -0.69 / 1 against -0.80 / 1.5 = -0.53
    log_probs = table(start=[0.5, 0.3, 0.2], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])
    assert best(log_probs, 2, alpha=1.0) == (EOS,)  # -0.69 / 1 against ln 0.3 / 1.5 = -1.20 / 1.5 = -0.80
    assert best(log_probs, 2, alpha=1.0, normalization="tokens") == (A, A, A, EOS)  # -1.20 / 4 = -0.30


@pytest.mark.parametrize("alpha, expected", [(0.0, 1), (1.0, 4)])
def test_the_search_stops_when_no_live_hypothesis_can_win(alpha, expected):
    """After step 1 EOS leads with -0.69. A has -0.80, which the penalty of 4 tokens could raise to -0.53."""
    step, state = decoder_of([table(start=[0.5, 0.45, 0.05], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])], 2)
    positions = []

    def counted(state, tokens, position):
        positions.append(int(position))
        return step(state, tokens, position)

    options = SearchOptions(beam_size=2, length_penalty=alpha)
    beam_search(counted, state, {"limits": np.array([LENGTH], "int32")}, LENGTH, options, **HOW)
    assert len(positions) == expected


def test_the_search_of_a_sentence_ends_early_by_its_own_length_penalty():
    """After step 1 EOS leads with -0.69, and A has -0.80, as above: only the sentence's own penalty lets it win."""
    short_or_long = table(start=[0.5, 0.45, 0.05], A=[0.0, 1.0, 0.0], AA=[0.0, 1.0, 0.0])
    tables, alphas = np.array([short_or_long, short_or_long, *random_tables(14, seed=6)]), np.tile([0.0, 1.0], 8)
    for options in (0.0, 1.0):
        found = beam(tables, len(OUTPUTS), alpha=options, length_penalties=alphas.astype("float32"))
        assert [ranking[0][1] for ranking in found[:2]] == [(EOS,), (A, A, A, EOS)]
        for log_probs, alpha, ranking in zip(tables, alphas, found, strict=True):
            assert_same_ranking(ranking[:1], ranked_outputs(log_probs, alpha)[:1])


def test_with_n_best_2_the_search_continues_until_the_second_best_is_known():
    log_probs = table(start=[0.9, 0.06, 0.04], A=[0.1, 0.9, 0.0])
    assert [tokens for _, tokens in beam([log_probs], 3, alpha=0.0, n_best=1)[0]] == [(EOS,)]
    assert [tokens for _, tokens in beam([log_probs], 3, alpha=0.0, n_best=2)[0]][:2] == [(EOS,), (A, A, EOS)]


def test_the_beam_narrows_when_a_hypothesis_ends():
    """EOS takes one of two slots in step 1, so step 2 keeps only A A (0.44): A B EOS (0.36) is never found.

    A beam that did not narrow would rank A B EOS above EOS (0.20).
    """
    log_probs = table(start=[0.2, 0.8, 0.0], A=[0.0, 0.55, 0.45])
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


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_output_is_words_then_eos_then_padding(beam_size):
    tables = random_tables(16, seed=4)
    tables[:, :, [PAD, UNK, BOS]] += 20.0  # special ids are never chosen, even if they are the most probable
    limits = np.arange(16, dtype="int32") % LENGTH + 1
    step, state = decoder_of(tables, beam_size)
    options = SearchOptions(beam_size=beam_size, n_best=beam_size)
    ids, scores, _ = beam_search(step, state, {"limits": limits}, LENGTH, options, **HOW)
    assert as_numpy(scores).max() < -10  # the special ids keep their probability
    for hypotheses, row_scores, limit in zip(as_numpy(ids), as_numpy(scores), limits, strict=True):
        for row, score in zip(hypotheses, row_scores, strict=True):
            if score < NEVER / 2:
                assert not row.any()  # an empty slot
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


def marks_of(found):
    return as_numpy(found.is_cut).astype(bool)


def test_an_output_is_marked_as_cut_if_the_model_would_have_continued_it_at_its_limit():
    tables = random_tables(32, seed=6)
    step, state = decoder_of(tables, 1)
    for limit in range(1, LENGTH):
        limits = np.full(len(tables), limit, "int32")
        found = beam_search(step, state, {"limits": limits}, LENGTH, SearchOptions(beam_size=1), **HOW)
        expected = [greedy_output(log_probs, limit) != greedy_output(log_probs, limit + 1) for log_probs in tables]
        assert marks_of(found)[:, 0].tolist() == expected and len({*expected}) == 2


def test_of_several_hypotheses_those_are_marked_that_the_limit_ended():
    """After A, another A is more probable than the end; after B, the end is."""
    log_probs = table(start=[0.1, 0.5, 0.4], A=[0.3, 0.6, 0.1], B=[0.8, 0.1, 0.1])
    step, state = decoder_of([log_probs], 3)
    found = beam_search(step, state, {"limits": np.array([2], "int32")}, LENGTH, SearchOptions(3, n_best=3), **HOW)
    outputs = [tokens_of(ids) for ids in as_numpy(found.ids)[0]]
    marks = dict(zip(outputs, marks_of(found)[0].tolist(), strict=True))
    assert marks == {(EOS,): False, (A, EOS): True, (B, EOS): False}


def test_a_prefix_that_the_limit_ends_is_marked():
    log_probs = table(start=[0.9, 0.05, 0.05])  # the model would end at once
    step, state = decoder_of([log_probs], 1)
    rules = {"limits": np.array([1], "int32"), "prefixes": np.array([[A]], "int32")}
    assert marks_of(beam_search(step, state, rules, LENGTH, SearchOptions(1), **HOW)).tolist() == [[True]]


LOOPS = [
    [(1, 12), (2, 12)],
    [(2, 12), (LENGTH, 12)],
    [(LENGTH, 12)],
    [(LENGTH, 12), (LENGTH, 6)],
    [(1, 12), (LENGTH, 12), (LENGTH, 8), (LENGTH, 4), (LENGTH, 1)],
    [(1, 12), (LENGTH, 3)],
]


@pytest.mark.parametrize("loops", LOOPS, ids=str)
def test_loops_find_the_same_for_sentences_that_end_within_them(loops):
    tables = random_tables(12, seed=3)
    tables[:6, :, EOS] += 9.0
    rules, options = {"limits": np.full(12, LENGTH, "int32")}, SearchOptions(2, n_best=2)
    whole, found = (
        beam_search(*decoder_of(tables, 2), rules, LENGTH, options, static_shapes=True, loops=within)
        for within in ((), [SearchLoop(*loop) for loop in loops])
    )
    is_done = as_numpy(found.scores)[:, 0] != UNFINISHED
    positions, _ = loops[-1]
    assert found.ids.shape[2] == positions and is_done.any() and is_done.all() == ((LENGTH, 12) in loops)
    assert (as_numpy(found.scores)[~is_done] == UNFINISHED).all()
    for ours, theirs in zip(map(as_numpy, found), map(as_numpy, whole), strict=True):
        np.testing.assert_array_equal(
            ours[is_done], theirs[is_done][:, :, :positions] if ours.ndim == 3 else theirs[is_done]
        )


def test_the_worst_wanted_score_is_that_of_the_last_output_that_is_asked_for():
    finished = types.SimpleNamespace(scores=np.array([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]], "float32"))
    state = types.SimpleNamespace(finished=finished, rules=Rules())
    assert [as_numpy(worst_wanted(state, n_best)).tolist() for n_best in (1, 3)] == [[-1, -4], [-3, -6]]
    state.rules = Rules.of({"n_best": np.array([3, 2], "int32")})
    assert as_numpy(worst_wanted(state, 1)).tolist() == [-3, -5]
