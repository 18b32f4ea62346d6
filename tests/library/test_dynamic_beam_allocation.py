"""Dynamic beam allocation: which continuations are candidates, their banks, and how a beam is shared among these."""

import numpy as np
import pytest

from keras_transformer.ground.tokens import BOS, EOS, PAD, SPECIAL
from keras_transformer.search.continuations import best_continuations
from keras_transformer.search.rules.dynamic_beam_allocation import allocated, had_after, had_before, is_new, shared
from keras_transformer.search.rules.required import Required, in_row
from keras_transformer.search.rules.table import is_cut_now
from keras_transformer.search.scores import NEVER
from tests.support.models import as_numpy
from tests.support.searches import arrays_of, rules_by_name
from tests.support.searches import state_of as state_under

WORDS = 14


def state_of(outputs, phrases):
    """K outputs of one sentence, equally long, the first one the most probable; phrases of equally many tokens."""
    ids = np.array([outputs], "int32")
    rules = {"required": np.array([phrases], "int32")[:, :, np.newaxis], "word_edges": np.zeros((2, WORDS), bool)}
    log_probs = -np.arange(len(outputs), dtype="float32")[np.newaxis]
    return state_under(ids, log_probs, limits=np.array([99], "int32"), **rules)


def changed(state, **rules):
    """The same state, with other arrays of its rules."""
    return state._replace(rules=rules_by_name(arrays_of(state.rules) | rules))


def required_in(state):
    return state.rules.find(Required)


def progress_of(state):
    return required_in(state).progress(state)


def chosen(state, best):
    """(parent, token) of the continuations, if the model prefers the tokens `best` in this order, all else equally."""
    logits = np.full((state.ids.shape[1], WORDS), -9.0, "float32")
    logits[:, best] = -np.arange(len(best), dtype="float32")
    log_probs = logits.copy()
    log_probs[:, [*SPECIAL, EOS]] = NEVER  # the sentence may not end before it has its phrases
    found = allocated(required_in(state), state, logits, log_probs[np.newaxis], 2)
    return list(zip(as_numpy(found.parents)[0].tolist(), as_numpy(found.tokens)[0].tolist(), strict=True))


def test_a_token_of_a_phrase_has_a_place_however_improbable_it_is():
    assert chosen(state_of([[5], [6]], [[9, 10]]), [7, 8]) == [(0, 7), (0, 9)]
    assert chosen(state_of([[9], [6]], [[9, 10]]), [7, 8]) == [(0, 7), (0, 10)]


def test_the_search_shares_its_beam_so_if_a_sentence_must_have_phrases():
    logits = np.full((4, WORDS), -9.0, "float32")
    logits[:, [7, 8]] = 0, -3
    state = state_of([[5], [6]], [[9, 10]])
    two = {name: np.repeat(getattr(state, name), 2, axis=0) for name in ("ids", "log_probs")}
    rules = {"required": np.array([[[[9, 10]]], [[[PAD, PAD]]]], "int32"), "limits": np.array([99, 99], "int32")}
    found = best_continuations(changed(state._replace(**two), **rules), logits)
    pairs = np.stack([as_numpy(found.parents), as_numpy(found.tokens)], axis=2).astype(int).tolist()
    assert pairs == [[[0, 7], [0, 9]], [[0, 7], [1, 7]]]  # the second sentence has none


def test_where_the_model_would_end_what_goes_on_with_no_phrase_comes_last():
    assert chosen(state_of([[5], [6]], [[9, 10]]), [EOS, 7, 8]) == [(0, 9), (0, 7)]


@pytest.mark.parametrize("word", [EOS + 1, WORDS - 1])
def test_the_model_would_not_end_where_it_prefers_any_word(word):
    assert chosen(state_of([[5], [6]], [[9, 10]]), [word, EOS, 8]) == [(0, word), (0, 9)]


def test_the_bank_of_those_that_have_all_phrases_is_one_of_the_banks():
    assert chosen(state_of([[9, 10], [5, 6]], [[9, 10]]), [7, 8]) == [(0, 7), (1, 7)]


def test_a_beam_is_shared_among_banks_the_best_of_each_first():
    scores = np.array([[[-1, -2, -9], [-3, -4, -5]]], "float32")
    tokens, banks = np.arange(6).reshape(1, 2, 3), np.array([[[0, 0, 1], [0, 0, 2]]], "int32")
    found = shared(scores, np.zeros(scores.shape, bool), tokens, banks, 3)
    assert as_numpy(found.tokens).tolist() == [[0, 5]] and as_numpy(found.parents).tolist() == [[0, 1]]
    assert as_numpy(found.log_probs).tolist() == [[-1, -5]]


def test_what_is_late_comes_after_all_others_of_its_bank_in_the_order_of_its_scores():
    scores = np.array([[[-16.001, -16.0, -90, NEVER], [-16.002, -5, NEVER, NEVER]]], "float32")
    is_late = np.array([[[1, 1, 0, 0], [1, 1, 0, 0]]], bool)
    tokens, banks = np.arange(8).reshape(1, 2, 4), np.zeros((1, 2, 4), "int32")
    assert as_numpy(shared(scores, is_late, tokens, banks, 1).tokens).tolist() == [[2, 5]]
    scores[0, 0, 2], scores[0, 1, 1] = NEVER, NEVER
    assert as_numpy(shared(scores, is_late, tokens, banks, 1).tokens).tolist() == [[1, 0]]


def test_a_token_may_end_one_phrase_and_begin_another_one():
    state = state_of([[9]], [[9, 10], [10, 11]])
    tokens = np.array([[[10, 9, 7]]], "int32")
    assert as_numpy(had_after(required_in(state), progress_of(state), tokens).bank()).tolist() == [[[3, 1, 0]]]


@pytest.mark.parametrize("special", SPECIAL)
def test_a_model_would_end_that_prefers_only_what_may_not_come(special):
    logits = np.full((1, WORDS), -9.0, "float32")
    logits[:, [special, EOS, 7]] = 5, 4, 0
    state = state_of([[5]], [[9, 10]])
    cut = is_cut_now(changed(state, limits=np.array([2], "int32")), logits)
    assert not as_numpy(cut).any()  # at its limit too
    log_probs = np.where(np.isin(np.arange(WORDS), [*SPECIAL, EOS]), NEVER, logits).astype("float32")
    found = allocated(required_in(state), state, logits, log_probs[np.newaxis], 2)
    assert as_numpy(found.tokens).tolist() == [[9]]  # and 7 is late


def test_each_hypothesis_has_a_progress_of_its_own():
    progress = progress_of(state_of([[9, 10], [6, 9], [9, 6]], [[9, 10], [9, 11]]))
    assert as_numpy(had_before(progress).bank()).tolist() == [[[2], [1], [0]]]


def test_a_token_that_goes_on_with_phrases_is_one_more_candidate_once():
    progress = progress_of(state_of([[5]], [[9, 10], [9, 11], [7, 8]]))
    more, candidates = np.array([[[9, 9, 7]]], "int32"), np.array([[[7, 12]]], "int32")
    assert as_numpy(is_new(more, candidates, progress)).tolist() == [[[True, False, False]]]


@pytest.mark.parametrize(
    ("position", "phrases"),
    [
        (2, [[[9, 10]], [[9, 11]]]),  # the output has the first phrase
        (0, [[[9, PAD], [BOS, 9]]]),  # the first way of the phrase is for inside a sentence
    ],
)
def test_a_token_is_one_more_candidate_though_it_also_goes_on_with_what_may_not_come(position, phrases):
    state = state_of([[9, 10]], [[9, 10]])
    state = changed(state._replace(position=np.int32(position)), required=np.array([phrases], "int32"))
    progress = progress_of(state)
    more = in_row(required_in(state).next_tokens(progress))
    assert as_numpy(more).tolist() == [[[9, 9]]]
    assert as_numpy(is_new(more, np.array([[[7, 12]]], "int32"), progress)).tolist() == [[[False, True]]]


def test_a_phrase_counts_in_a_bank_as_inside_a_sentence_and_more_when_it_is_complete():
    state = state_of([[7, 8], [7, 6], [6, 6]], [[9, PAD, PAD, PAD]])
    ways = [[[[9, PAD, PAD, PAD], [BOS, 7, 8, 5]]]]  # three tokens at the beginning, one inside
    state = changed(state, required=np.array(ways, "int32"))
    after = had_after(required_in(state), progress_of(state), np.array([[[5, 9, 6]] * 3], "int32"))
    assert as_numpy(after.bank()).tolist() == [[[1, 1, 0], [0, 1, 0], [0, 1, 0]]]
    assert as_numpy(after.tokens()).tolist() == [[[3, 3, 0], [0, 3, 0], [0, 3, 0]]]
    before = had_before(progress_of(state))
    assert as_numpy(before.bank()).tolist() == [[[0]] * 3] and as_numpy(before.tokens()).tolist() == [[[2], [0], [0]]]
