"""TransformerConfig, its presets, and the section [model] that is derived from it."""

import dataclasses
import inspect
import math
import re

import keras
import numpy as np
import pydantic
import pytest

from keras_transformer.config import ACTIVATIONS, PRESETS, TABLE_3, TransformerConfig, base, big, preset, tiny
from keras_transformer.ground.errors import ConfigError
from keras_transformer.model import Transformer
from keras_transformer.runs.kinds import CONFIGS
from tests.support.models import SMALL, assert_close
from train.config.model import OF_TRAINING, SET_ELSEWHERE, ModelConfig
from train.config.training import TrainingConfig
from train.cost.cost import parameter_count


def differences(config, other):
    """The fields of `config` that are not those of `other`."""
    fields, others = dataclasses.asdict(config), dataclasses.asdict(other)
    return {name: value for name, value in fields.items() if value != others[name]}


# Fields


def test_the_default_is_the_base_model_of_the_paper():
    found = dataclasses.asdict(TransformerConfig())
    expected = dict(encoder_layers=6, decoder_layers=6, d_model=512, d_ff=2048, num_heads=8)
    expected |= dict(activation="relu", norm="post", positions="sinusoidal", attention_bias=False)
    expected |= dict(shared_embeddings=True, dropout=0.1, label_smoothing=0.1, vocab_size=37000)
    assert expected.items() <= found.items()
    assert (TransformerConfig().d_k, TransformerConfig().d_v) == (64, 64)


def test_a_head_is_as_wide_as_d_model_over_num_heads_unless_its_width_is_given():
    config = TransformerConfig(d_model=48, num_heads=4, value_dim=5)
    assert (config.d_k, config.d_v) == (12, 5)


def test_heads_of_a_given_width_need_not_divide_d_model():
    config = TransformerConfig(d_model=50, num_heads=4, key_dim=7, value_dim=9)
    assert (config.d_k, config.d_v) == (7, 9)


WHOLE = "a whole number of at least 1"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("vocab_size", 0, WHOLE),
        ("encoder_layers", 0, WHOLE),
        ("decoder_layers", 2.5, WHOLE),
        ("d_model", "512", WHOLE),
        ("d_ff", -1, WHOLE),
        ("num_heads", True, WHOLE),
        ("max_positions", 0, WHOLE),
        ("key_dim", 0, WHOLE),
        ("value_dim", -3, WHOLE),
        ("dropout", 1.0, r"in \[0, 1\)"),
        ("dropout", "0.1", r"in \[0, 1\)"),
        ("dropout", False, r"in \[0, 1\)"),
        ("label_smoothing", -0.1, r"in \[0, 1\)"),
        ("label_smoothing", math.nan, r"in \[0, 1\)"),
        ("norm", "batch", r"one of post, pre\.$"),
        ("norm", "rms", r"one of post, pre \(model.norm_kind may be that\)"),
        ("activation", "swi_glu", r"one of .*, swiglu \(did you mean 'swiglu'\?\)"),
        ("norm_kind", "batch", "one of layer, rms"),
        ("positions", "none", "one of sinusoidal, learned, rotary, relative, alibi"),
        ("relative_buckets", 2, "a whole number of at least 4"),
        ("relative_buckets", 33, "even"),
        ("relative_distance", 16, "above 16, half of relative_buckets"),
        ("norm_epsilon", 0.0, "above 0"),
        ("norm_epsilon", math.inf, "above 0"),
        ("norm_epsilon", None, "above 0"),
        ("feed_forward_bias", 0, "true or false"),
        ("attention_bias", "no", "true or false"),
        ("shared_embeddings", 1, "true or false"),
        ("scale_scores", 0, "true or false"),
        ("embedding_norm", "rms", "true or false"),
        ("logits_bias", "yes", "true or false"),
        ("sinusoids", "marian", "one of paper, tensor2tensor"),
        ("first_position", -1, "a whole number of at least 0"),
        ("first_position", 2.0, "a whole number of at least 0"),
        ("first_position", True, "a whole number of at least 0"),
        ("activation", "rleu", "one of .*, relu, "),
        ("activation", None, "one of .*, relu, "),
        ("activation", "glu", "one of .*, relu, "),  # halves the width
        ("activation", "threshold", "one of .*, relu, "),  # needs two more arguments
    ],
)
def test_a_field_that_makes_no_sense_is_refused_with_the_value_found_and_the_values_allowed(field, value, expected):
    with pytest.raises(ConfigError, match=rf"^model\.{field} is {value!r}; it must be {expected}"):
        TransformerConfig(**{field: value})


def test_a_d_model_that_is_no_multiple_of_num_heads_is_refused():
    with pytest.raises(ConfigError, match=r"model.d_model is 50; it must be a multiple of num_heads \(4\)"):
        TransformerConfig(d_model=50, num_heads=4)


def test_an_odd_d_model_is_refused_with_sinusoids_and_allowed_with_learned_positions():
    with pytest.raises(ConfigError, match="model.d_model is 15; it must be even"):
        TransformerConfig(d_model=15, num_heads=3)
    assert TransformerConfig(d_model=15, num_heads=3, positions="learned").d_k == 5


@pytest.mark.parametrize("positions", ["rotary", "relative", "alibi"])
@pytest.mark.parametrize("other", [dict(encoder_layer="restricted"), dict(decoder_layer="ssru")])
def test_positions_that_act_in_self_attention_need_it_on_both_sides(positions, other):
    [(key, value)] = other.items()
    expected = f'model.positions is "{positions}", which acts in self-attention, and model.{key} is "{value}": give'
    with pytest.raises(ConfigError, match=expected):
        TransformerConfig(positions=positions, **other)


def test_rotary_positions_need_even_heads_and_no_even_d_model():
    with pytest.raises(ConfigError, match='"rotary", which turns pairs of channels, and a head has 5: give an even'):
        TransformerConfig(d_model=15, num_heads=3, positions="rotary")
    assert TransformerConfig(d_model=15, num_heads=3, positions="rotary", key_dim=4).d_k == 4


def test_a_config_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        base.d_model = 3


def keeps_the_width(activation):
    """True if a Keras activation can be called with one tensor and returns one of the same shape."""
    states = np.linspace(-2.0, 2.0, 12, dtype="float32").reshape(2, 6)
    try:
        return tuple(activation(states).shape) == (2, 6)
    except TypeError:  # an argument is missing
        return False


def test_the_activations_are_those_of_keras_that_keep_the_width_and_need_one_argument():
    candidates = {name: getattr(keras.activations, name) for name in dir(keras.activations) if name[0] != "_"}
    functions = {name: value for name, value in candidates.items() if inspect.isfunction(value)}
    helpers = {"deserialize", "get", "serialize"}
    keeping = {name for name, value in functions.items() if name not in helpers and keeps_the_width(value)}
    assert set(ACTIVATIONS) == keeping
    assert all(callable(keras.activations.get(name)) for name in ACTIVATIONS)


# The same fields in the run configuration


def test_every_field_is_a_key_of_the_section_model_or_is_set_by_the_tokenizer_or_the_training_section():
    fields = {name for config in CONFIGS.values() for name in config.fields()}
    assert set(ModelConfig.model_fields) | set(SET_ELSEWHERE) == fields | {"kind", "preset"}
    assert set(ModelConfig.model_fields) & set(SET_ELSEWHERE) == set()
    assert set(OF_TRAINING) <= set(TrainingConfig.model_fields)


OTHER_VALUES = dict(
    encoder_layers=3,
    decoder_layers=5,
    d_model=12,
    d_ff=7,
    num_heads=3,
    key_dim=9,
    value_dim=11,
    activation="gelu",
    norm="pre",
    norm_kind="rms",
    norm_epsilon=0.5,
    positions="learned",
    max_positions=31,
    feed_forward_bias=False,
    attention_bias=True,
    scale_scores=False,
    embedding_norm=True,
    shared_embeddings=False,
    logits_bias=True,
    encoder_layer="convolutional",
    kernel_size=5,
    dilated=True,
    decoder_layer="ssru",
    decoder_start="eos",
)
RESTRICTED = dict(encoder_layer="restricted", neighbourhood=9, sinusoids="tensor2tensor", first_position=2)
RELATIVE = dict(positions="relative", relative_buckets=8, relative_distance=20)
OWN_LOGITS = dict(tied_logits=False)
EVERY_KEY = OTHER_VALUES | RESTRICTED | RELATIVE | OWN_LOGITS


def test_every_key_of_the_section_model_arrives_in_the_transformer_config():
    assert EVERY_KEY.keys() == set(TransformerConfig.fields()) - set(SET_ELSEWHERE)
    for values in (OTHER_VALUES, RESTRICTED, RELATIVE, OWN_LOGITS):
        of_training = dict(dropout=0.0, label_smoothing=0.3)
        resolved = ModelConfig(**values).resolve(77, TrainingConfig(**of_training))
        expected = values | of_training | dict(vocab_size=77)
        assert dataclasses.asdict(resolved).items() >= expected.items()


def test_a_field_that_means_nothing_is_skipped_in_an_older_file():
    values = {"kind": "transformer", **dataclasses.asdict(base), "max_positions": 256, "kernel_size": 9}
    assert TransformerConfig.from_values(values) == base
    learned = {**values, "positions": "learned"}
    assert TransformerConfig.from_values(learned) == base.replace(positions="learned", max_positions=256)
    assert TransformerConfig.from_values({"sinusoids": "tensor2tensor"}) == base.replace(sinusoids="tensor2tensor")
    assert TransformerConfig.from_values({"first_position": 2, "positions": "learned"}).first_position == 0


@pytest.mark.parametrize(
    "values, other",
    [
        (dict(kernel_size=5), 'unless model.encoder_layer is "convolutional"'),
        (dict(dilated=True, encoder_layer="restricted"), 'unless model.encoder_layer is "convolutional"'),
        (dict(neighbourhood=9, encoder_layer="convolutional"), 'unless model.encoder_layer is "restricted"'),
        (dict(max_positions=9), 'unless model.positions is "learned"'),
        (dict(sinusoids="tensor2tensor", positions="learned"), 'unless model.positions is "sinusoidal"'),
        (dict(first_position=2, positions="learned"), 'unless model.positions is "sinusoidal"'),
        (dict(max_positions=9, positions="rotary"), 'unless model.positions is "learned"'),
        (dict(relative_buckets=8, positions="alibi"), 'unless model.positions is "relative"'),
        (dict(relative_distance=99), 'unless model.positions is "relative"'),
    ],
)
def test_a_field_that_would_mean_nothing_is_refused(values, other):
    name = next(iter(values))
    with pytest.raises(ConfigError, match=f"model.{name} is {values[name]!r}; it must be left out, {other}"):
        TransformerConfig(**values)


def test_keys_that_are_not_given_are_those_of_the_preset():
    assert ModelConfig(preset="big").resolve(vocab_size=77) == big.replace(vocab_size=77)


@pytest.mark.parametrize("name", EVERY_KEY)
def test_a_key_of_the_section_model_has_the_type_of_its_field(name):
    wrong = 3 if isinstance(EVERY_KEY[name], str) else "three"
    with pytest.raises(pydantic.ValidationError, match=name):
        ModelConfig(**{name: wrong})


# Changing and saving


def test_replace_changes_the_named_fields_and_nothing_else():
    assert differences(base.replace(d_ff=7, dropout=0.5), base) == {"d_ff": 7, "dropout": 0.5}


def test_head_widths_follow_d_model_and_num_heads_until_they_are_given():
    assert differences(base.replace(num_heads=4), base) == {"num_heads": 4}
    assert (base.replace(num_heads=4).d_k, base.replace(d_model=256).d_v) == (128, 32)


def test_replace_keeps_head_widths_that_were_given():
    config = base.replace(key_dim=64).replace(d_model=1024)  # 64 is what d_model / num_heads was before
    assert (config.d_k, config.d_v) == (64, 128)
    assert base.replace(num_heads=4, key_dim=10).d_k == 10


def test_replace_checks_the_result():
    with pytest.raises(ConfigError, match="model.dropout is 2"):
        base.replace(dropout=2)


@pytest.mark.parametrize("config", [base, tiny.replace(key_dim=5, norm="pre", positions="learned", activation="gelu")])
def test_a_config_comes_back_from_json_and_from_its_file(config, tmp_path):
    assert TransformerConfig.from_json(config.to_json()) == config
    config.save(tmp_path / "model.json")
    assert TransformerConfig.load(tmp_path / "model.json") == config


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "JSON"),
        (b"", "JSON"),
        (b"[1, 2]", "JSON object"),
        (b"512", "JSON object"),
        (base.to_json().encode()[:100], "JSON"),
        (base.to_json().encode("utf-16"), "UTF-8"),
        (b'{"norm": "\xe4"}', "byte 11 is not UTF-8"),
        (b'{"d_model": "wide"}', "model.d_model is 'wide'"),
        (b'{"experts": 8, "colour": "red"}', "colour, experts"),
    ],
)
def test_a_damaged_model_json_is_refused_in_one_line_with_its_path(content, reason, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))} .*{reason}") as error:
        TransformerConfig.load(path)
    assert len(str(error.value).splitlines()) == 1


def test_a_model_json_that_cannot_be_read_is_refused_with_its_path(tmp_path):
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(tmp_path))} cannot be read"):
        TransformerConfig.load(tmp_path)  # a folder


@pytest.mark.slow
def test_a_model_json_with_head_widths_spelled_out_describes_the_same_model_as_one_without():
    spelled_out = SMALL.replace(key_dim=SMALL.d_k, value_dim=SMALL.d_v)
    models = []
    for config in (SMALL, TransformerConfig.from_json(spelled_out.to_json())):
        keras.utils.set_random_seed(3)
        models.append(Transformer(config))
    one, other = models
    assert [weight.path for weight in one.weights] == [weight.path for weight in other.weights]
    for weight, same in zip(one.trainable_weights, other.trainable_weights, strict=True):
        assert_close(weight, same, atol=0, rtol=0)


# Presets


def test_a_preset_is_found_by_its_name():
    assert preset("big") is big
    assert set(TABLE_3) < set(PRESETS)


def test_an_unknown_preset_is_refused_with_the_names_of_all():
    with pytest.raises(ConfigError, match="no preset 'huge'. The presets are tiny, base, big"):
        preset("huge")


def test_big_differs_from_base_by_the_values_its_row_prints():
    assert differences(big, base) == {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3}


def test_modern_differs_from_base_by_its_name_and_has_no_more_weights():
    expected = dict(norm="pre", norm_kind="rms", activation="swiglu", positions="rotary", d_ff=1344)
    assert differences(preset("modern"), base) == expected
    assert 0.98 < parameter_count(preset("modern")) / parameter_count(base) < 1


ROWS = {
    "A_1_head": dict(num_heads=1, key_dim=512, value_dim=512),
    "A_4_heads": dict(num_heads=4, key_dim=128, value_dim=128),
    "A_16_heads": dict(num_heads=16, key_dim=32, value_dim=32),
    "A_32_heads": dict(num_heads=32, key_dim=16, value_dim=16),
    "B_key_dim_16": dict(key_dim=16),
    "B_key_dim_32": dict(key_dim=32),
    "C_2_layers": dict(encoder_layers=2, decoder_layers=2),
    "C_4_layers": dict(encoder_layers=4, decoder_layers=4),
    "C_8_layers": dict(encoder_layers=8, decoder_layers=8),
    "C_d_model_256": dict(d_model=256, key_dim=32, value_dim=32),
    "C_d_model_1024": dict(d_model=1024, key_dim=128, value_dim=128),
    "C_d_ff_1024": dict(d_ff=1024),
    "C_d_ff_4096": dict(d_ff=4096),
    "D_dropout_0.0": dict(dropout=0.0),
    "D_dropout_0.2": dict(dropout=0.2),
    "D_label_smoothing_0.0": dict(label_smoothing=0.0),
    "D_label_smoothing_0.2": dict(label_smoothing=0.2),
    "E_learned_positions": dict(positions="learned"),
}


def test_each_row_of_table_3_differs_from_base_by_the_values_it_prints():
    assert {name: differences(config, base) for name, config in TABLE_3.items()} == ROWS
