"""The estimate of training's memory, against what resident memory grows by in a process that trains."""

import json
import pathlib
import re

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from tests.support.processes import python
from train.config.training import TrainingConfig
from train.cost.cost import training_memory
from train.data.batches import FIELDS

CONFIG = TransformerConfig(vocab_size=4000, encoder_layers=2, decoder_layers=2, d_model=256, d_ff=512, num_heads=4)
OFF_BY = 1.5  # as a factor, either way
SCRIPT = """
import sys
from tests.train import test_memory
print(test_memory.growth_of_two_steps(sys.argv[1]))
"""


def growth_of_two_steps(settings):
    """The bytes by which the peak of this process grows from before the model is built until two steps are done."""
    import tensorflow as tf

    from tests.support.training import train, training_model

    tf.config.list_logical_devices()
    before = peak()
    training = TrainingConfig(**json.loads(settings))
    batches = FullRows(training)
    model = training_model(dropout=0.1, config=CONFIG, **json.loads(settings))
    train(model, 0, 2, batches)
    return peak() - before


def peak():
    """The most bytes of memory that this process had, without those of the one that started it, as ru_maxrss has."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


class FullRows:
    """A stream of batches without padding: every row is one sentence."""

    fields = FIELDS

    def __init__(self, training):
        self.row_lengths, self.local_rows = training.row_lengths, training.tokens_per_batch // training.row_length

    def prepare_next(self, number, last):
        pass

    def batch(self, number):
        ids = np.random.default_rng(number).integers(4, CONFIG.vocab_size, (self.local_rows, self.row_lengths.target))
        ids = ids.astype("int32")
        ones = np.ones_like(ids)
        return {
            "source_ids": ids, "source_segments": ones, "target_ids": ids, "target_segments": ones, "labels": ids
        }  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("settings", [{"xla": False}, {"xla": True}, {"xla": True, "tokens_per_batch": 2048}])
def test_the_estimate_is_what_the_process_of_a_training_takes(settings):
    settings = {"tokens_per_batch": 6144, "row_length": 64} | settings
    run = python("-c", SCRIPT, json.dumps(settings))
    assert run.returncode == 0, run.stderr[-3000:]
    training = TrainingConfig(**settings)
    rows = training.tokens_per_batch // training.row_length
    estimate, measured = training_memory(training, CONFIG, rows, training.row_lengths), int(run.stdout)
    print(f"{settings}: estimate {estimate / 2**30:.2f} GiB, measured {measured / 2**30:.2f} GiB")
    assert measured / OFF_BY < estimate < measured * OFF_BY
