"""The accelerator benchmark: its data, its arithmetic, its table, and a whole run on a CPU."""

import dataclasses
import importlib.util
import json

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.speed.accelerator import by_precision
from benchmarks.speed.on_accelerator.chip import Chip
from benchmarks.speed.on_accelerator.packed_text import batch_flops, packed_batches, pair_lengths, target_tokens
from benchmarks.speed.on_accelerator.process import Measuring, Training
from benchmarks.speed.on_accelerator.report import HEAD, Measurement, page, table
from benchmarks.speed.on_accelerator.task import CONTESTANTS, USUAL, Round, Task
from benchmarks.speed.processes import ContestantProcess
from tests.support.models import SMALL
from tests.support.processes import python, refusing
from train.cost.cost import training_flops

# the data


def test_synthetic_batches_are_packed_as_in_training():
    batches = packed_batches(500, 20 * 256, 256)
    assert len(batches) >= 8
    for batch in batches[:-1]:  # the last of an epoch is filled up from its beginning
        assert batch["source_ids"].shape == batch["labels"].shape == (20, 256)
        assert target_tokens(batch) > 0.9 * 20 * 256
        assert batch["labels"].max() < 500
    lengths = np.array([length for batch in batches for length in pair_lengths(batch)])
    assert lengths.mean() == pytest.approx(28, rel=0.1)
    assert lengths[:, 1].sum() == sum(map(target_tokens, batches))


def test_the_flops_of_a_batch_are_the_sum_over_its_pairs():
    batch = {"source_segments": np.array([[1, 1, 2, 0], [1, 0, 0, 0]])}
    batch["target_segments"] = np.array([[1, 2, 2, 2], [1, 1, 0, 0]])
    assert list(pair_lengths(batch)) == [(2, 1), (1, 3), (1, 2)]
    assert batch_flops(SMALL, batch) == sum(training_flops(SMALL, *lengths) for lengths in [(2, 1), (1, 3), (1, 2)])


# the table

GPU = Chip("gpu", "NVIDIA H100 80GB HBM3", {"jax": "1"}, 8192, {"bfloat16": 180e12}, {"bfloat16": 900e12}, 3e12, 4e12)
CPU = Chip("cpu", "X1", {"jax": "1"}, 512, {"bfloat16": 180e12}, {}, 20e9, None)


def measured(*seconds_per_step):
    rounds = tuple(Round(10, 10 * seconds, 9.0, None) for seconds in seconds_per_step)
    return Measurement("base", "keras_bfloat16", 25_000, 9e12, 1.0, rounds)


def test_the_median_round_counts_and_a_share_is_of_the_product_of_the_same_matrices():
    cells = measured(0.1, 0.5, 0.09).row(GPU)
    assert cells[3:8] == ("250,000", "100.0", "90", "50.0%", "10.0%")


def test_on_an_unknown_device_no_nominal_peak_is_stated():
    assert measured(0.1).row(CPU)[6:8] == ("50.0%", "unknown")


def test_a_contestant_that_could_not_be_measured_is_in_the_table_with_the_reason():
    absent = Measurement("base", "torch_bfloat16", 25_000, 9e12, failure="no a|b")
    lines = table([measured(0.1), absent], GPU).splitlines()
    assert [line.count("|") for line in lines] == [len(HEAD) + 1] * 4
    assert "not measured: no a/b" in lines[-1]


def test_a_contestant_that_fails_in_a_later_round_keeps_its_rounds_and_the_page_says_why():
    written = page(GPU, [dataclasses.replace(measured(0.1, 0.1), failure="out of memory")], "python", "A step.")
    assert "250,000" in written and "2 rounds, then: out of memory" in written


@pytest.mark.parametrize(("chip", "is_stated"), [(CPU, True), (GPU, False)])
def test_a_page_from_a_cpu_states_that_there_was_no_accelerator(chip, is_stated):
    written = page(chip, [measured(0.1)], "python -m benchmarks.speed.accelerator", "A step.")
    assert ("No accelerator was found" in written) == is_stated
    assert chip.name in written and "180 TFLOP/s" in written
    assert ("3,000 GB/s (nominal 4,000)" if chip is GPU else "20 GB/s.") in written


# the contestants


def test_contestants_of_one_precision_run_together_and_differ_in_framework_at_the_start():
    groups = list(by_precision(USUAL))
    assert [name for group in groups for name in group] == USUAL
    assert [{CONTESTANTS[name].precision for name in group} for group in groups] == [{"bfloat16"}, {"float32"}]
    assert all([CONTESTANTS[name].framework for name in group[:2]] == ["keras", "torch"] for group in groups)


# the command


def run(*options, **environment):
    return python("-m", "benchmarks.speed.accelerator", *options, JAX_PLATFORMS="cpu", **environment)


@pytest.mark.release
def test_it_runs_without_tensorflow_and_a_contestant_that_fails_is_a_row(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    path = refusing(tmp_path / "refused", "tensorflow", "tensorflow_text", "sentencepiece", "sacrebleu", "torch")
    shape = "--sizes", "tiny", "--rows", "4", "--row-length", "32", "--steps", "3", "--rounds", "2"
    contestants = "--contestants", "keras_bfloat16,torch_bfloat16,keras_float32"
    process = run("--to", tmp_path / "new", *shape, *contestants, PYTHONPATH=path)
    assert process.returncode == 0, process.stderr[-2000:]
    result = json.loads((tmp_path / "new" / "accelerator.json").read_text(encoding="utf-8"))
    ours, torch, ours_in_float32 = result["measurements"]
    assert "torch is refused" in torch["failure"] and not torch["rounds"]
    for measurement in (ours, ours_in_float32):
        first, last = measurement["rounds"]
        assert last["loss"] < first["loss"] and first["steps"] == 3 and measurement["tokens_per_second"] > 0
    page = (tmp_path / "new" / "accelerator.md").read_text(encoding="utf-8")
    assert "torch is refused" in page and page.count("| tiny |") == 3


@pytest.mark.release
def test_the_loss_of_torch_falls():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install -r requirements-peers.txt")
    config = SMALL.replace(dropout=0.0)
    batches = packed_batches(config.vocab_size, 4 * 32, 32)[:1]  # the same again and again
    with ContestantProcess(Training, "torch_float32", Task(config, batches)) as process:
        process.wait_until_ready()
        first, last = process.ask("round", 3), process.ask("round", 6)
    assert last.loss < first.loss and last.steps == 6


@pytest.mark.release
def test_a_process_that_dies_or_does_not_answer_is_a_sentence():
    with ContestantProcess(Measuring, "the chip") as process:
        with pytest.raises(BenchmarkError, match="the chip did not answer within 0 seconds"):
            process.wait_until_ready(0)
        process.kill()
        with pytest.raises(BenchmarkError, match="-9"):
            process.ask("chip")


@pytest.mark.release
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sizes", "huge"], "There is no preset 'huge'"),
        (["--contestants", "flax"], "There is no contestant 'flax'"),
    ],
)
def test_a_mistake_is_a_sentence(options, sentence, tmp_path):
    process = run("--to", tmp_path, *options)
    assert process.returncode == 1
    assert process.stderr.startswith(f"Error: {sentence}")
