"""`model.decoder_layer = "ssru"` keeps the laws of the Transformer, searches, trains, explains and exports."""

import dataclasses

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.attention import AttentionReader, head_measures
from keras_transformer.inspection.residual_stream import ResidualStream
from keras_transformer.layers import SSRUDecoderBlock
from keras_transformer.model import Transformer
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from tests.support.models import PAIRS, SMALL, as_numpy, batch_of, randomise
from tests.support.runs import SENTENCES, random_run
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


def test_every_block_of_the_decoder_has_an_ssru(models):
    for kind, model in models.items():
        blocks = [model.get_layer(f"decoder_block_{number}") for number in (1, 2)]
        assert all(isinstance(block, SSRUDecoderBlock) and block.config.norm == KINDS[kind].norm for block in blocks)
        assert not [weight.path for weight in model.weights if "decoder" in weight.path and "self_att" in weight.path]


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


# training and runs


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_without_self_attention_in_the_decoder_an_explanation_has_the_rest(run):
    explanation = Explainer(*run, OPTIONS).explain(SENTENCES[0])
    assert explanation.attention["decoder"] == []
    assert np.shape(explanation.attention["memory"])[:2] == np.shape(explanation.attention["encoder"])[:2] == (1, 4)
