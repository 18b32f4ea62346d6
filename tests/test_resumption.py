"""Going on under another configuration: what may change is said, what may not is refused."""

import logging

import pytest

from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder
from train.config import load_config
from train.resume import check_changes

CONFIG = """
run_folder = "run"
[data]
source = "numbers"
[model]
preset = "tiny"
"""


@pytest.fixture
def begun(tmp_path):
    """A function from overrides to a check of them against a run that was begun without."""
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir()
    folder.config.write_text(load_config(path).to_toml())
    (folder.checkpoints / "step-00000010.npz").touch()
    return lambda *overrides: check_changes(folder, load_config(path, overrides))


def test_the_same_configuration_says_nothing(begun, caplog):
    with caplog.at_level(logging.INFO, logger="train"):
        begun()
    assert not caplog.messages


def test_a_key_that_may_change_is_said_with_both_values(begun, caplog):
    with caplog.at_level(logging.INFO, logger="train"):
        begun("training.steps=7", "training.dropout=0.2")
    said = "\n".join(caplog.messages)
    assert "training.steps was 100000 and is 7" in said
    assert "training.dropout was 'not set' and is 0.2" in said


@pytest.mark.parametrize(
    "override", ["model.d_model=64", 'model.preset="base"', "tokenizer.vocab_size=500", 'model.norm="pre"']
)
def test_a_key_that_changes_the_meaning_of_weights_is_refused_by_name(begun, override):
    with pytest.raises(ConfigError, match=override.partition("=")[0]):
        begun(override)


def test_before_the_first_checkpoint_anything_may_change(tmp_path, begun):
    (tmp_path / "run/checkpoints/step-00000010.npz").unlink()
    begun("model.d_model=64")
    assert not list((tmp_path / "run/checkpoints").iterdir())
