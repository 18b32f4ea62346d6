"""The sections of a run configuration: every number has a range; at its ends it is taken, and beyond them refused."""

import contextlib
import math

import pydantic
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.search.options import OPTIONS
from keras_transformer.text.placeholders import MOST_PLACEHOLDERS
from train.config.data import DataSection
from train.config.run import SOURCES
from train.config.section import Section
from train.config.sources.files import FilesData
from train.config.sources.numbers import LARGEST, NumbersData
from train.config.sources.treebank import TreebankData
from train.config.tokenizer import TokenizerConfig, check_tokenizer
from train.config.training import TrainingConfig
from train.config.translation import TranslationConfig

RANGES = {  # values at the ends, values beyond: keys, each "Section.key"; a key of DataSection is one of every source
    (
        (1,),
        (0, -1),
    ): "TrainingConfig: steps tokens_per_batch micro_batches warmup_steps checkpoint_every keep_checkpoints "
    "average_checkpoints validate_every patience log_every; DataSection: shards; FilesData: train_pairs; NumbersData: "
    "train_pairs validation_pairs test_pairs; TokenizerConfig: vocab_size; CleaningConfig: longest_word; "
    "TranslationConfig: batch_size validation_sentences",
    ((8,), (7,)): "TrainingConfig: row_length source_row_length",
    (
        (0,),
        (-1,),
    ): "TrainingConfig: lora_rank cooldown_steps shift_positions picture_sentences histograms_every; "
    "NumbersData: seed; TreebankData: seed",
    ((0.0, 1.0), (-0.01, 1.01)): "AugmentationConfig: uppercase title_case punctuation typing joined; DataSection: "
    "placeholders; TrainingConfig: guided_alignment",
    ((0.0, 0.99), (-0.01, 1.0)): "TrainingConfig: dropout label_smoothing bpe_dropout",
    (
        (1e-9, 1e9),
        (0.0, -1.0),
    ): "TrainingConfig: learning_rate_factor learning_rate clip_norm lora_alpha; FilesEntry: weight",
    ((1e-9, 0.99), (0.0, 1.0)): "TrainingConfig: ema_decay; TreebankData: validation_share test_share",
    ((1.01,), (1.0,)): "CleaningConfig: length_ratio",
    ((0, 2**32 - 1), (-1, 2**32)): "TrainingConfig: seed",
    ((0, MOST_PLACEHOLDERS), (-1, MOST_PLACEHOLDERS + 1)): "TokenizerConfig: placeholders",
    ((-LARGEST,), (-LARGEST - 1,)): "NumbersData: minimum",
    ((LARGEST,), (LARGEST + 1,)): "NumbersData: maximum",
}
NUMBERS = {int, float, int | None, float | None}


def sections(of=Section):
    """All sections of a configuration, and the tables inside them, by name."""
    own = [each for each in of.__subclasses__() if each.__module__.startswith("train.")]
    return {section.__name__: section for each in own for section in (each, *sections(each).values())}


SECTIONS = sections()
RANGE_OF = {
    (section, key): range_of
    for range_of, text in RANGES.items()
    for part in text.split("; ")
    for section, keys in [part.split(": ")]
    for key in keys.split()
}


def errors_of(section, key, value):
    """What is wrong with the value of the key itself, whatever else the section lacks."""
    try:
        SECTIONS[section].model_validate({key: value})
    except pydantic.ValidationError as error:
        return [each["msg"] for each in error.errors() if each["loc"] == (key,)]
    return []


def test_a_number_is_taken_at_the_ends_of_its_range_and_refused_beyond():
    for (section, key), (ends, beyond) in RANGE_OF.items():
        assert not any(errors_of(section, key, value) for value in ends), (section, key)
        for value in (*beyond, float("nan"), float("inf"), "1", True):
            assert errors_of(section, key, value), (section, key, value)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_takes_its_default_as_its_value(section):
    """As in a configuration that is made again from all of its values."""
    defaults = {key: field.default for key, field in SECTIONS[section].model_fields.items() if not field.is_required()}
    assert {key: errors_of(section, key, default) for key, default in defaults.items()} == dict.fromkeys(defaults, [])


def test_every_number_of_a_configuration_has_a_range():
    """Those of [model] have theirs where the model checks them, and those of a search in its table."""
    numbers = {
        (name, key)
        for name, section in SECTIONS.items()
        for key, field in section.model_fields.items()
        if field.annotation in NUMBERS and not (section in SOURCES and key in DataSection.model_fields)
        if name not in ("FieldsOfAllKinds", "ModelConfig", "ModelFields")
        and not (name == "TranslationConfig" and search_option_of(key))
    }
    assert numbers == RANGE_OF.keys()


def search_option_of(key):
    """The option of a search that a key of [translation] is; None if it is none."""
    return OPTIONS.get("beam_size" if key == "validation_beam_size" else key)


@pytest.mark.parametrize("key", [key for key in TranslationConfig.model_fields if search_option_of(key)])
def test_a_search_option_has_the_range_and_the_default_of_the_search(key):
    option = search_option_of(key)
    assert TranslationConfig.model_fields[key].default == (1 if key == "validation_beam_size" else option.default)
    limits = {option.lowest: option.lowest - 1, option.highest: option.highest + 1}
    ends = option.choices or [end for end in limits if math.isfinite(end)]
    beyond = ["none"] if option.choices else [limits[end] for end in ends]
    assert ends and not any(errors_of("TranslationConfig", key, value) for value in ends)
    assert all(errors_of("TranslationConfig", key, value) for value in beyond)


@pytest.mark.parametrize(
    ("pieces", "model", "is_taken"), [(260, None, True), (259, None, False), (259, "a.model", True)]
)
def test_a_tokenizer_that_is_trained_has_room_for_the_special_ids_and_the_bytes(pieces, model, is_taken):
    refusal = contextlib.nullcontext() if is_taken else pytest.raises(ConfigError, match="here: .* at least 260 pieces")
    with refusal:
        check_tokenizer(
            TokenizerConfig(vocab_size=pieces, model=model), NumbersData(source="numbers"), lambda key: "here"
        )


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("CleaningConfig", "source_scripts"),
        ("CleaningConfig", "target_scripts"),
        ("TrainingConfig", "frozen"),
        ("TrainingConfig", "lora_matrices"),
        ("FilesData", "train"),
        ("FilesData", "validation"),
        ("TreebankData", "files"),
    ],
)
def test_a_list_that_would_be_nothing_is_refused(section, key):
    assert errors_of(section, key, [])


TAGGED = FilesData(source="files", train=[{"files": "a.tsv", "tag": "<2de>"}], validation=["b.tsv"])
TREES = TreebankData(source="treebank", files=["a.mrg"])


@pytest.mark.parametrize(
    ("data", "key", "reason"),
    [
        (TAGGED, "dummy_prefix", "data.train has tags, which would stand between that space and the first word"),
        (TREES, "dummy_prefix", 'data.source is "treebank", whose trees begin without a space'),
        (TREES, "lowercase", 'data.source is "treebank", whose labels have capitals'),
        (TAGGED, "lowercase", None),
        (NumbersData(source="numbers"), "dummy_prefix", None),
    ],
)
def test_a_tokenizer_that_would_change_the_symbols_of_its_text_is_refused(data, key, reason):
    sentence = f"here of tokenizer.{key}: tokenizer.{key} is true, but {reason}: leave it out"
    with pytest.raises(ConfigError, match=sentence) if reason else contextlib.nullcontext():
        check_tokenizer(TokenizerConfig(**{key: True}), data, "here of {}".format)
    check_tokenizer(TokenizerConfig(), data, "here of {}".format)


def test_a_device_processes_its_share_of_the_rows_of_a_micro_batch_at_once():
    assert TrainingConfig(tokens_per_batch=24_000, micro_batches=3).positions_at_once(replicas=4) == 2_000
