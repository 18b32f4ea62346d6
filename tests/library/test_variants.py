"""Every variant of the block keeps the laws of the Transformer: packed, alone, step by step, searched and explained."""

import functools

import keras
import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.config import DECODER_LAYERS, GATED_ACTIVATIONS, NORM_KINDS, NORMS, POSITIONS
from keras_transformer.model import Transformer, with_attention
from keras_transformer.runs.kinds import joint_decoder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.translation.aligner import Aligner
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.models import (
    LIVELY,
    PAIRS,
    SMALL,
    as_numpy,
    assert_close,
    assert_pairs_pack,
    batch_of,
    lively_transformer,
    randomise,
    sources,
)
from tests.support.runs import SENTENCES, random_run
from tests.support.searches import search
from tests.support.tables import assert_same_hypotheses
from tests.support.variants import VARIANTS, every_variant

SOURCES = sources(2, 3, 5)
BEAM = SearchOptions(beam_size=3, n_best=3, extra_length=3)  # eight tokens at most: one loop
OPTIONS = SearchOptions(beam_size=2, extra_length=4, n_best=2)


def test_the_table_has_every_kind_of_each_part():
    table = {
        "norm": NORMS,
        "norm_kind": NORM_KINDS,
        "positions": POSITIONS,
        "decoder_layer": DECODER_LAYERS,
        "activation": ("relu", *GATED_ACTIVATIONS),
        "scale_scores": (True, False),
        "embedding_norm": (True, False),
    }
    for name, values in table.items():
        assert {getattr(SMALL.replace(**changes), name) for changes in VARIANTS.values()} == {*values}


# the whole model


@functools.cache
def model_of(variant):
    """A Transformer with random weights."""
    return randomise(Transformer(SMALL.replace(**VARIANTS[variant])))


@every_variant
def test_packed_pairs_have_the_logits_that_they_have_alone(variant):
    assert_pairs_pack(model_of(variant))


@every_variant
def test_no_logit_depends_on_a_later_token_and_all_depend_on_the_order_of_the_source(variant):
    batch = batch_of([PAIRS[:1]], 5, 6)
    logits = as_numpy(model_of(variant)(batch))
    for name, places in (("target_ids", [0, 1, 2, 4, 3, 5]), ("source_ids", [1, 0, 2, 3, 4])):
        other = as_numpy(model_of(variant)(batch | {name: batch[name][:, places]}))
        is_same = np.abs(other - logits)[0, :5].max(axis=-1) < 1e-5
        assert is_same.tolist() == [name == "target_ids"] * 3 + [False] * 2


@every_variant
def test_all_of_a_model_can_be_bfloat16(variant):
    half = in_precision(model_of(variant), "bfloat16")
    assert {weight.dtype for weight in half.weights} == {"bfloat16"}
    batch = batch_of([PAIRS[:1]], 5, 6)
    exact = as_numpy(model_of(variant)(batch))
    assert np.abs(as_numpy(keras.ops.cast(half(batch), "float32")) - exact).max() < 0.1 * exact.std() + 0.05


@every_variant
def test_with_attention_shows_what_there_is_and_the_same_logits(variant):
    batch, is_ssru = batch_of([PAIRS[:1]], 5, 6), "ssru" in variant
    found = with_attention(model_of(variant))(batch)
    assert_close(found["logits"], model_of(variant)(batch))
    assert ("decoder_block_1/self" in found) != is_ssru and "encoder_block_1/self" in found
    assert found["decoder_block_2/memory"].shape == (1, 2, 6, 5)


# the search


def lively(variant):
    return lively_transformer(LIVELY.replace(**VARIANTS[variant]))


@functools.cache
def found_by(variant):
    """What a search with BEAM finds for SOURCES."""
    return search(IncrementalDecoder(lively(variant)), SOURCES, BEAM)


@pytest.mark.nightly
@every_variant
def test_a_sentence_is_translated_alone_as_with_others_and_in_loops_of_static_shapes(variant):
    decoder, found = IncrementalDecoder(lively(variant)), found_by(variant)
    longest = SOURCES.shape[1] + BEAM.extra_length
    loops = [SearchLoop(longest, sentences) for sentences in (len(SOURCES), 2, 1)]
    assert_same_hypotheses(search(decoder, SOURCES, BEAM, static_shapes=True, loops=loops), found)
    expected = type(found)(*(as_numpy(part)[:1] for part in found))
    assert_same_hypotheses(search(decoder, SOURCES[:1, :2], BEAM), expected)


@pytest.mark.nightly
@every_variant
def test_a_prefix_is_read_before_the_search_goes_on(variant):
    """The search after the first three tokens of an output finds that output again, with the same score."""
    decoder, found = IncrementalDecoder(lively(variant)), found_by(variant)
    best = as_numpy(found.ids)[:, 0].astype("int32")
    again = search(decoder, SOURCES, BEAM, rules={"prefixes": keras.ops.convert_to_tensor(best[:, :3])})
    np.testing.assert_array_equal(as_numpy(again.ids)[:, 0], best)
    assert_close(as_numpy(again.scores)[:, 0], as_numpy(found.scores)[:, 0])


@pytest.mark.nightly
@every_variant
def test_a_variant_and_the_papers_model_search_together(variant):
    """Their order changes nothing, since they predict the mean of their probabilities."""
    models = [lively(variant), lively_transformer()]
    found = search(joint_decoder(models), SOURCES, BEAM)
    assert_same_hypotheses(search(joint_decoder(models[::-1]), SOURCES, BEAM), found)


# runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A function from a variant to its model and tokenizer, as a run folder with random weights has them."""
    return functools.cache(lambda name: load_run(random_run(tmp_path_factory.mktemp("run"), **VARIANTS[name])))


@pytest.mark.nightly
@every_variant
def test_a_served_graph_translates_and_explains_as_in_process(eager, runs, variant):
    ask, lines = asker(ServedGraph(*runs(variant), OPTIONS, 40)), SENTENCES[:2]
    expected = [found.text.encode() for found in Translator(*runs(variant), OPTIONS).translate(lines)]
    assert ask("serving_default", lines)["translation"].tolist() == expected
    answer, explained = ask("explain", lines[:1]), Explainer(*runs(variant), OPTIONS).explain(lines[0])
    for name, weights in explained.attention.items():
        served = np.array(answer[f"{name}_attention"][0].split(), float)
        np.testing.assert_allclose(np.ravel(weights), served, atol=1.1e-3)
        assert np.allclose(np.sum(weights, axis=-1), 1, atol=0.03) if weights else "ssru" in variant


@pytest.mark.nightly
@every_variant
def test_words_are_aligned_by_the_attention_that_is_explained(eager, runs, variant):
    """Of a decoder of one block, whose attention to the source both show."""
    model, tokenizer = runs(variant)
    explained = Explainer(model, tokenizer, OPTIONS).explain(SENTENCES[0])
    output = [*tokenizer.encode(explained.translations[0].text), 3]
    [pairs] = Aligner(model, tokenizer, 512).align([[*tokenizer.encode(SENTENCES[0]), 3]], [output])
    assert {target for _, target in pairs} == set(range(len(explained.translations[0].text.split())))
    assert all(source < len(SENTENCES[0].split()) for source, _ in pairs)
