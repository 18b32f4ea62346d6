"""What a configuration that starts from another run leaves out is that of the other run."""

import pytest

from keras_transformer.config import TransformerConfig, base
from keras_transformer.ground.errors import ConfigError
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from train.config.run import load_config
from train.record.changes import check_unchanged, write_configuration

MODEL = TransformerConfig(
    vocab_size=99,
    encoder_layers=2,
    d_model=32,
    num_heads=4,
    sinusoids="tensor2tensor",
    first_position=2,
    decoder_start="eos",
    logits_bias=True,
    dropout=0.3,
)
SEARCH = {"beam_size": 6, "length_penalty": 1.0, "length_normalization": "tokens"}


def start(path, model=MODEL, search=SEARCH):
    """A run folder whose weights another run might start from, without them."""
    path.mkdir()
    model.save(path / "model.json")
    Inference(search=search).save(path / "inference.json")
    return path


def tuned(tmp_path, *overrides, text=""):
    """The configuration of a run that starts from tmp_path / "start"."""
    path = tmp_path / "tuned.toml"
    head = f'run_folder = "{tmp_path / "tuned"}"\n[data]\nsource = "numbers"\n'
    path.write_text(f'{head}[training]\nstart_from = "{tmp_path / "start"}"\n{text}', encoding="utf-8")
    return load_config(path, overrides)


@pytest.mark.parametrize("model", [MODEL, base, RecurrentConfig(vocab_size=7, d_model=8, attention="additive")])
def test_without_a_section_the_model_is_that_of_the_start(tmp_path, model):
    start(tmp_path / "start", model)
    assert tuned(tmp_path).transformer_config(model.vocab_size) == model
    changed = tuned(tmp_path, "training.dropout=0.05").transformer_config(model.vocab_size)
    assert changed == model.replace(dropout=0.05)


def test_rates_are_inherited_if_they_are_not_those_of_every_preset(tmp_path):
    """A rate in the configuration stands above the preset's, so one that nobody has set must not."""
    start(tmp_path / "start", MODEL.replace(dropout=base.dropout, label_smoothing=0.0))
    assert (tuned(tmp_path).training.dropout, tuned(tmp_path).training.label_smoothing) == (None, 0.0)


def test_a_section_with_any_key_describes_the_whole_model(tmp_path):
    start(tmp_path / "start")
    assert tuned(tmp_path, "model.d_ff=64").transformer_config(37_000) == base.replace(d_ff=64)


def test_what_the_section_translation_leaves_out_is_the_search_of_the_start(tmp_path):
    start(tmp_path / "start")
    found = tuned(tmp_path, text="[translation]\nbeam_size = 3\n").translation
    assert (found.beam_size, found.length_penalty, found.length_normalization) == (3, 1.0, "tokens")
    assert found.extra_length == 50 and found.validation_beam_size == 1


@pytest.mark.parametrize("shortlist", ["on", "off"])
def test_a_run_may_start_from_one_whose_search_says_whether_it_has_a_shortlist(tmp_path, shortlist):
    """As that of every preset does. The shortlist itself is a file of the other run."""
    start(tmp_path / "start")
    Inference(search=SEARCH | {"shortlist": shortlist}).save(tmp_path / "start" / "inference.json")
    assert tuned(tmp_path).translation.search_options(4) == SearchOptions(**SEARCH | {"beam_size": 4})


def test_commands_search_in_the_new_run_as_in_the_start_but_for_what_its_configuration_changes(tmp_path):
    start(tmp_path / "start")
    config, folder = tuned(tmp_path, "translation.beam_size=3"), RunFolder(tmp_path / "tuned")
    folder.checkpoints.mkdir(parents=True)
    write_configuration(folder, config, MODEL)
    assert folder.inference().search == SEARCH | {"beam_size": 3}


def test_the_new_run_remembers_both_when_the_start_is_gone(tmp_path):
    folder, begun = RunFolder(tmp_path / "tuned"), start(tmp_path / "start")
    config = tuned(tmp_path)
    folder.checkpoints.mkdir(parents=True)
    write_configuration(folder, config, MODEL)
    (folder.checkpoints / "step-00000000.npz").touch()
    begun.rename(tmp_path / "gone")
    assert tuned(tmp_path) == config
    write_configuration(folder, config, MODEL)
    assert folder.inference().search == SEARCH


def test_a_start_that_is_missing_is_left_to_the_check_of_the_start_and_a_damaged_one_is_named(tmp_path):
    assert tuned(tmp_path).transformer_config(37_000) == base
    start(tmp_path / "start")
    (tmp_path / "start/model.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="start/model.json does not describe a model"):
        tuned(tmp_path)


def test_a_search_that_is_no_table_is_named(tmp_path):
    start(tmp_path / "start")
    with pytest.raises(ConfigError, match="translation"):
        tuned(tmp_path, "translation=3")


def test_the_tokenizer_that_came_with_the_start_may_be_named(tmp_path):
    start(tmp_path / "start")
    folder, moved = RunFolder(tmp_path / "tuned"), tmp_path / "moved.model"
    folder.checkpoints.mkdir(parents=True)
    write_configuration(folder, tuned(tmp_path), MODEL)
    (folder.checkpoints / "step-00000010.npz").touch()
    for path in (folder.tokenizer, moved):
        path.write_bytes(b"pieces")
    check_unchanged(folder, tuned(tmp_path, f"tokenizer.model={moved}"))
    moved.write_bytes(b"others")
    with pytest.raises(ConfigError, match="tokenizer.model was not set and is"):
        check_unchanged(folder, tuned(tmp_path, f"tokenizer.model={moved}"))


@pytest.mark.parametrize("text", ["7", "true", '""'])
def test_a_start_that_is_no_path_is_named(tmp_path, text):
    with pytest.raises(ConfigError, match="training.start_from is"):
        tuned(tmp_path, f"training.start_from={text}")
