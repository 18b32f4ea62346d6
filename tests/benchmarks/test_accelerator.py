"""The accelerator benchmark: its step equals the training step, and its memory and kernels are as documented."""

import os
import pathlib
import re
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.accelerator import Contestant, ContestantFailed
from benchmarks.on_accelerator.pairs import batch_flops, packed_batches, pair_lengths, target_tokens
from benchmarks.on_accelerator.report import HEAD, Absence, Measurement, page, table
from benchmarks.on_accelerator.training import Task
from tests.support.models import SMALL, as_numpy, assert_close
from tests.support.processes import python, run_without_tensorflow
from tests.support.training import BATCHES, TINY, train, training_model
from train.cost.cost import training_flops

STEPS = 3
CONFIG = TINY.replace(dropout=0.1)

SCRIPT = """
import pathlib, sys
import tests.support.scripts.on_jax as on_jax
on_jax.main(pathlib.Path(sys.argv[1]).with_name("given.npz"), sys.argv[1])
print("tensorflow" in sys.modules)
"""


@pytest.fixture(scope="module")
def trained():
    """Weights by path before training, and the losses of the first steps, of the TensorFlow TrainingModel."""
    model = training_model(dropout=CONFIG.dropout, seed=0)
    weights = {variable.path: as_numpy(variable).astype("float32") for variable in model.trainable_variables}
    return weights, [logs["loss"] for logs in train(model, 0, STEPS)]


@pytest.fixture(scope="module")
def on_jax(trained, tmp_path_factory):
    """The results of tests/support/scripts/on_jax.py."""
    folder = tmp_path_factory.mktemp("jax")
    given = {f"weight {path}": values for path, values in trained[0].items()}
    for step in range(STEPS):
        given |= {f"batch {step} {name}": ids for name, ids in BATCHES.batch(step).items()}
    np.savez(folder / "given.npz", steps=STEPS, config=CONFIG.to_json(), **given)
    run_without_tensorflow("jax", SCRIPT, folder / "found.npz")
    with np.load(folder / "found.npz") as arrays:
        return SimpleNamespace(**{name: arrays[name] for name in arrays.files})


# the step


@pytest.mark.slow
def test_the_jax_step_trains_as_the_tensorflow_step_with_dropout(on_jax, trained):
    assert_close(on_jax.losses, trained[1], rtol=1e-4)
    assert np.ptp(trained[1]) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_memory_never_holds_three_copies_of_the_logits(on_jax, precision):
    # 512 positions x 16,384 pieces at width 16: beside the logits, everything else is small
    assert getattr(on_jax, f"{precision}_temporary") < 3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_a_step_reuses_the_memory_of_weights_and_optimizer(on_jax, precision):
    assert getattr(on_jax, f"{precision}_reused") == 1


# the fused kernel


@pytest.mark.slow
def test_fused_attention_and_its_gradients_equal_the_formula(on_jax):
    for number in range(4):  # output; gradients by query, key, value
        fused, explicit = (getattr(on_jax, f"{name}_{number}") for name in ("fused", "explicit"))
        assert abs(explicit).max() > 0.5
        assert_close(fused, explicit, atol=0.02, rtol=0.02)  # bfloat16 has 8 bits: steps of 0.016 at 2 to 4


@pytest.mark.slow
def test_fused_attention_returns_zeros_for_a_query_that_may_attend_to_nothing(on_jax):
    assert_close(on_jax.fused_0[0, :, 5], np.zeros((2, 8)), atol=0)
    assert_close(on_jax.fused_1[0, :, 5], np.zeros((2, 8)), atol=0)


@pytest.mark.slow
def test_lowered_for_a_gpu_every_attention_of_a_step_calls_cudnn_forward_and_backward(on_jax):
    assert on_jax.kernel_calls.tolist() == [3, 3]  # one encoder block, one decoder block


@pytest.mark.slow
def test_a_compiled_step_with_the_fused_kernel_computes_no_attention_weights(on_jax):
    assert on_jax.weights_if_explicit
    assert not on_jax.weights_if_fused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "is_taken"),
    [
        ("in_bfloat16", True),
        ("in_float16", False),
        ("in_float32", False),
        ("for_one_query", False),
        ("for_width_12", False),
        ("when_disabled", False),
        ("without_a_gpu", False),
    ],
)
def test_the_fused_kernel_is_used_only_if_it_is_right(on_jax, case, is_taken):
    assert getattr(on_jax, f"taken_{case}") == is_taken


@pytest.mark.slow
def test_if_the_fused_kernel_fails_the_formula_replaces_it_and_a_note_tells(on_jax):
    failed = "with fused attention it did not run: no engine"
    assert on_jax.notes.tolist() == [failed, "attention: the explicit formula", "disabled: True"]


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


def measured(size, *seconds_per_step):
    round_of = dict(steps=10, first_loss=9.0, last_loss=8.0, peak_bytes=None)
    rounds = [round_of | {"seconds": 10 * seconds} for seconds in seconds_per_step]
    return Measurement(size, "ours", 1.0, 25_000, 9e12, rounds, ["attention: the explicit formula"])


def test_at_72_milliseconds_per_step_the_papers_base_takes_two_hours_and_big_six():
    assert measured("base", 0.072).hours == pytest.approx(2.0)
    assert measured("big", 0.072).hours == pytest.approx(6.0)


def test_the_median_round_counts_and_the_share_is_of_the_measured_product():
    cells = measured("base", 0.1, 0.5, 0.09).row(matrix_flops=180e12)
    assert cells[2:5] == ("250,000", "90", "50.0%")


def test_a_contestant_that_could_not_be_measured_is_in_the_table_with_the_reason():
    lines = table([measured("base", 0.1), Absence("base", "theirs", "no a|b")], 1e15).splitlines()
    assert [line.count("|") for line in lines] == [len(HEAD) + 1] * 4
    assert "not measured: no a/b" in lines[-1]


@pytest.mark.parametrize(("platform", "is_stated"), [("cpu", True), ("gpu", False)])
def test_a_page_from_a_cpu_states_that_there_was_no_accelerator(platform, is_stated):
    chip = {"platform": platform, "name": "X1", "versions": {"jax": "1"}, "matrix_size": 8192, "matrix_flops": 7.9e14}
    written = page(chip, [measured("base", 0.1)], "python -m benchmarks.accelerator", "A step.")
    assert ("No accelerator was available" in written) == is_stated
    assert "X1" in written and "790 TFLOP/s" in written


# the command


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """A function that makes modules impossible to import in processes that are started after it."""

    def refuse(*names):
        for name in names:
            (tmp_path / f"{name}.py").write_text("raise ImportError(f'{__name__} is refused')")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return refuse


def run(*options):
    folders = os.environ.get("PYTHONPATH", "")  # of `refused`; Python finds the project in the folder where it starts
    return python("-m", "benchmarks.accelerator", *options, PYTHONPATH=folders, JAX_PLATFORMS="cpu")


@pytest.mark.slow
def test_it_runs_without_tensorflow_and_the_loss_falls(refused, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    refused("tensorflow", "tensorflow_text", "sentencepiece", "sacrebleu")
    written = tmp_path / "new" / "page.md"
    shape = "--tokens", "256", "--row-length", "64", "--steps", "6", "--rounds", "2", "--warmup-steps", "20"
    process = run(*shape, "--results", str(written))
    assert process.returncode == 0, process.stderr[-2000:]
    assert "No accelerator was available" in written.read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in process.stdout.splitlines() if line.startswith("| tiny")]
    assert [row[1].split(",")[0] for row in rows] == ["keras_transformer", "torch.nn.Transformer"]
    if pathlib.Path(np.__file__).parent.parent.joinpath("torch").exists():
        measured_rows = rows
    else:
        assert "No module named 'torch'" in rows[1][2]
        measured_rows = rows[:1]
    for row in measured_rows:
        assert len(row) == len(HEAD)
        tokens, flops, share, hours, ready = (
            float(re.match(r"[\d.,]+", cell)[0].replace(",", "")) for cell in row[2:7]
        )
        assert min(tokens, flops, share, hours, ready) > 0
        first, last = map(float, row[8].split(" to "))
        assert last < first - 0.3


@pytest.mark.slow
def test_a_framework_that_is_not_installed_is_a_sentence(refused):
    refused("torch")
    with Contestant("torch", Task("tiny", 256, 64, "fused", 20)) as contestant:
        with pytest.raises(ContestantFailed, match="torch is refused"):
            contestant.answer()


@pytest.mark.slow
def test_a_process_that_dies_is_a_sentence():
    with Contestant("chip") as contestant:
        contestant.process.kill()
        with pytest.raises(ContestantFailed, match="its process ended with code -9"):
            contestant.answer()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sizes", "huge"], "There is no preset 'huge'"),
        (["--attention", "flash"], "--attention is 'flash'; it must be fused or explicit."),
        (["--tokens", "100"], "--tokens is 100; it must be at least --row-length, 256."),
    ],
)
def test_a_mistake_is_a_sentence(options, sentence):
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    process = run(*options)
    assert process.returncode == 1
    assert process.stderr.startswith(f"Error: {sentence}")
