"""A search for outputs with phrases: first without them, then with them for the sentences that lack one."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.search.fallback import TOGETHER, WIDE, search_with_fallback
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.required import Required
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import Hypotheses
from keras_transformer.search.step import IncrementalDecoder
from tests.support.models import LIVELY, as_numpy, lively_transformer, sources
from tests.support.searches import arrays_of, plan_of, search, traced_search
from tests.support.tables import assert_same_hypotheses

LENGTH = 6
OPTIONS = SearchOptions(beam_size=2)
FREE = [[5, 6, EOS], [7, EOS]]  # what is found without phrases, best first
FORCED = [[9, EOS], [8, 9, EOS], [9, 9, EOS]]
NO_WORDS = np.zeros((2, 12), bool)
WAYS = pytest.mark.parametrize("static_shapes", [False, True])


def rules_of(*phrases, **rules):
    required = np.array([[[phrase]] for phrase in phrases], "int32")  # (B, 1, 1, M)
    return {"required": required, "word_edges": NO_WORDS, "limits": np.full(len(phrases), LENGTH, "int32"), **rules}


def searched(rules, options=OPTIONS, free_scores=(-1.0, -2.0), static_shapes=False):
    """The best output of each sentence, its score, and the arguments of each search, of a model that finds FREE, and
    FORCED with phrases."""
    found, asked = found_with(rules, options, free_scores, static_shapes)
    assert found.ids.shape[1:] == (2, LENGTH + 2)
    return [row[0][row[0] != PAD].tolist() for row in as_numpy(found.ids)], as_numpy(found.scores)[:, 0].tolist(), asked


def found_with(rules, options, free_scores, static_shapes=False):
    """What such a model finds, and the arguments of each search."""
    asked = []

    def find(source_ids, plan):
        rules, options = arrays_of(plan.rules), plan.options
        asked.append((as_numpy(source_ids)[:, 0].tolist(), {n: as_numpy(rule) for n, rule in rules.items()}, options))
        outputs, scores = (FORCED, (-8.0, -9.0, -9.5)) if "required" in rules else (FREE, free_scores)
        room, rows = LENGTH + 2 * ("required" in rules), len(source_ids)
        ids = np.array([output + [PAD] * (room - len(output)) for output in outputs], "int32")
        leaves = np.tile(ids, (rows, 1, 1)), np.tile(np.float32(scores), (rows, 1)), np.zeros((rows, len(ids)), bool)
        return Hypotheses(*map(tf.constant, leaves))

    source_ids = np.arange(len(rules["limits"]), dtype="int32")[:, np.newaxis]
    plan = plan_of(options, rules, static_shapes=static_shapes)
    return search_with_fallback(find, source_ids, plan, plan.rules.find(Required), LENGTH + 2), asked


@WAYS
def test_a_sentence_whose_output_has_its_phrase_is_searched_once(static_shapes):
    outputs, scores, asked = searched(rules_of([6, PAD], [9, PAD], [PAD, PAD]), static_shapes=static_shapes)
    assert outputs == [FREE[0], FORCED[0], FREE[0]] and scores == [-1.0, -8.0, -1.0]
    assert [rows for rows, *_ in asked] == [[0, 1, 2], [0, 1, 2] if static_shapes else [1]]
    assert "required" not in asked[0][1] and asked[1][1]["required"].any(axis=(1, 2, 3)).tolist().count(True) == 1
    assert len(searched(rules_of([5, 6], [PAD, PAD]), static_shapes=static_shapes)[2]) == 1


def test_many_sentences_are_searched_some_at_a_time():
    outputs, _, asked = searched(rules_of(*[[9]] * (TOGETHER + 1), [5]))
    assert outputs == [FORCED[0]] * (TOGETHER + 1) + [FREE[0]]
    assert [len(rows) for rows, *_ in asked] == [TOGETHER + 2, TOGETHER, 1]


def test_an_output_with_phrases_has_room_for_the_one_without_and_their_tokens():
    assert searched(rules_of([9, PAD], [9, 9], [5, 6]))[2][1][1]["limits"].tolist() == [4, 5]
    begun = rules_of([BOS, 9, PAD])  # BOS is no token of an output
    assert searched(rules_of([9, 9, 9, 9]))[2][1][1]["limits"] == [LENGTH] and searched(begun)[2][1][1]["limits"] == [4]


def test_a_search_for_phrases_has_a_wide_beam_unless_it_draws():
    sizes = {"beam_sizes": np.array([1, 2], "int32"), "temperatures": np.array([0.0, 0.5], "float32")}
    for options in (OPTIONS, dataclasses.replace(OPTIONS, beam_size=WIDE + 1)):
        [_, before, of_free], [_, after, of_phrases] = searched(rules_of([9], [9], **sizes), options)[2]
        assert before["beam_sizes"].tolist() == [1, 2] and of_free == options
        wide = max(WIDE, options.beam_size)
        assert after["beam_sizes"].tolist() == [wide, 2] and of_phrases == dataclasses.replace(options, beam_size=wide)
    drawing = dataclasses.replace(OPTIONS, temperature=0.5)
    assert searched(rules_of([9]), drawing)[2][1][2] == drawing


@pytest.mark.parametrize(
    ("n_best", "rule", "scores", "searches"),
    [
        (1, None, (-1, -2), 1),
        (2, None, (-1, -2), 2),
        (2, [1], (-1, -2), 1),
        (1, [2], (-1, -2), 2),
        (2, None, (-1, NEVER), 1),  # there is no second output
    ],
)
def test_every_output_that_is_wanted_has_the_phrases(n_best, rule, scores, searches):
    rules = rules_of([5]) | ({} if rule is None else {"n_best": np.array(rule, "int32")})
    assert len(searched(rules, SearchOptions(beam_size=2, n_best=n_best), scores)[2]) == searches


@WAYS
@pytest.mark.parametrize("alphas", [None, [0.5, 0.5, 0.5, 1.0]])
def test_phrases_lose_what_log_p_is_lower_than_that_of_the_best_output_without_them(alphas, static_shapes):
    rules = rules_of([6], [9], [PAD], [9]) | ({} if alphas is None else {"length_penalties": np.float32(alphas)})
    options = SearchOptions(beam_size=2, length_penalty=0.5, length_normalization="tokens")
    found, _ = found_with(rules, options, (-1.0, -2.0), static_shapes)
    outputs = (-1, FREE[0]), (-8, FORCED[0]), (-9, FORCED[1])  # scores are over a power of the number of tokens
    free, *forced = ([score * len(output) ** alpha for alpha in alphas or [0.5] * 4] for score, output in outputs)
    expected = [[0.0, 0.0], [free[1] - each[1] for each in forced], [0.0, 0.0], [free[3] - each[3] for each in forced]]
    np.testing.assert_allclose(as_numpy(found.lost), expected, rtol=1e-5)


def test_a_sentence_without_any_output_is_searched_once():
    assert len(searched(rules_of([9]), free_scores=(NEVER, NEVER))[2]) == 1  # its probabilities are NaN


@pytest.mark.nightly
def test_phrases_that_the_best_output_has_change_nothing_and_a_trace_finds_the_same():
    decoder, options = IncrementalDecoder(lively_transformer()), SearchOptions(3, extra_length=4)
    source_ids = sources(4, 6, 7)
    free = search(decoder, source_ids, options)
    outputs = as_numpy(free.ids)[:, 0]
    required = np.zeros((3, 2, 2, 3), "int32")
    required[0, 0, 0, :2], required[0, 1, 0, :1] = outputs[0, :2], outputs[0, 1]
    required[1, 0, :, :2] = [outputs[1, 0], PAD], [BOS, outputs[1, 0]]  # as at the beginning
    required[2, 0, 0, 0] = next(token for token in range(EOS + 1, LIVELY.vocab_size) if token not in outputs[2])
    rules = {"required": required, "word_edges": np.zeros((2, LIVELY.vocab_size), bool)}
    found = search(decoder, source_ids, options, rules=rules)
    length = as_numpy(free.ids).shape[2]
    assert (as_numpy(found.ids)[:2, 0, :length] == outputs[:2]).all()
    np.testing.assert_allclose(as_numpy(found.scores)[:2], as_numpy(free.scores)[:2], rtol=1e-5)
    assert required[2, 0, 0, 0] in as_numpy(found.ids)[2, 0] and found.scores[2, 0] < free.scores[2, 0]
    for row in (1, 2):
        of_row = {"required": required[row : row + 1], "word_edges": rules["word_edges"]}
        alone, seen = traced_search(decoder, source_ids[row : row + 1], options, of_row)
        expected = search(decoder, source_ids[row : row + 1], options, rules=of_row)
        assert_same_hypotheses(alone, expected)
        assert (required[row, 0, 0, 0] in as_numpy(seen.tokens)) and len(as_numpy(seen.steps))
    compiled = tf.function(
        lambda ids, rule: search(decoder, ids, options, rules={**rules, "required": rule}),
        input_signature=[tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,) * 4, tf.int32)],
    )
    assert_same_hypotheses(compiled(source_ids, required), found)
    nothing = compiled(source_ids, required[:, :0, :0, :0])
    assert_same_hypotheses(nothing, free)
