"""`model.encoder_layer`: every kind of encoder keeps the laws of the Transformer, trains, explains and exports."""

import dataclasses

import keras
import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.layers import RestrictedSelfAttention, SegmentConvolution, SublayerBlock
from keras_transformer.model import Transformer, with_attention
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.events import read_pictures
from tests.support.exports import asker
from tests.support.models import (
    PAIRS,
    SMALL,
    as_numpy,
    assert_close,
    assert_pairs_pack,
    batch_of,
    layer_norm,
    normal,
    randomise,
)
from tests.support.runs import SENTENCES, random_run, write_config
from tests.support.training import TINY, train, training_model
from train.__main__ import app

KINDS = {
    "convolutional": dict(encoder_layer="convolutional", kernel_size=5),
    "dilated": dict(encoder_layer="convolutional", kernel_size=3, dilated=True, norm="pre"),
    "restricted": dict(encoder_layer="restricted", neighbourhood=3),
    "recurrent": dict(encoder_layer="recurrent"),
}
HAS_ATTENTION = {"restricted"}
OPTIONS = SearchOptions(beam_size=2, extra_length=4)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def models():
    """A Transformer with random weights of each kind."""
    return {kind: randomise(Transformer(SMALL.replace(**changes))) for kind, changes in KINDS.items()}


@every_kind
def test_packed_pairs_have_the_logits_that_they_have_alone(models, kind):
    assert_pairs_pack(models[kind])


@every_kind
def test_all_of_a_model_can_be_bfloat16(models, kind):
    half = in_precision(models[kind], "bfloat16")
    assert {weight.dtype for weight in half.weights} == {"bfloat16"}
    batch = batch_of([PAIRS[:1]], 5, 6)
    exact = as_numpy(models[kind](batch))
    assert np.abs(as_numpy(keras.ops.cast(half(batch), "float32")) - exact).max() < 0.1 * exact.std() + 0.05


@every_kind
def test_every_block_has_the_sublayer_of_the_configuration(models, kind):
    blocks = [models[kind].get_layer(f"encoder_block_{number}") for number in (1, 2)]
    assert all(isinstance(block, SublayerBlock) for block in blocks)
    sublayers = [block.sublayer for block in blocks]
    if kind == "restricted":
        assert all(isinstance(sublayer, RestrictedSelfAttention) for sublayer in sublayers)
        assert [sublayer.neighbourhood for sublayer in sublayers] == [3, 3]
    elif kind == "recurrent":
        assert [(sublayer.cell, sublayer.units, sublayer.direction) for sublayer in sublayers] == [
            ("gru", 16, "forward")
        ] * 2
    else:
        assert all(isinstance(sublayer, SegmentConvolution) for sublayer in sublayers)
        expected = {"convolutional": [(5, 1), (5, 1)], "dilated": [(3, 1), (3, 2)]}[kind]
        assert [(sublayer.kernel_size, sublayer.dilation) for sublayer in sublayers] == expected


@every_kind
def test_a_block_has_the_residual_the_norm_and_the_network_of_every_block(models, kind):
    config = SMALL.replace(**KINDS[kind], dropout=0.25, activation="gelu", norm_epsilon=0.5)
    block = Transformer(config).get_layer("encoder_block_1").get_config()
    expected = dict(d_ff=24, activation="gelu", dropout=0.25, norm=config.norm, norm_epsilon=0.5)
    assert expected.items() <= block.items()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_block_is_add_and_norm_around_its_sublayer_and_its_network(norm):
    states, segments = normal(2, 5, 4), np.array([[1, 1, 1, 2, 2], [1, 1, 1, 1, 0]])
    block = SublayerBlock(SegmentConvolution(3), d_ff=6, norm=norm, norm_epsilon=0.1)
    block.build(states.shape, segments.shape)
    randomise(block)

    def around(sublayer, residual, states):
        def norm_of(states):
            return layer_norm(states, 0.1, residual.norm.gamma, residual.norm.beta)

        if norm == "post":
            return norm_of(states + as_numpy(sublayer(states)))
        return states + as_numpy(sublayer(norm_of(states)))

    mixed = around(lambda states: block.sublayer(states, segments), block.sublayer_residual, states)
    assert_close(block(states, segments), around(block.feed_forward, block.feed_forward_residual, mixed), atol=1e-4)


@every_kind
def test_with_attention_shows_what_there_is_and_the_same_logits(models, kind):
    batch = batch_of([PAIRS[:1]], 5, 6)
    found = with_attention(models[kind])(batch)
    assert_close(found["logits"], models[kind](batch))
    assert ("encoder_block_1/self" in found) is (kind in HAS_ATTENTION)
    assert found["decoder_block_2/memory"].shape == (1, 2, 6, 5)
    if kind in HAS_ATTENTION:
        weights = as_numpy(found["encoder_block_1/self"])[0]
        assert weights.shape == (2, 5, 5) and (weights[:, 0, 2:] == 0).all()
        assert_close(weights[:, :4].sum(axis=-1), np.ones((2, 4)))


@pytest.mark.nightly
@every_kind
def test_a_file_of_the_model_brings_it_back(models, kind, tmp_path):
    models[kind].save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    batch = batch_of([PAIRS[:2]], 8, 9)
    assert_close(loaded(batch), models[kind](batch), atol=0, rtol=0)
    models[kind].save_weights(tmp_path / "model.weights.h5")
    other = Transformer(models[kind].transformer_config)
    other.load_weights(tmp_path / "model.weights.h5")
    assert_close(other(batch), models[kind](batch), atol=0, rtol=0)


@pytest.mark.nightly
@every_kind
def test_the_encoder_learns_in_a_step_of_training(eager, kind):
    model = training_model(config=TINY.replace(**KINDS[kind]))
    before = {weight.path: as_numpy(weight) for weight in model.trainable_variables}
    [logs] = train(model, 0, 1)
    assert np.isfinite(logs["loss"]) and logs["gradient_norm"] > 0
    sublayer = [weight for weight in model.trainable_variables if "encoder_block_1/" in weight.path]
    assert all(np.any(as_numpy(weight) != before[weight.path]) for weight in sublayer)


# configuration


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("encoder_layer", "convolution", "self_attention, recurrent, convolutional"),
        ("encoder_layer", None, "self_attention"),
        ("kernel_size", 4, "odd"),
        ("kernel_size", 0, "at least 1"),
        ("neighbourhood", 16, "odd"),
        ("neighbourhood", 2.5, "at least 1"),
        ("dilated", 1, "true or false"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(field, value, allowed):
    with pytest.raises(ConfigError) as error:
        SMALL.replace(**{field: value})
    assert f"model.{field}" in str(error.value) and repr(value) in str(error.value) and allowed in str(error.value)


def test_a_model_file_of_before_is_self_attention():
    fields = {"encoder_layer", "kernel_size", "dilated", "neighbourhood"}
    old = {name: value for name, value in dataclasses.asdict(SMALL).items() if name not in fields}
    assert TransformerConfig(**old) == SMALL and SMALL.encoder_layer == "self_attention"


# a run, from the command to the export


@pytest.fixture(scope="module")
def convolutional(tmp_path_factory):
    """A run folder with random weights whose encoder has no attention."""
    return load_run(random_run(tmp_path_factory.mktemp("runs") / "run", encoder_layer="convolutional"))


@pytest.mark.nightly
def test_a_run_on_numbers_shows_the_attention_that_there_is(tmp_path):
    config = write_config(tmp_path)
    changes = (
        "model.encoder_layer=convolutional",
        "model.kernel_size=5",
        "training.steps=1",
        "training.checkpoint_every=1",
        "training.average_checkpoints=1",
        "training.validate_every=1",
        "training.picture_sentences=1",
    )
    found = invoke(app, config, *(part for change in changes for part in ("--set", change)))
    assert found.exit_code == 0, found.output
    folder = config.with_suffix("")
    model = TransformerConfig.load(folder / "model.json")
    assert (model.encoder_layer, model.kernel_size) == ("convolutional", 5)
    metrics = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    assert "attention/memory_1_head_1" in metrics and "attention/encoder" not in metrics
    assert "residual_rms/encoder_block_1" in metrics
    pictures = read_pictures(folder / "tensorboard" / "validation")
    assert sorted(pictures) == [f"attention_pictures/{kind}_sentence_1" for kind in ("1_memory", "3_decoder")]


@pytest.mark.nightly
def test_without_attention_in_the_encoder_an_explanation_has_the_rest(convolutional):
    explanation = Explainer(*convolutional, OPTIONS).explain(SENTENCES[0])
    assert explanation.attention["encoder"] == []
    assert np.shape(explanation.attention["memory"])[:2] == (1, 4)


@pytest.mark.nightly
def test_a_served_graph_translates_and_explains_as_the_translator_does(eager, convolutional):
    ask = asker(ServedGraph(*convolutional, OPTIONS, 40))
    lines = SENTENCES[:1]
    expected = [found.text.encode() for found in Translator(*convolutional, OPTIONS).translate(lines)]
    assert ask("serving_default", lines)["translation"].tolist() == expected
    answer = ask("explain", lines)
    assert answer["encoder_attention"].tolist() == [b""] and answer["memory_attention"][0]
