"""`model.decoder_layer = "ssru"` keeps the laws of the Transformer, searches, trains, explains and exports."""

import dataclasses

import keras
import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.attention import AttentionReader, head_measures
from keras_transformer.inspection.residual_stream import ResidualStream
from keras_transformer.layers import SSRUDecoderBlock
from keras_transformer.model import Transformer, with_attention
from keras_transformer.runs.kinds import joint_decoder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.step import IncrementalDecoder
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
from tests.support.training import TINY, train, training_model
from train.config.training import RowLengths
from train.cost.cost import forward_flops, memory_bytes, parameter_count

SSRU = SMALL.replace(decoder_layer="ssru", decoder_layers=2)
KINDS = {"post-norm": SSRU, "pre-norm": SSRU.replace(norm="pre", positions="learned", attention_bias=True)}
OPTIONS = SearchOptions(beam_size=2, extra_length=4)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def models():
    """A Transformer with random weights of each kind."""
    return {kind: randomise(Transformer(config)) for kind, config in KINDS.items()}


@every_kind
def test_packed_pairs_have_the_logits_that_they_have_alone(models, kind):
    assert_pairs_pack(models[kind])


@every_kind
def test_no_logit_depends_on_a_later_token(models, kind):
    batch = batch_of([PAIRS[:1]], 5, 6)
    changed = {name: values.copy() for name, values in batch.items()}
    changed["target_ids"][0, 3] += 1
    before, after = as_numpy(models[kind](batch)), as_numpy(models[kind](changed))
    assert_close(before[:, :3], after[:, :3], atol=0, rtol=0)
    assert np.abs(before[:, 3:5] - after[:, 3:5]).min(axis=-1).max() > 0


def test_every_block_of_the_decoder_has_an_ssru(models):
    for kind, model in models.items():
        blocks = [model.get_layer(f"decoder_block_{number}") for number in (1, 2)]
        assert all(isinstance(block, SSRUDecoderBlock) and block.config.norm == KINDS[kind].norm for block in blocks)
        assert not [weight.path for weight in model.weights if "decoder" in weight.path and "self_att" in weight.path]


def test_all_of_a_model_can_be_bfloat16(models):
    half = in_precision(models["post-norm"], "bfloat16")
    assert {weight.dtype for weight in half.weights} == {"bfloat16"}
    batch = batch_of([PAIRS[:1]], 5, 6)
    exact = as_numpy(models["post-norm"](batch))
    assert np.abs(as_numpy(keras.ops.cast(half(batch), "float32")) - exact).max() < 0.1 * exact.std() + 0.05


def test_with_attention_shows_what_there_is_and_the_same_logits(models):
    batch = batch_of([PAIRS[:1]], 5, 6)
    found = with_attention(models["post-norm"])(batch)
    assert_close(found["logits"], models["post-norm"](batch))
    assert "decoder_block_1/self" not in found and "encoder_block_1/self" in found
    assert found["decoder_block_2/memory"].shape == (1, 2, 6, 5)


def test_operations_do_not_grow_with_what_has_been_written():
    one = SMALL.replace(d_model=2, d_ff=2, num_heads=1, encoder_layers=1, decoder_layers=1, vocab_size=4)
    ssru = one.replace(decoder_layer="ssru")
    of_self_attention = 2 * 4 * 2 * 2 + 2 * 4 * 10  # four matrices of 2 x 2; 10 keys
    of_ssru = 2 * 2 * 2 * 2  # two matrices of 2 x 2
    assert forward_flops(one, 1, 10) - forward_flops(ssru, 1, 10) == 10 * (of_self_attention - of_ssru)
    assert memory_bytes(ssru, 2, RowLengths(8, 8)) > 4 * 4 * parameter_count(ssru)


# configuration


@pytest.mark.parametrize("value", ["SSRU", "recurrent", None])
def test_another_decoder_layer_is_refused(value):
    with pytest.raises(ConfigError, match=r"model\.decoder_layer.*one of self_attention, ssru"):
        SMALL.replace(decoder_layer=value)


def test_a_model_file_of_before_is_self_attention():
    old = {name: value for name, value in dataclasses.asdict(SMALL).items() if name != "decoder_layer"}
    assert TransformerConfig(**old) == SMALL and SMALL.decoder_layer == "self_attention"


# search

SOURCES = sources(2, 3, 5)
BEAM = SearchOptions(beam_size=3, n_best=3, extra_length=3)  # eight tokens at most: one loop


def lively():
    return lively_transformer(LIVELY.replace(decoder_layer="ssru"))


@pytest.mark.slow
def test_a_sentence_is_translated_alone_as_with_others_and_with_static_shapes():
    decoder = IncrementalDecoder(lively())
    found = search(decoder, SOURCES, BEAM)
    assert_same_hypotheses(search(decoder, SOURCES, BEAM, static_shapes=True), found)
    expected = type(found)(*(as_numpy(part)[:1] for part in found))
    assert_same_hypotheses(search(decoder, SOURCES[:1, :2], BEAM), expected)


@pytest.mark.slow
def test_a_prefix_is_read_before_the_search_goes_on():
    """The search after the first three tokens of an output finds that output again, with the same score."""
    decoder = IncrementalDecoder(lively())
    found = search(decoder, SOURCES, BEAM)
    best = as_numpy(found.ids)[:, 0].astype("int32")
    again = search(decoder, SOURCES, BEAM, rules={"prefixes": keras.ops.convert_to_tensor(best[:, :3])})
    np.testing.assert_array_equal(as_numpy(again.ids)[:, 0], best)
    assert_close(as_numpy(again.scores)[:, 0], as_numpy(found.scores)[:, 0])


@pytest.mark.slow
def test_an_ssru_and_self_attention_search_together():
    """Their order changes nothing, since they predict the mean of their probabilities."""
    models = [lively(), lively_transformer()]
    found = search(joint_decoder(models), SOURCES, BEAM)
    assert_same_hypotheses(search(joint_decoder(models[::-1]), SOURCES, BEAM), found)


# training and runs


@pytest.mark.slow
def test_the_decoder_learns_in_a_step_of_training(eager):
    model = training_model(config=TINY.replace(decoder_layer="ssru"))
    before = {weight.path: as_numpy(weight) for weight in model.trainable_variables}
    [logs] = train(model, 0, 1)
    assert np.isfinite(logs["loss"]) and logs["gradient_norm"] > 0
    sublayer = [weight for weight in model.trainable_variables if "/ssru/" in weight.path]
    assert len(sublayer) == 3 * TINY.decoder_layers
    assert all(np.any(as_numpy(weight) != before[weight.path]) for weight in sublayer)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder with random weights."""
    return load_run(random_run(tmp_path_factory.mktemp("runs") / "run", decoder_layer="ssru"))


def test_attention_is_read_as_far_as_there_is_one(run):
    [pair] = AttentionReader(*run, [(SENTENCES[0], SENTENCES[2])])()
    assert pair.weights.keys() == {"memory", "encoder"}
    assert not [name for name in head_measures([pair]) if name.startswith("decoder")]


def test_the_residual_stream_is_measured_in_every_block(models, tmp_path):
    sizes = ResidualStream(models["post-norm"], batch_of([PAIRS[:1]], 5, 6), tmp_path).sizes()
    assert sorted(sizes) == sorted(f"{side}_block_{number}" for side in ("decoder", "encoder") for number in (1, 2))


@pytest.mark.slow
def test_without_self_attention_in_the_decoder_an_explanation_has_the_rest(run):
    explanation = Explainer(*run, OPTIONS).explain(SENTENCES[0])
    assert explanation.attention["decoder"] == []
    assert np.shape(explanation.attention["memory"])[:2] == np.shape(explanation.attention["encoder"])[:2] == (1, 4)


@pytest.mark.slow
def test_a_served_graph_translates_and_explains_as_the_translator_does(eager, run):
    ask = asker(ServedGraph(*run, OPTIONS, 40))
    lines = SENTENCES[:2]
    expected = [found.text.encode() for found in Translator(*run, OPTIONS).translate(lines)]
    assert ask("serving_default", lines)["translation"].tolist() == expected
    answer = ask("explain", lines[:1])
    assert answer["decoder_attention"].tolist() == [b""] and answer["memory_attention"][0]
