"""Where a key of the configuration was set, for a message."""

import pytest

from train.config.errors import set_by

OVERRIDES = ["training.steps=1", 'data.train=[{files = "a.tsv", weight = -1}]', "training.steps = 2", "model.norm=pre"]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("training.steps", "--set training.steps = 2"),  # the last one counts
        ("data.train.0.weight", f"--set {OVERRIDES[1]}"),  # within the value of an override
        ("model", "--set model.norm=pre"),  # a section of which a key is overridden
        ("training.step", "run.toml"),
        ("training.steps_per_epoch", "run.toml"),
    ],
)
def test_a_key_is_set_by_the_last_override_that_has_it(key, place):
    assert set_by(key, "run.toml", OVERRIDES) == place
