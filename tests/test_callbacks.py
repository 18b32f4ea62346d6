"""Beside the steps: what is counted, when validation comes, and how durations and samples are written."""

import logging
import re
import types

import pytest

from train.config import RowLengths
from train.evaluation.validation import Sample, Validation
from train.loop.callbacks import LogCompilation, LogProgress, Validate
from train.loop.markdown import samples_table
from train.loop.progress import Progress, duration

LOGS = {"loss": 2.0, "nll": 0.0, "accuracy": 0.5, "learning_rate": 0.1, "gradient_norm": 3.0, "tokens": 70.0}


class Written(list):
    """Stands for MetricsLog: a list of (step, values)."""

    def write(self, step, values):
        self.append((step, values))


def test_steps_tokens_and_time_are_counted_on_from_where_the_run_stands():
    progress, written = Progress(step=10, seconds=5.0, target_tokens=100.0), Written()
    callback = LogProgress(progress, written, last_step=12, log_every=100)
    callback.on_train_begin()
    for batch in range(2):
        callback.on_train_batch_begin(batch)
        callback.on_train_batch_end(batch, LOGS)
    assert (progress.step, progress.target_tokens) == (12, 240.0) and 5.0 < progress.seconds < 6.0
    assert [step for step, _ in written] == [11, 12]
    assert (written[0][1]["train/loss"], written[0][1]["train/perplexity"]) == (2.0, 1.0)


def test_the_first_step_of_a_process_says_what_is_compiled_and_how_long_it_took(caplog):
    callback = LogCompilation(types.SimpleNamespace(rows_per_batch=32, row_lengths=RowLengths(124, 128)))
    strategy = types.SimpleNamespace(num_replicas_in_sync=2)
    model = types.SimpleNamespace(xla=True, micro_batches=4, distribute_strategy=strategy, count_params=lambda: 1_000)
    callback.set_model(model)
    with caplog.at_level(logging.INFO, logger="train"):
        for batch in range(3):
            callback.on_train_batch_begin(batch)
            callback.on_train_batch_end(batch, LOGS)
    compiled, took = caplog.messages
    assert compiled == (
        "compiling the training step with XLA: 4 of a batch's 32 rows, of 124 source and 128 target positions, "
        "through 1,000 parameters ..."
    )
    assert re.fullmatch(r"the first step took \d+\.\d s, compilation included", took)


def test_validation_comes_every_so_many_steps_and_after_the_last():
    progress, written = Progress(), Written()
    scores = types.SimpleNamespace(bleu=12.0, exact=25.0)
    validation = Validation(1.5, 1.0, 0.25, scores, [Sample("a", "b", "c")])
    callback = Validate(progress, written, lambda: validation, 7, 3)
    for progress.step in range(1, 8):
        callback.on_train_batch_end(0)
    assert [step for step, _ in written] == [3, 6, 7]
    values = written[0][1]
    assert [values[f"validation/{name}"] for name in ("loss", "perplexity", "token_accuracy", "bleu", "exact")] == [
        1.5, 1.0, 0.25, 12.0, 25.0,
    ]  # fmt: skip
    assert "| a | b | c |" in values["validation/samples"]


def test_a_sample_is_one_row_of_three_cells_whatever_is_in_it():
    table = samples_table([Sample("a|b", "c", "d\ne\r\nf")])
    assert table.splitlines()[2:] == [r"| a\|b | c | d e f |"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (9, "9 s"), (59.6, "1 min 00 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (3725, "1 h 02 min")],
)
def test_a_duration_is_said_in_its_two_largest_units(seconds, text):
    assert duration(seconds) == text
