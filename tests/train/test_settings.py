"""What runs are compared by: every key that has a value, with the preset's where the configuration has none."""

import pytest

from tests.support.runs import write_config
from train.config.run import load_config
from train.config.settings import effective_settings


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
