"""The section `training`: keys that have no effect with the chosen schedule are refused before a run."""

import pytest

from keras_transformer.ground.errors import ConfigError
from tests.support.runs import write_config
from train.config.run import load_config
from train.config.training import TrainingConfig, check_idle_keys


@pytest.mark.parametrize("key", ["learning_rate=1e-5", "warmup_steps=7", "learning_rate_factor=2.0"])
def test_a_key_of_the_other_schedule_is_refused(tmp_path, key):
    name = key.partition("=")[0]
    schedule, other = ("paper", "constant") if name == "learning_rate" else ("constant", "paper")
    changes = ["training.warmup_steps=4_000", f"training.schedule={schedule}", f"training.{key}"]
    config = load_config(write_config(tmp_path), changes)  # as one of an older run may be read
    with pytest.raises(ConfigError, match=f'{name} is .* schedule "{other}", and .*schedule is "{schedule}"'):
        check_idle_keys(config.training)


def test_a_device_processes_its_share_of_the_rows_of_a_micro_batch_at_once():
    assert TrainingConfig(tokens_per_batch=24_000, micro_batches=3).positions_at_once(replicas=4) == 2_000
