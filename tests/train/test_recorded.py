"""The config.toml of a run of another version is read, and what this version does not know is said."""

import pytest

from keras_transformer.ground.errors import ConfigError
from tests.support.runs import write_config
from train.config.recorded import load_recorded
from train.config.run import load_config
from train.config.training import TrainingConfig


def test_keys_that_this_version_lacks_are_logged_and_left_out(tmp_path, caplog):
    path = write_config(tmp_path)
    config = load_config(path)
    text = (
        config.to_toml().replace("[training]\n", "[training]\nr_drop = 0.0\n").replace("[data]\n", "[data]\nnew = 1\n")
    )
    path.write_text(f"other = 3\n{text}\n[elsewhere]\nkey = 1\n", encoding="utf-8")
    assert load_recorded(path) == config
    (record,) = caplog.records
    for name in ("data.new", "training.r_drop", "other", "elsewhere"):
        assert name in record.getMessage()
    with pytest.raises(ConfigError, match="r_drop"):
        load_config(path)


def test_a_former_key_is_left_out_without_a_word_if_it_changed_nothing(tmp_path, caplog):
    path = write_config(tmp_path)
    recorded, config = load_recorded(path), load_config(path)
    text = path.read_text(encoding="utf-8")
    idle = 'terms = 0.0\ncontext = 0\ncontext_sides = "source"\n'
    path.write_text(text.replace("[data]\n", f"[data]\n{idle}"), encoding="utf-8")
    assert load_recorded(path) == recorded and load_config(path) == config and not caplog.records
    for key, value in (("terms", "0.6"), ("context", "2")):
        path.write_text(text.replace("[data]\n", f"[data]\n{key} = {value}\n"), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"data\.{key}"):
            load_config(path)
        assert load_recorded(path) == recorded and f"data.{key}" in caplog.text


def test_a_section_that_is_no_table_is_logged_and_left_out(tmp_path, caplog):
    path = tmp_path / "config.toml"
    path.write_text('run_folder = "run"\ntraining = 3\n[data]\nsource = "numbers"\n', encoding="utf-8")
    assert load_recorded(path).training == TrainingConfig(precision="float32")  # as all were before one was chosen
    assert "training" in caplog.text


def test_a_configuration_that_is_known_whole_is_read_without_a_word(tmp_path, caplog):
    path = write_config(tmp_path)
    config = load_config(path)
    path.write_text(config.to_toml(), encoding="utf-8")
    assert load_recorded(path) == config and not caplog.records


def test_a_key_that_an_older_record_lacks_has_the_value_that_the_run_was_trained_with(tmp_path):
    path = write_config(tmp_path)  # without tokenizer.normalization, which is "nfc" in a new run
    assert load_recorded(path).tokenizer.normalization == "identity"


@pytest.mark.parametrize("given", ['tokenizer.model="small.model"', 'training.start_from="run"'])
def test_a_run_whose_tokenizer_is_given_may_have_few_pieces(tmp_path, given):
    path = write_config(tmp_path)
    config = load_config(path, [given]).with_tokenizer(45, "nfkc")
    path.write_text(config.to_toml(), encoding="utf-8")
    assert load_recorded(path) == config
    with pytest.raises(ConfigError, match="tokenizer.vocab_size is 45: a tokenizer that is trained has at least 260"):
        load_config(write_config(tmp_path), ["tokenizer.vocab_size=45"])


def test_a_value_that_makes_no_sense_is_refused(tmp_path):
    path = write_config(tmp_path)
    path.write_text(
        path.read_text(encoding="utf-8").replace("[training]\n", "[training]\nseed = -1\n"), encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="training.seed"):
        load_recorded(path)
