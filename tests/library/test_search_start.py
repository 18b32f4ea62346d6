"""What a search settles before its first step: how long outputs may become, what it counts, its columns."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.continuations import LOOKED_AT
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop, SearchPlan
from keras_transformer.search.scores import UNFINISHED
from keras_transformer.search.search import SearchStart, larger, start_search
from keras_transformer.search.short_vocabulary import WIDTH, ShortlistTable
from keras_transformer.search.state import Hypotheses
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.text.required import word_edges
from tests.support.models import LIVELY, as_numpy, lively_transformer, sources
from tests.support.searches import plan_of

SOURCES = np.pad(sources(2, 5, 4), ((0, 1), (0, 0)))  # 2, 5, 4 tokens and none
OPTIONS = SearchOptions(beam_size=2, extra_length=3)
EDGES = word_edges([b"a"] * LIVELY.vocab_size)


def started(options=OPTIONS, config=LIVELY, rules=None, **how):
    rules = {name: np.array(rule, "int32") for name, rule in (rules or {}).items()}
    return start_search(IncrementalDecoder(lively_transformer(config)), SOURCES, plan_of(options, rules, **how))


def rows(*lengths, width=9):
    """Sequences of so many tokens, then PAD."""
    return [[4] * length + [PAD] * (width - length) for length in lengths]


PREFIXES = rows(0, 9, 2, 1)
ENDINGS = [rows(2, 1, width=3), rows(1, 0, width=3), rows(3, 2, width=3), rows(1, 1, width=3)]
PLACEHOLDERS = [[[5, 7], [6, 2]], [[5, 0], [6, 0]], [[5, 1], [6, 0]], [[5, 0], [6, 0]]]
REQUIRED = [rows(3, 3, width=3), rows(0, 0, width=3), rows(3, 2, width=3), rows(0, 0, width=3)]
REQUIRED = np.array(REQUIRED, "int32")[:, :, np.newaxis]  # one way each


@pytest.mark.parametrize(
    "rules, limits, longest",
    [
        (None, [5, 8, 7, 1], 8),
        ({"limits": [9, 3, 9, 9]}, [5, 3, 7, 1], 8),
        ({"prefixes": PREFIXES}, [5, 10, 7, 1], 10),
        ({"limits": [1, 1, 1, 1], "prefixes": PREFIXES}, [1, 10, 3, 1], 10),
        ({"limits": [1, 1, 1, 1], "prefixes": PREFIXES, "endings": ENDINGS}, [3, 11, 6, 1], 13),
        ({"limits": [1, 1, 1, 1], "placeholders": PLACEHOLDERS}, [10, 1, 2, 1], 8),
        ({"placeholders": PLACEHOLDERS, "prefixes": PREFIXES}, [10, 10, 7, 1], 14),
        ({"limits": [1, 1, 1, 1], "required": REQUIRED, "word_edges": EDGES}, [7, 1, 6, 1], 8),
        ({"required": REQUIRED, "word_edges": EDGES, "prefixes": PREFIXES}, [7, 10, 8, 1], 16),
    ],
)
def test_an_output_has_room_for_what_it_must_have_and_eos_and_never_more_than_there_are_positions(
    rules, limits, longest
):
    start = started(rules=rules)
    assert as_numpy(start.rules.limits).tolist() == limits and int(start.max_length) == longest
    few = started(rules=rules, config=LIVELY.replace(positions="learned", max_positions=6))
    assert as_numpy(few.rules.limits).tolist() == [min(limit, 6) for limit in limits]


def test_attention_is_counted_if_a_score_needs_it():
    assert started().decoder.attended == ()
    counted = started(SearchOptions(beam_size=2, coverage_penalty=0.1)).decoder.attended
    assert counted.sums.shape == (4, 2, 5)


@pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
def test_shapes_are_static_on_jax_alone_unless_it_is_said(backend, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    assert SearchPlan().static_shapes == (backend == "jax")
    assert [SearchPlan(static_shapes=is_static).static_shapes for is_static in (True, False)] == [True, False]


def test_the_larger_of_two_lengths_is_a_number_if_both_are():
    assert (larger(3, 5), larger(5, 3)) == (5, 5)
    assert [int(larger(*map(tf.constant, pair))) for pair in ((3, 5), (5, 3))] == [5, 5]


LISTS = np.array([[piece, 13] for piece in range(LIVELY.vocab_size)], "int32")
TABLE = ShortlistTable(tf.constant(LISTS), tf.constant([0, 1, 2, 3]), most=100.0)


@pytest.mark.parametrize(
    "beam_size, rules, columns",
    [
        (WIDTH - LOOKED_AT, None, WIDTH),
        (WIDTH - LOOKED_AT + 1, None, 2 * WIDTH),
        (WIDTH - LOOKED_AT - 2, {"placeholders": PLACEHOLDERS}, WIDTH),
        (WIDTH - LOOKED_AT - 1, {"placeholders": PLACEHOLDERS}, 2 * WIDTH),
    ],
)
def test_there_are_columns_for_the_beam_and_for_what_may_be_forbidden(beam_size, rules, columns):
    start = started(SearchOptions(beam_size), rules=rules, shortlist=TABLE)
    assert start.vocabulary.bias.shape == (4, columns)


def test_sentences_have_columns_of_their_own_unless_phrases_must_come():
    usual = {"static_shapes": True, "shortlist": TABLE, "loops": [SearchLoop(9, len(SOURCES))]}
    assert started(**usual).vocabulary.pieces.shape == (4, WIDTH)
    with_phrases = started(rules={"required": REQUIRED, "word_edges": EDGES}, **usual)
    assert with_phrases.vocabulary.pieces.shape == (WIDTH,)


def test_a_sentence_that_lacks_columns_has_no_finished_output():
    vocabulary = types.SimpleNamespace(fits=np.array([True, False]), in_pieces=lambda columns: columns + 10)
    found = Hypotheses(np.ones((2, 3, 4), "int32"), np.full((2, 3), -1, "float32"), np.zeros((2, 3), bool))
    ids, scores, _ = SearchStart(None, None, None, 4, vocabulary).in_pieces(found)
    assert as_numpy(scores).tolist() == [[-1] * 3, [float(np.float32(UNFINISHED))] * 3] and (as_numpy(ids) == 11).all()
