"""The search of one sentence alone finds what the search of a batch finds."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding.alone_step import AloneDecoder
from keras_transformer.decoding.ensemble import EnsembleDecoder
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.scores import NEVER
from keras_transformer.decoding.search import can_be_alone, is_alone, search, search_batch, search_one
from keras_transformer.decoding.short_vocabulary import ShortlistTable
from keras_transformer.decoding.step import IncrementalDecoder
from keras_transformer.model import Transformer, target_layers
from keras_transformer.tokens import EOS, PAD, SPECIAL
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, sources
from tests.support.tables import assert_same_hypotheses

SOURCES = sources(3, 6, 7)
BEAM = SearchOptions(beam_size=4, n_best=4, extra_length=6)
LONGEST = 16  # tokens: twice d_model over the heads
CONFIGS = {
    "post_norm": LIVELY,
    "pre_norm": LIVELY.replace(norm="pre", decoder_layers=3),
    "shared_embeddings": LIVELY.replace(shared_embeddings=True),
    "learned_positions": LIVELY.replace(positions="learned", max_positions=8),
    "biased_gelu": LIVELY.replace(attention_bias=True, activation="gelu", norm="pre"),
    "biased_logits": LIVELY.replace(logits_bias=True, sinusoids="tensor2tensor", shared_embeddings=True),
}
OPTIONS = {
    "beam": BEAM,
    "greedy": SearchOptions(beam_size=1, extra_length=6),
    "one_of_four": SearchOptions(beam_size=4, n_best=1, extra_length=6),
    "short": SearchOptions(beam_size=4, n_best=4, extra_length=1),
    "tokens": SearchOptions(beam_size=3, n_best=2, extra_length=6, length_normalization="tokens", length_penalty=1.0),
}


def assert_alone_as_in_a_batch(decoder, options, batch=SOURCES):
    """Compare each sentence, searched alone, with what a search of all finds, which pads the shorter ones."""
    together = search(decoder, batch, options)
    for row, source_ids in enumerate(batch):
        source_ids = source_ids[source_ids != PAD][np.newaxis]
        assert as_numpy(is_alone(ops.convert_to_tensor(source_ids), decoder.config))
        alone = search_one(decoder, ops.convert_to_tensor(source_ids), options)
        length = alone.ids.shape[2]
        in_batch = type(together)(*(as_numpy(part)[row : row + 1] for part in together))
        assert not in_batch.ids[:, :, length:].any()
        assert_same_hypotheses(alone, in_batch._replace(ids=in_batch.ids[:, :, :length]))
        is_found = in_batch.scores > NEVER / 2
        assert ((as_numpy(alone.is_cut) == in_batch.is_cut) | ~is_found).all()
    return together


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_a_sentence_alone_has_the_hypotheses_that_it_has_in_a_batch(name):
    assert_alone_as_in_a_batch(IncrementalDecoder(lively_transformer(CONFIGS[name])), BEAM)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_whatever_the_options_a_sentence_alone_is_searched_as_in_a_batch(name):
    together = assert_alone_as_in_a_batch(IncrementalDecoder(lively_transformer()), OPTIONS[name])
    assert name != "short" or as_numpy(together.is_cut).any()


def test_tokens_that_never_come_change_nothing_however_probable():
    transformer = lively_transformer(LIVELY.replace(logits_bias=True), seed=20)  # changed here, and nobody else's
    _, logits = target_layers(transformer)
    tokens = np.arange(LIVELY.vocab_size)
    logits.bias.assign(np.where(tokens == EOS, 9.0, np.where(tokens <= max(SPECIAL), 18.0, 0.0)))
    source_ids = sources(1, 2, 3)
    together = assert_alone_as_in_a_batch(IncrementalDecoder(transformer), OPTIONS["short"], source_ids)
    limits = np.sum(source_ids != PAD, axis=1, keepdims=True) + OPTIONS["short"].extra_length
    assert (np.sum(as_numpy(together.ids) != PAD, axis=2) == limits).any()
    assert not as_numpy(together.is_cut).any()  # EOS is the most probable of those that may come


def test_learned_positions_bound_the_output_of_a_sentence_alone():
    decoder = IncrementalDecoder(lively_transformer(CONFIGS["learned_positions"]))
    together = assert_alone_as_in_a_batch(decoder, BEAM, sources(4))
    assert np.sum(as_numpy(together.ids) != PAD, axis=2).max() == CONFIGS["learned_positions"].max_positions


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [LONGEST, LONGEST + 1])
def test_a_source_about_as_long_as_one_alone_may_be_has_the_same_hypotheses(tokens):
    decoder, source_ids = IncrementalDecoder(lively_transformer()), sources(tokens)
    assert as_numpy(is_alone(ops.convert_to_tensor(source_ids), LIVELY)) == (tokens <= LONGEST)
    assert_same_hypotheses(
        search(decoder, source_ids, BEAM), search_batch(decoder, source_ids, BEAM, False, None, (), None)
    )


def test_a_batch_of_one_sentence_without_padding_is_alone():
    def of(ids):
        return as_numpy(is_alone(ops.convert_to_tensor(ids, dtype="int32"), LIVELY))

    assert of([[4, 5, 3]])
    assert not of([[4, 3, PAD]])
    assert not of([[4, 3], [5, 3]])
    assert not of([[]])


def test_a_search_that_asks_for_anything_is_one_of_a_batch():
    decoder = IncrementalDecoder(lively_transformer())
    free = {
        "options": BEAM, "static_shapes": False, "rules": {}, "positions": (), "shortlist": None,
    }  # fmt: skip
    assert can_be_alone(decoder, **free)
    asked = [
        {"options": SearchOptions(coverage_penalty=0.2)},
        {"options": SearchOptions(min_length=3)},
        {"static_shapes": True},
        {"rules": {"limits": np.array([3])}},
        {"positions": (8, 16)},
        {"shortlist": ShortlistTable(np.zeros((14, 1)), np.arange(4))},
    ]
    for each in asked:
        assert not can_be_alone(decoder, **free | each), each


def test_only_self_attention_in_float32_with_heads_of_one_width_is_searched_alone():
    lively = IncrementalDecoder(lively_transformer())
    assert AloneDecoder.is_for(lively)
    assert not AloneDecoder.is_for(IncrementalDecoder(Transformer(LIVELY, dtype="mixed_bfloat16")))
    assert not AloneDecoder.is_for(EnsembleDecoder([lively, lively]))
    others = {"decoder_layer": "ssru"}, {"encoder_layer": "convolutional"}, {"key_dim": 5, "value_dim": 3}
    for other in others:
        assert not AloneDecoder.is_for(IncrementalDecoder(lively_transformer(LIVELY.replace(**other))))


@pytest.mark.parametrize("name", ["biased_gelu", "post_norm"])
def test_the_steps_of_a_sentence_alone_have_the_logits_of_its_steps_in_a_batch(name):
    decoder = IncrementalDecoder(lively_transformer(CONFIGS[name].replace(decoder_layers=1)))
    alone, source_ids, parents = AloneDecoder(decoder), SOURCES[2], np.array([2, 2, 0], "int32")
    weights, state = alone.start(ops.convert_to_tensor(source_ids), 3, 9)
    of_batch, in_batch = decoder.step_weights(), decoder.start(source_ids[np.newaxis], 3)
    for position, tokens in enumerate(np.array([[4, 5, 6], [7, 5, 9]], "int32")):
        logits, state = alone.step(weights, state, ops.convert_to_tensor(tokens), position)
        expected, in_batch = decoder.step(of_batch, in_batch, ops.convert_to_tensor(tokens[np.newaxis]), position)
        assert_close(logits, expected, atol=1e-4)
        assert np.ptp(as_numpy(logits), axis=0).max() > 0.01
        state = state.of_parents(ops.convert_to_tensor(parents))
        in_batch = in_batch.of_parents(ops.convert_to_tensor(parents[np.newaxis]))
