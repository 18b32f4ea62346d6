"""The run configuration: what is written comes through, and every mistake is named with what it must be instead."""

import pathlib

import pytest

from keras_transformer.config import preset
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.recurrent.config import RecurrentConfig
from tests.support.places import CONFIGS
from tests.support.runs import write_config
from train.config.run import load_config
from train.config.settings import effective_settings

NUMBERS = 'run_folder = "runs/x"\n[data]\nsource = "numbers"\n'
FILES = 'run_folder = "runs/x"\n[data]\nsource = "files"\ntrain = [["a.en", "a.de"]]\nvalidation = ["b.tsv"]\n'
TFDS = 'run_folder = "runs/x"\n[data]\nsource = "tfds"\nname = "a/b"\nsource_language = "en"\ntarget_language = "de"\n'


@pytest.fixture
def load(tmp_path):
    """A function from the text of a TOML file, and overrides, to its configuration."""

    def load(text, *overrides):
        path = tmp_path / "run.toml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, overrides)

    return load


def resolved(config):
    return config.model.resolve(config.tokenizer.vocab_size, config.training)


# what comes through


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_that_comes_with_the_project_loads_and_makes_a_model(path):
    config = load_config(path)
    assert resolved(config).vocab_size == config.tokenizer.vocab_size


@pytest.mark.parametrize("text", [NUMBERS, FILES, TFDS])
def test_what_is_left_out_is_the_papers(load, text):
    config = load(text)
    assert resolved(config) == preset("base").replace(vocab_size=8_000)
    training = config.training
    assert (training.steps, training.tokens_per_batch, training.warmup_steps) == (100_000, 25_000, 4_000)
    assert (training.learning_rate_factor, training.average_checkpoints) == (1.0, 5)
    assert (config.translation.beam_size, config.translation.length_penalty) == (4, 0.6)


@pytest.mark.parametrize("text", [NUMBERS, FILES, TFDS])
def test_the_effective_configuration_loads_as_the_same(load, text):
    config = load(text, "training.steps=7", "model.preset=tiny", "training.dropout=0.2", "model.norm=pre")
    assert load(config.to_toml()) == config


def test_an_override_is_toml_or_a_bare_word_and_stands_above_the_file(load):
    text = NUMBERS + "[training]\nsteps = 5\nwarmup_steps = 6\n"
    config = load(text, "training.steps=10", 'model.preset="tiny"', "run_folder=runs/y", "training.xla=false")
    assert (config.training.steps, config.training.warmup_steps) == (10, 6)
    assert (config.model.preset, config.run_folder, config.training.xla) == ("tiny", "runs/y", False)


def test_the_last_override_of_a_key_counts_and_null_leaves_it_out(load):
    assert load(NUMBERS, "training.steps=10", "training.steps=20").training.steps == 20
    assert load(NUMBERS + "[training]\nsteps = 5\n", "training.steps=9", "training.steps=null") == load(NUMBERS)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    (tmp_path / "run.toml").write_bytes(b"\xef\xbb\xbf" + NUMBERS.encode())
    assert load_config(tmp_path / "run.toml").run_folder == "runs/x"


def test_row_lengths_are_those_of_the_section_and_alike_by_default(load):
    assert load(NUMBERS, "training.row_length=64").training.row_lengths == (64, 64)
    assert load(NUMBERS, "training.row_length=64", "training.source_row_length=60").training.row_lengths == (60, 64)


def test_paths_may_begin_with_the_home_folder(load, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    keys = "run_folder", "cache_folder", "tokenizer.model", "training.start_from"
    config = load(NUMBERS, *(f"{key}=~/{key}" for key in keys))
    found = config.run_folder, config.cache_folder, config.tokenizer.model, config.training.start_from
    assert found == tuple(f"/home/me/{key}" for key in keys)


def test_encoded_text_is_kept_beside_the_run_folder_or_where_the_configuration_says(load):
    assert load(NUMBERS).cache_path == pathlib.Path("runs/cache")
    assert load(NUMBERS, "cache_folder=/big").cache_path == pathlib.Path("/big")


def test_entries_of_files_may_have_a_tag_and_a_weight(load):
    table = '{files = ["c.en", "c.de"], tag = "<BT>", weight = 2}'
    config = load(FILES.replace('[["a.en", "a.de"]]', f'[["a.en", "a.de"], {table}]'))
    assert [(entry.tag, entry.weight) for entry in config.data.entries("train")] == [("", None), ("<BT>", 2.0)]
    assert config.data.train[0] == config.data.entries("train")[0].files == ["a.en", "a.de"]
    assert config.data.tags == ("<BT>",)
    assert load(config.to_toml()) == config


def test_entries_of_several_languages_have_a_tag_for_each_that_is_written(load):
    """So has a model of them: it is told the language to write by its tag, and takes its code."""
    pair = '{files = ["c.%s", "c.%s"], source_language = "%s", target_language = "%s"}'
    entries = ", ".join(pair % (*codes, *codes) for codes in (("en", "de"), ("de", "en"), ("fr", "de")))
    config = load(FILES.replace('[["a.en", "a.de"]]', f"[{entries}]"))
    assert config.data.tags == ("<2de>", "<2en>") and load(config.to_toml()) == config
    expected = Languages({"en": "", "de": "", "fr": ""}, {"de": "<2de>", "en": "<2en>"}, source_first="target")
    assert config.data.told_languages == expected
    tagged = (pair % ("en", "de", "en", "de")).replace("}", ', tag = "<DE>"}')
    own = load(FILES.replace('[["a.en", "a.de"]]', f"[{tagged}]"))
    assert own.data.told_languages.target == {"de": "<DE>"}


def test_the_languages_of_one_pair_are_those_of_its_section(load):
    assert load(NUMBERS).data.told_languages == Languages({"en": ""}, {"de": ""})
    assert load(FILES).data.told_languages == Languages()


# the model


def test_head_widths_follow_a_changed_width_unless_they_are_given(load):
    assert resolved(load(NUMBERS, "model.d_model=256")).d_k == 32
    assert resolved(load(NUMBERS, "model.num_heads=4")).d_v == 128
    model = resolved(load(NUMBERS, "model.d_model=256", "model.key_dim=64"))
    assert (model.d_k, model.d_v) == (64, 32)


def test_a_preset_brings_its_dropout_and_training_may_change_it(load):
    assert resolved(load(NUMBERS, "model.preset=big")).dropout == 0.3
    model = resolved(load(NUMBERS, "model.preset=big", "training.dropout=0.05", "training.label_smoothing=0"))
    assert (model.dropout, model.label_smoothing) == (0.05, 0.0)


def test_the_vocabulary_is_the_tokenizers(load):
    assert resolved(load(NUMBERS, "model.preset=tiny", "tokenizer.vocab_size=500")).vocab_size == 500


def test_a_run_that_starts_from_another_has_its_tokenizer_unless_it_names_one(load):
    assert load(NUMBERS).effective_tokenizer.model is None
    start = "training.start_from=runs/base"
    assert load(NUMBERS, start).effective_tokenizer.model == "runs/base/tokenizer.model"
    assert load(NUMBERS, start, "tokenizer.model=my.model").effective_tokenizer.model == "my.model"


# mistakes: where, which key, what was found, what it must be


@pytest.mark.parametrize(
    "override_and_parts",
    [
        ("training.stepz=3", "there is no key training.stepz; did you mean training.steps?"),
        ("steps=3", "there is no key steps; did you mean training.steps?"),
        ("model.vocab_size=500", "there is no key model.vocab_size; did you mean tokenizer.vocab_size?"),
        ("model.dropout=0.1", "there is no key model.dropout; did you mean training.dropout?"),
        ("nothing.like.it=1", "there is no key nothing."),
        ("model.rope_theta=1e4", "there is no key model.rope_theta."),
        ("model.num_kv_heads=2", "there is no key model.num_kv_heads: each head of queries", "lower model.d_ff"),
        ("data.train=x", "there is no key data.train if data.source is 'numbers'."),
        ("data.source=web", "data.source is 'web'; ", "'files', 'gettext', 'numbers', 'tfds'"),
        ("data.maximum=many", "data.maximum is 'many': ", "integer"),
        ("training.steps=many", "training.steps is 'many': ", "integer"),
        ("training.steps=", "training.steps is '': ", "integer"),
        ('training.steps="100"', "training.steps is '100': ", "integer"),
        ("training.steps=1.5", "training.steps is 1.5: ", "integer"),
        ("training.steps=true", "training.steps is True: ", "integer"),
        ("training.steps=0", "training.steps is 0: ", "than or equal to 1"),
        ("training.steps.more=3", "training.steps is {'more': 3}: ", "integer"),
        ("training=5", "training is 5: ", "a table of keys"),
        ("model=5", "model is 5: ", "a table of keys"),
        ("training.xla=1", "training.xla is 1: ", "boolean"),
        ("training.dropout=1", "training.dropout is 1: ", "less than 1"),
        ("training.dropout=nan", "training.dropout is nan: ", "finite number"),
        ("training.learning_rate_factor=high", "training.learning_rate_factor is 'high': ", "number"),
        ("training.learning_rate_factor=0", "training.learning_rate_factor is 0: ", "greater than 0"),
        ("training.precision=half", "is 'half': ", "'float32', 'mixed_bfloat16' or 'mixed_float16'."),
        ("training.seed=4294967296", "training.seed is 4294967296: ", "less than 4294967296"),
        ("run_folder=", "run_folder is '': ", "at least 1 character"),
        ("cache_folder=", "cache_folder is '': ", "at least 1 character"),
        ("training.tokens_per_batch=100", "training: tokens_per_batch 100 is less than one row of 128."),
        ("training.histograms_every=-1", "training.histograms_every is -1: ", "than or equal to 0"),
        ("training.cooldown_steps=100001", "training: cooldown_steps 100001 is more than steps 100000."),
        ("training.profile_steps=[5]", "training.profile_steps: [5] ", "the first and the last step"),
        ("training.profile_steps=[0, 5]", "training.profile_steps: [0, 5] ", "[20, 25]"),
        ("training.profile_steps=[6, 5]", "training.profile_steps: [6, 5] ", "[20, 25]"),
        ("training.profile_steps=20", "training.profile_steps is 20: ", "list"),
        ("training.profile_steps=[1, 100001]", "training: profile_steps [1, 100001] end", "100000 steps."),
        ("training.keep_checkpoints=2", "training: average_checkpoints 5 is more than keep_checkpoints 2."),
        ("tokenizer.vocab_size=100", "tokenizer.vocab_size is 100: ", "at least 260 pieces"),
        ("translation.beam_size=0", "translation.beam_size is 0: ", "equal to 1"),
        ("translation.length_penalty=9.5", "translation.length_penalty is 9.5", "equal to 9"),
        ("run_folder=3", "run_folder is 3: ", "string"),
        ("model.preset=gigantic", "There is no preset 'gigantic'. The presets are tiny, base, big, "),
        (
            "model.d_model=100",
            "model.d_model is 100; it must be a multiple of num_heads (8), or key_dim must be given.",
        ),
        ("model.norm=middle", "model.norm is 'middle'; it must be one of post, pre."),
        ("model.encoder_layers=0", "model.encoder_layers is 0; it must be a whole number of at least 1."),
    ],
)
def test_a_wrong_override_is_named_with_what_was_found_and_what_it_should_be(load, override_and_parts):
    override, *parts = override_and_parts
    with pytest.raises(ConfigError) as error:
        load(NUMBERS, "training.seed=1", override)
    found = str(error.value)
    assert found.startswith(f"--set {override}: ") and "\n" not in found
    assert all(part in found for part in parts), found


@pytest.mark.parametrize("override", ["training.steps", "=3", " =3", ""])
def test_an_override_without_key_or_value_is_shown_how(load, override):
    with pytest.raises(
        ConfigError, match=f"--set {override}: expected section.key=value, for example training.steps=1"
    ):
        load(NUMBERS, override)


def test_an_override_inside_a_value_or_of_two_lines_is_refused(load):
    with pytest.raises(ConfigError, match="--set training.steps: its value has a line break"):
        load(NUMBERS, "training.steps=5\nx=4")
    with pytest.raises(ConfigError, match="--set run_folder.name=x: run_folder is a value, not a section."):
        load(NUMBERS, "run_folder.name=x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[data]\nsource = "numbers"\n', "run_folder is missing."),
        ('run_folder = "x"\n', "data is missing."),
        ('run_folder = "x"\n[data]\n', "data.source is missing."),
        (TFDS.replace('name = "a/b"\n', ""), "data.name is missing if data.source is 'tfds'."),
        (FILES.replace("train =", "training ="), "data.train is missing if data.source is 'files'."),
        (FILES.replace('[["a.en", "a.de"]]', "[]"), "data.train is []: "),
        (FILES + 'test = "c.tsv"\n', "data.test: expected a list of [source file, target file] or of TSV files, found"),
        (FILES + 'test = [["c.en", 2]]\n', "data.test: expected a list of [source file, target file] or of TSV files"),
        (FILES + "test = [5]\n", "expected a list of [source file, target file] or of TSV files, found [5]."),
        (FILES.replace('"b.tsv"', '{files = "b.tsv", tagg = "<x>"}'), "there is no key data.validation.0.tagg"),
        (FILES.replace('"b.tsv"', '{tag = "<x>"}'), "data.validation.0.files is missing"),
        (
            FILES.replace('["a.en", "a.de"]', '{files = "a.tsv", target_language = "German"}'),
            "'German' is no code of a language; give one of ISO 639",
        ),
        (
            FILES.replace(
                '["a.en", "a.de"]',
                '{files = "a.tsv", target_language = "de"}, {files = "c.tsv", target_language = "de", tag = "<x>"}',
            ),
            "the target_language de has the tags <2de> and <x>: give it one",
        ),
        (FILES.replace('"b.tsv"', '{files = "b.tsv", weight = 2}'), "data.validation: an entry has a weight"),
        (FILES + 'test = [{files = "c.tsv", weight = 2}]\n', "data.test: an entry has a weight"),
        (FILES.replace('["a.en", "a.de"]', "{files = 'a.tsv', weight = 0}"), "data.train.0.weight is 0: "),
        (FILES.replace('"b.tsv"', '{files = "b.tsv", tag = "to de"}'), "data.validation.0.tag: 'to de' has a space"),
        (
            FILES.replace('"b.tsv"', '{files = "b.tsv", tag = "\u2581de"}'),
            "data.validation.0.tag: '\u2581de' has a space",
        ),
        (FILES.replace('"b.tsv"', '{files = "b.tsv", tag = "</s>"}'), "data.validation.0.tag: '</s>' is a piece that"),
        (FILES.replace('"b.tsv"', '{files = "b.tsv", tag = "<0x41>"}'), "tag: '<0x41>' is a piece that every"),
        (FILES + "train_pairs = 5\nshards = 2\n", ": data: train_pairs 5 needs shards = 1"),
        (NUMBERS + "[training]\nsteps = 0\n", "training.steps is 0: "),
        (NUMBERS + "[training]\nsteps 5\n", "is not valid TOML: Expected '=' after a key"),
        (NUMBERS + "[training]\nsteps = 1\nsteps = 2\n", "is not valid TOML: Cannot overwrite a value"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(load, text, sentence, tmp_path):
    with pytest.raises(ConfigError) as error:
        load(text)
    assert str(error.value).startswith(str(tmp_path / "run.toml")) and sentence in str(error.value)


def test_several_mistakes_are_named_at_once_one_per_line(load):
    with pytest.raises(ConfigError) as error:
        load(NUMBERS + "[training]\nstepz = 1\nsteps = 0\n[model]\npreset = 3\n")
    lines = str(error.value).splitlines()
    assert len(lines) == 3 and all("run.toml: " in line for line in lines)


def test_more_positions_than_the_model_learns_are_refused(load):
    overrides = ["model.positions=learned", "model.max_positions=64"]
    with pytest.raises(ConfigError, match="training.row_length 128 is more than model.max_positions 64"):
        load(NUMBERS, *overrides)
    overrides.append("training.row_length=64")
    assert load(NUMBERS, *overrides).training.row_length == 64
    with pytest.raises(ConfigError, match="training.source_row_length 65 is more than model.max_positions 64"):
        load(NUMBERS, *overrides, "training.source_row_length=65")
    with pytest.raises(ConfigError, match="row_length 64 and training.shift_positions 1 are more than .* 64"):
        load(NUMBERS, *overrides, "training.shift_positions=1")


def test_training_from_a_model_takes_its_keys_of_training_but_none_that_it_has_not(load, tmp_path):
    start = f"training.start_from={tmp_path}"
    for model in (
        RecurrentConfig(vocab_size=300, d_model=16, dropout=0.4),
        preset("tiny").replace(vocab_size=300, dropout=0.4, shift_positions=7),
    ):
        model.save(tmp_path / "model.json")
        config = load(NUMBERS, start)
        assert config.model.resolve(300, config.training) == model


def test_a_shift_of_positions_is_one_of_the_model_that_trains(load):
    assert resolved(load(NUMBERS, "training.shift_positions=500")).shift_positions == 500
    with pytest.raises(ConfigError, match="training.shift_positions is 5, but model.kind is 'recurrent'"):
        load(NUMBERS, "training.shift_positions=5", "model.kind=recurrent")
    with pytest.raises(ConfigError, match='"rotary".*leave shift_positions out'):
        load(NUMBERS, "training.shift_positions=5", "model.positions=rotary")


def test_a_coverage_penalty_of_a_model_that_does_not_attend_is_refused(load):
    overrides = ["model.kind=recurrent", "model.attention=none", "translation.coverage_penalty=0.5"]
    with pytest.raises(ConfigError, match="translation.coverage_penalty is 0.5, but this model does not attend"):
        load(NUMBERS, *overrides)


def test_a_file_that_is_missing_or_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match="There is no configuration file .*none.toml. See configs/ for examples."):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=f"The configuration file {tmp_path} cannot be read: Is a directory."):
        load_config(tmp_path)
    (tmp_path / "latin.toml").write_bytes('run_folder = "grün"'.encode("latin-1"))
    with pytest.raises(ConfigError, match="latin.toml is not UTF-8: its byte 17 is 0xfc"):
        load_config(tmp_path / "latin.toml")


@pytest.fixture
def settings(tmp_path):
    """A function from overrides to the settings of the small run with them."""
    return lambda *overrides: effective_settings(load_config(write_config(tmp_path), overrides))


def test_keys_that_are_set_and_keys_at_their_default_are_there(settings):
    found = settings("training.learning_rate_factor=0.5")
    assert found["training.learning_rate_factor"] == 0.5
    assert (found["training.steps"], found["data.maximum"], found["translation.beam_size"]) == (5, 999, 4)
    assert (found["training.xla"], found["data.source"], found["model.preset"]) == (False, "numbers", "tiny")


def test_what_is_left_to_the_preset_has_its_value(settings):
    base, tiny = settings("model.preset=base"), settings()
    assert (base["training.dropout"], tiny["training.dropout"]) == (0.1, 0.3)
    assert settings("training.dropout=0.25")["training.dropout"] == 0.25
    assert (base["model.norm"], base["model.d_model"], base["training.label_smoothing"]) == ("post", 16, 0.1)


def test_paths_of_the_run_and_keys_that_are_off_are_not(settings):
    found = settings("cache_folder=/tmp/cache")
    assert not {"run_folder", "cache_folder", "training.patience", "model.key_dim"} & found.keys()
    assert settings("training.patience=3")["training.patience"] == 3


def test_lists_are_json(settings):
    assert settings('training.frozen=["embedding", "encoder*"]')["training.frozen"] == '["embedding", "encoder*"]'
    assert all(isinstance(value, bool | int | float | str) for value in settings().values())
