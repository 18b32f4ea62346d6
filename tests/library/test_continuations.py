"""The sibling penalty: which continuations it lets into the beam, over tables that plain Python can search."""

import numpy as np
import pytest

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from tests.support.models import as_numpy
from tests.support.searches import beam_search
from tests.support.tables import (
    LENGTH,
    OUTPUTS,
    PREFIXES,
    A,
    B,
    assert_ranked,
    decoder_of,
    random_tables,
    ranked_outputs,
    table,
    tokens_of,
)

CHANGING = {"repetition_penalties": 1.0}  # with which, if one sentence has another value, all rules are computed


@pytest.fixture(params=[False, True], ids=["growing", "static"])
def static_shapes(request):
    """Both ways of searching."""
    return request.param


def search(tables, gammas, static_shapes, beam_size=3, **rules):
    """Return ids and scores of a search without length penalty; gammas: one per table, or None for no such rule."""
    step, state = decoder_of(tables, beam_size)
    rules = {"limits": np.full(len(tables), LENGTH, "int32")} | rules
    if gammas is not None:
        rules["sibling_penalties"] = np.broadcast_to(gammas, len(tables)).astype("float32")
    options = SearchOptions(beam_size, 0.0, n_best=beam_size)
    return map(as_numpy, beam_search(step, state, rules, LENGTH, options, static_shapes)[:2])


def outputs(*arguments, **named):
    """Return a list of (score, tokens) per table, best first."""
    found = zip(*search(*arguments, **named), strict=True)
    return [
        [(float(score), tokens_of(row)) for row, score in zip(*pair, strict=True) if score > NEVER / 2]
        for pair in found
    ]


def searched_in_python(log_probs, gamma, beam_size):
    """Search one table as Li et al. (2016) do: each continuation loses gamma per better one of the same hypothesis."""
    live, finished = [(0.0, ())], []
    while live:
        candidates = []
        for total, prefix in live:
            row = log_probs[PREFIXES.index(prefix)]
            tokens = [EOS] if len(prefix) + 1 == LENGTH else sorted((EOS, A, B), key=lambda token: -row[token])
            for rank, token in enumerate(tokens):
                candidates.append((total + row[token] - gamma * rank, total + row[token], (*prefix, token)))
        kept = [pair[1:] for pair in sorted(candidates, reverse=True)[: beam_size - len(finished)]]
        finished += [pair for pair in kept if pair[1][-1] == EOS]
        live = [pair for pair in kept if pair[1][-1] != EOS]
    return sorted(finished, reverse=True)


def test_a_hypothesis_leaves_the_beam_to_a_worse_one_with_another_parent(static_shapes):
    """A A has 0.60 x 0.50 = 0.300, A B 0.288, B A 0.240. A B is second of two siblings; log(0.288 / 0.240) is 0.182."""
    log_probs = table(start=[0.0, 0.6, 0.4], A=[0.02, 0.5, 0.48], B=[0.02, 0.6, 0.38])
    below, above = outputs([log_probs, log_probs], [0.18, 0.19], static_shapes, beam_size=2)
    assert_ranked(below, [(np.log(0.300), (A, A, EOS)), (np.log(0.288), (A, B, EOS))])
    assert_ranked(above, [(np.log(0.300), (A, A, EOS)), (np.log(0.240), (B, A, EOS))])


@pytest.mark.parametrize("rules", [{}, CHANGING])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
def test_the_search_is_that_of_plain_python_for_each_sentences_own_penalty(static_shapes, beam_size, rules):
    tables, gammas = random_tables(24), np.tile([0.0, 0.3, 1.0, 100.0], 6)
    rules = {name: np.array([3.0] + [value] * 23, "float32") for name, value in rules.items()}
    found = outputs(tables, gammas, static_shapes, beam_size, **rules)
    for row in range(len(rules), len(tables)):  # with rules, the first sentence has another one
        assert_ranked(found[row], searched_in_python(tables[row], gammas[row], beam_size))


@pytest.mark.parametrize("rules", [{}, CHANGING])
def test_a_penalty_of_0_changes_nothing_whatever_others_ask_for(static_shapes, rules):
    tables, gammas = random_tables(16, seed=1), np.tile([0.0, 2.0], 8)
    rules = {name: np.array([3.0] + [value] * 15, "float32") for name, value in rules.items()}
    plain, mixed = (list(search(tables, each, static_shapes, **rules)) for each in (None, gammas))
    for expected, values in zip(plain, mixed, strict=True):
        np.testing.assert_array_equal(values[::2], expected[::2])
    assert (plain[0] != mixed[0]).any()


def test_the_largest_penalty_searches_greedily_from_each_first_token(static_shapes):
    tables = random_tables(12, seed=2)
    for log_probs, found in zip(tables, outputs(tables, 100.0, static_shapes), strict=True):
        greedy = []
        for output in ((EOS,), (A,), (B,)):
            while EOS not in output:
                row = log_probs[PREFIXES.index(output)]
                output += (EOS if len(output) + 1 == LENGTH else max((EOS, A, B), key=lambda token: row[token]),)
            greedy += [pair for pair in ranked_outputs(log_probs, 0.0) if pair[1] == output]
        assert_ranked(found, sorted(greedy, reverse=True))


def test_a_beam_that_holds_every_output_ranks_them_by_the_models_probability(static_shapes):
    tables = random_tables(6, seed=3)
    for log_probs, found in zip(tables, outputs(tables, 1.5, static_shapes, len(OUTPUTS)), strict=True):
        assert_ranked(found, ranked_outputs(log_probs, 0.0))


def test_the_larger_the_penalty_the_more_beginnings_the_outputs_have(static_shapes):
    tables, beginnings = random_tables(64, seed=4), []
    for gamma in (0.0, 0.5, 2.0, 100.0):
        found = outputs(tables, gamma, static_shapes)
        beginnings.append(sum(len({tokens[:1] for _, tokens in of_table}) for of_table in found))
    assert beginnings == sorted(set(beginnings)) and beginnings[-1] == 3 * len(tables)
