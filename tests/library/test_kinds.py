"""Kinds of model: each configuration is found by its kind, and keys of another kind are refused."""

import json
import pathlib

import keras
import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.recurrent.config import ATTENTIONS, FED, RecurrentConfig
from keras_transformer.runs.kinds import build_model, config_of, incremental_decoder, load_model_config, with_attention
from tests.support.models import SMALL, as_numpy, batch_of, normal, randomise
from train.config.model import SET_ELSEWHERE, ModelConfig
from train.config.run import check_config
from train.config.settings import effective_settings
from train.config.training import RowLengths, TrainingConfig
from train.cost.cost import forward_flops, memory_bytes, parameter_count

RECURRENT = RecurrentConfig(vocab_size=23, d_model=8)
OTHER_VALUES = dict(
    cell="lstm",
    encoder_layers=3,
    decoder_layers=2,
    d_model=12,
    bidirectional=False,
    attention="general",
    input_feeding=False,
    reverse_source=True,
    shared_embeddings=False,
)


@pytest.mark.parametrize("config", [SMALL, RECURRENT, RECURRENT.replace(**OTHER_VALUES)])
def test_model_json_says_the_kind(config, tmp_path):
    config.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["kind"] == config.kind
    assert load_model_config(tmp_path / "model.json") == config
    assert type(config).load(tmp_path / "model.json") == config


def test_a_model_json_without_a_kind_is_a_transformer(tmp_path):
    values = json.loads(SMALL.to_json())
    del values["kind"]
    (tmp_path / "model.json").write_text(json.dumps(values))
    assert load_model_config(tmp_path / "model.json") == SMALL


@pytest.mark.parametrize("kind", ["pigeon", ["pigeon"]])
@pytest.mark.parametrize("load", [load_model_config, TransformerConfig.load])
def test_an_unknown_kind_is_named(load, kind, tmp_path):
    path = pathlib.Path(tmp_path / "model.json")
    path.write_text(json.dumps({"kind": kind, "d_model": 8}))
    with pytest.raises(ConfigError, match=r"model\.json.*'pigeon'"):
        load(path)


def test_every_key_of_the_section_model_arrives_in_the_recurrent_config():
    assert OTHER_VALUES.keys() == set(RecurrentConfig.fields()) - set(SET_ELSEWHERE)
    resolved = ModelConfig(kind="recurrent", **OTHER_VALUES).resolve(
        77, TrainingConfig(dropout=0.0, label_smoothing=0.3)
    )
    assert resolved == RecurrentConfig(vocab_size=77, dropout=0.0, label_smoothing=0.3, **OTHER_VALUES)


def checked(model):
    return check_config({"run_folder": "runs/a", "data": {"source": "numbers"}, "model": model}, "a.toml")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"kind": "recurrent", "num_heads": 4}, ["model.num_heads", "4", "recurrent", "transformer"]),
        ({"kind": "recurrent", "preset": "tiny"}, ["model.preset", "tiny", "recurrent"]),
        ({"cell": "lstm"}, ["model.cell", "lstm", "transformer", "recurrent"]),
        ({"kind": "pigeon"}, ["model.kind", "pigeon"]),
        ({"kind": "recurrent", "attention": "multi"}, ["model.attention", "multi", "additive"]),
        ({"kind": "recurrent", "reverse_source": True}, ["model.reverse_source", "bidirectional"]),
        ({"kind": "recurrent", "attention": "none", "input_feeding": True}, ["model.input_feeding", "none"]),
        ({"kind": "recurrent", "d_model": 7}, ["model.d_model", "7", "even"]),
    ],
)
def test_a_key_that_makes_no_sense_for_the_kind_is_one_sentence(model, words):
    with pytest.raises(ConfigError) as error:
        checked(model)
    assert "\n" not in str(error.value) and str(error.value).startswith("a.toml")
    assert all(word in str(error.value) for word in words)


def test_the_effective_configuration_is_read_as_it_was_written():
    for model in ({"kind": "recurrent", "cell": "lstm"}, {}):
        config = checked(model)
        assert checked(config.model.model_dump(exclude_none=True)) == config


def test_the_settings_of_a_recurrent_run_are_those_of_its_kind():
    settings = effective_settings(checked({"kind": "recurrent"}))
    assert settings["model.cell"] == "gru" and settings["model.kind"] == "recurrent"
    assert "model.num_heads" not in settings and "model.preset" not in settings


VARIANTS = [
    RECURRENT,
    RECURRENT.replace(**OTHER_VALUES),
    RECURRENT.replace(attention="additive", encoder_layers=2),
    RECURRENT.replace(attention="none"),
]


@pytest.mark.parametrize("config", [SMALL, *VARIANTS], ids=["transformer", "dot", "general", "additive", "none"])
def test_a_model_shows_the_heads_of_each_attention_to_the_source(config):
    shown = with_attention(build_model(config)).output
    heads = [weights.shape[1] for name, weights in shown.items() if name.endswith("/memory")]
    assert heads == [config.num_heads] * config.memory_attentions


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_parameters_are_counted_as_the_model_has_them(attention):
    config = RECURRENT.replace(attention=attention, encoder_layers=2, decoder_layers=3)
    others = {"cell": "lstm", "bidirectional": False, "shared_embeddings": False}
    for values in ({}, others, {"input_feeding": False}) if attention in FED else ({}, others):
        variant = config.replace(**values)
        assert parameter_count(variant) == build_model(variant).count_params()


def test_flops_are_those_of_the_matrix_products():
    """With one unit and one piece, each gate is one product with the input and one with the state."""
    config = RecurrentConfig(vocab_size=1, d_model=1, bidirectional=False, attention="none")
    source, target = 5, 7
    assert forward_flops(config, source, target) == source * 12 + target * 12 + 2 * target
    dot = config.replace(attention="dot")
    assert forward_flops(dot, source, target) == source * 12 + target * (12 + 6 + 4) + 4 * source * target + 2 * target
    additive = config.replace(attention="additive")
    more = 2 * source + 2 * target
    assert forward_flops(additive, source, target) == forward_flops(dot, source, target) + more


def test_additive_attention_keeps_the_hidden_layer_of_every_score():
    lengths = RowLengths(100, 50)
    kept = [memory_bytes(RECURRENT.replace(attention=kind), 4, lengths) for kind in ("dot", "additive")]
    assert kept[1] - kept[0] >= 4 * 4 * 100 * 50 * RECURRENT.d_model


@pytest.mark.parametrize("use", [config_of, incremental_decoder, with_attention])
def test_what_is_no_model_of_these_kinds_is_refused_in_a_sentence(use):
    model = build_model(SMALL)
    for other in (with_attention(model), "model", None):
        with pytest.raises(TypeError, match=r"must be a Transformer or a RecurrentModel\. Received: "):
            use(other)


@pytest.mark.slow
@pytest.mark.parametrize("config", [SMALL, RECURRENT], ids=["transformer", "recurrent"])
def test_a_saved_model_with_attention_computes_the_same(config, tmp_path):
    model, batch = randomise(build_model(config)), batch_of([[([5, 6, 7, 3], [2, 8, 9])]], 5, 4)
    shown = with_attention(model)
    shown.save(tmp_path / "shown.keras")
    loaded = keras.saving.load_model(tmp_path / "shown.keras")(batch)
    for name, values in shown(batch).items():
        np.testing.assert_array_equal(loaded[name], values)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("side", "kinds"), [("encoder", ["self"]), ("decoder", ["self", "memory"])])
def test_each_attention_is_that_of_the_block_it_is_named_after(norm, side, kinds):
    """Other attention weights in the last of two blocks change what it attends to, and nothing before it."""
    model, batch = randomise(build_model(SMALL.replace(norm=norm))), batch_of([[([5, 6, 7, 3], [2, 8, 9])]], 5, 4)
    before = {name: as_numpy(values) for name, values in with_attention(model)(batch).items()}
    for weight in model.get_layer(f"{side}_block_2").weights:
        if "attention" in weight.path:
            weight.assign(weight + normal(*weight.shape))
    after = {name: as_numpy(values) for name, values in with_attention(model)(batch).items()}
    moved = {name for name in before if np.abs(after[name] - before[name]).max() > 1e-4}
    assert {f"{side}_block_2/{kind}" for kind in kinds} <= moved
    assert not {f"{side}_block_1/{kind}" for kind in kinds} & moved


def test_numbers_of_numpy_are_numbers():
    of_numpy = TransformerConfig(np.int64(40), d_model=np.int32(16), dropout=np.float32(0.5), dilated=np.bool_(False))
    same = TransformerConfig(40, d_model=16, dropout=0.5)
    assert of_numpy == same and of_numpy.to_json() == same.to_json()
    assert of_numpy.replace(num_heads=np.array(4)).to_json() == same.replace(num_heads=4).to_json()
    assert RecurrentConfig(np.int64(40), d_model=np.int64(8)).to_json() == RecurrentConfig(40, d_model=8).to_json()
    with pytest.raises(ConfigError, match="model.vocab_size is 40.5; it must be a whole number"):
        TransformerConfig(np.float64(40.5))
