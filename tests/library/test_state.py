"""What a search does with the state of a decoder, whatever its kind: hypotheses and sentences take theirs along."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_transformer.parsing.balanced import TreeDecoder
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model, incremental_decoder
from keras_transformer.search.ensemble import EnsembleDecoder
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.short_vocabulary import ShortlistTable, over_columns, short_vocabulary
from keras_transformer.search.state import coverage_of, gather_hypotheses, gather_sentences, with_room
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, randomise, sources

SOURCES = sources(3, 6)
FIRST, SECOND = np.array([[4, 5, 6], [7, 8, 9]]), np.full((2, 3), 5)  # tokens of three hypotheses
PARENTS = np.array([[2, 2, 0], [1, 0, 1]], "int32")
PIECES = ["<pad>", "<unk>", "<s>", "</s>", "(S", "▁(S", "▁)S", "▁XX", *map(str, range(LIVELY.vocab_size - 8))]


def transformer(**changes):
    return incremental_decoder(lively_transformer(LIVELY.replace(**changes)))


def recurrent(**changes):
    config = RecurrentConfig(vocab_size=LIVELY.vocab_size, d_model=8, **changes)
    return incremental_decoder(randomise(build_model(config)))


def short():
    lists = np.array([[piece, 13] for piece in range(LIVELY.vocab_size)], "int32")
    table = ShortlistTable(ops.convert_to_tensor(lists), ops.convert_to_tensor([0, 1, 2, 3]), most=100.0)
    return over_columns(transformer(), short_vocabulary(table, SOURCES, Rules(), 8, False))


DECODERS = {
    "self-attention": transformer,
    "ssru": functools.partial(transformer, decoder_layer="ssru"),
    "lstm": functools.partial(recurrent, cell="lstm", decoder_layers=2),
    "ensemble": lambda: EnsembleDecoder([transformer(), recurrent()]),
    "shortlist": short,
    "trees": lambda: TreeDecoder(transformer(), PIECES, SearchOptions()),
}


@pytest.mark.parametrize("name", DECODERS)
def test_a_hypothesis_goes_on_as_its_parent_would_and_a_sentence_alone_as_beside_others(name):
    decoder, found = DECODERS[name](), []
    weights = decoder.step_weights()
    for has_room in (False, True):
        state = decoder.start(SOURCES, 3, counts_attention=True)
        state = with_room(state, 4) if has_room else state

        def step(state, tokens, position, has_room=has_room):
            logits, state = decoder.step(weights, state, ops.convert_to_tensor(tokens), position, has_room)
            return as_numpy(logits).reshape(*tokens.shape, -1), state

        _, state = step(state, FIRST, 0)
        logits, after = step(state, SECOND, 1)
        moved, of_moved = step(gather_hypotheses(state, ops.convert_to_tensor(PARENTS)), SECOND, 1)
        assert_close(moved, np.take_along_axis(logits, PARENTS[:, :, np.newaxis], axis=1))
        coverage = as_numpy(coverage_of(after))
        assert_close(coverage_of(of_moved), np.take_along_axis(coverage, PARENTS, axis=1))
        for rows in () if has_room else ([1], [1, 0]):  # no sentence leaves a search of static shapes
            some, of_some = step(gather_sentences(state, ops.convert_to_tensor(rows, "int32")), SECOND[rows], 1)
            assert_close(some, logits[rows])
            assert_close(coverage_of(of_some), coverage[rows])
        assert np.ptp(logits, axis=1).max() > 0.01 and np.ptp(coverage, axis=1).max() > 1e-4
        found.append(logits)
    assert_close(*found)
