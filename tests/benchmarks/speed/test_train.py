"""The training-speed benchmark compares equal work and reports ratios of its measurements."""

import importlib.util
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.errors import BenchmarkError
from benchmarks.speed import train
from benchmarks.speed.contestants import PACKAGES, prepare
from benchmarks.speed.contestants.workload import SIZES, Workload
from benchmarks.speed.train import Timings, app, check_same_loss, steps_for
from benchmarks.speed.train_table import as_markdown, flops_per_token, summary
from benchmarks.speed.train_worker import Turn, Worker
from keras_transformer.ground.tokens import BOS, EOS, PAD
from tests.support.models import SMALL, assert_close

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install -r requirements-peers.txt"
)
PEERS = [pytest.param("torch_eager", marks=needs_torch), "keras_hub"]
WORKLOAD = Workload(SMALL.replace(dropout=0.1), rows=4, length=8, packed_length=32, warmup_steps=8)


class PaddedWorkload(Workload):
    """Sentences of different lengths: a mask or a mean that counts padding gives another loss."""

    def batch(self, seed=1):
        batch = super().batch(seed)
        positions = np.arange(self.length)
        for side, lengths in (("source", [8, 3, 5, 1]), ("target", [2, 8, 4, 5])):
            is_real = positions < np.array(lengths)[:, None]
            batch[f"{side}_segments"] = is_real.astype(np.int32)
            batch[f"{side}_ids"] = np.where(is_real, batch[f"{side}_ids"], PAD)
        batch["labels"] = np.where(is_real, batch["labels"], PAD)
        return batch


@pytest.fixture(scope="module")
def padded():
    """With biases in attention, as in the peers, and without dropout, since each contestant draws its own masks."""
    return PaddedWorkload(SMALL.replace(attention_bias=True, dropout=0.0), rows=4, length=8, warmup_steps=8)


@pytest.fixture(scope="module")
def our_losses(padded):
    return losses(prepare("ours", padded), "ours")


def losses(contestant, lane):
    """The loss at the starting weights, and those of 8 steps."""
    return [contestant.loss, *(contestant.lanes[lane].run(1) for _ in range(8))]


@pytest.mark.release
@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_has_the_same_losses_before_and_during_training(peer, padded, our_losses):
    found = losses(prepare(peer, padded), peer)
    assert_close(found, our_losses, atol=0, rtol=1e-4)  # the same model, loss, masks, optimizer and schedule
    assert found[0] > found[-1] + 0.5


@pytest.mark.release
def test_our_bfloat16_learns_as_float32_does(padded, our_losses):
    found = prepare("ours_bfloat16", padded)
    assert found.loss is None  # which would not be the others' to four digits
    after = [found.lanes["ours_bfloat16"].run(1) for _ in range(8)]
    assert_close(after[:4], our_losses[1:5], atol=0, rtol=0.01)  # later, roundings have led them apart
    assert after[-1] < after[0] - 0.5


def test_every_position_of_the_batch_is_a_real_token():
    batch = WORKLOAD.batch()
    assert all(np.all(batch[f"{side}_segments"] == 1) for side in ("source", "target"))
    assert np.all(batch["target_ids"][:, 0] == BOS) and np.all(batch["labels"][:, -1] == EOS)
    assert np.array_equal(batch["target_ids"][:, 1:], batch["labels"][:, :-1])
    assert batch["labels"].size == WORKLOAD.tokens
    assert min(batch["source_ids"].min(), batch["labels"].min()) == EOS  # no padding


def test_the_ratios_are_quotients_of_medians():
    timings = Timings(
        work={
            "ours": 24, "ours_bfloat16": 24, "ours_packed_constant": 20, "ours_packed_real": 20, "torch_eager": 24,
            "gemm_peak": 8 * flops_per_token(WORKLOAD),
        },
        seconds={
            "ours": [2.0, 1.0, 4.0], "ours_packed_constant": [1.0, 2.0, 1.0], "ours_packed_real": [1.5, 2.0, 2.0],
            "torch_eager": [8.0, 6.0, 8.0], "ours_bfloat16": [1.0, 1.0, 1.0], "gemm_peak": [0.5, 0.5, 0.25],
        },
        parameters={"ours": 10, "ours_bfloat16": 10, "torch_eager": 12}, loss={"ours": 3.0, "torch_eager": 3.0},
        idle_share={"ours": 0.02, "torch_eager": 0.01},
    )  # fmt: skip
    found = summary({"test": timings}, {"test": WORKLOAD}, 3, "command", load=0.25)
    assert found["tokens_per_second"]["test/ours"] == 12 and found["tokens_per_second"]["test/torch_eager"] == 3
    assert found["ratios"]["test/torch_eager"] == 4 and found["spreads"]["test/torch_eager"] == [2, 6]
    assert found["ratios"]["test/ours_bfloat16"] == 0.5
    assert "| this project, mixed_bfloat16 without XLA | 10 |  | 24 (24 to 24) | **0.50** (0.25 to 1.00) |  |" in (
        as_markdown(found)
    )
    assert found["ratios"]["test/gemm_peak"] == pytest.approx(12 / 16)
    assert found["limits"] == {"test/torch_eager": pytest.approx(16 / 3)}  # 16 tokens/s of products alone
    assert found["ratios"]["test/real_data_step_time"] == 2 and found["spreads"]["test/real_data_step_time"] == [1, 2]
    assert "**4.00** (2.00 to 6.00)" in as_markdown(found) and "at most 2.0%" in as_markdown(found)


class Steady:
    """A worker whose steps all take the same time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def run(self, lane, steps):
        return Turn(self.seconds * steps, 0.0, 0.0)


@pytest.mark.parametrize(("step", "steps"), [(0.25, 16), (0.01, 400), (1.0, 4), (30.0, 2)])
def test_a_turn_takes_about_the_time_requested_and_at_least_two_steps(step, steps):
    assert steps_for(Steady(step), "lane", 4.0) == steps


def test_contestants_with_different_losses_are_not_compared():
    check_same_loss({"ours": 9.70801, "torch_eager": 9.70802})
    with pytest.raises(BenchmarkError, match="different losses"):
        check_same_loss({"ours": 9.708, "torch_eager": 9.710})


@pytest.mark.release
def test_the_error_names_a_contestant_that_dies():
    worker = Worker("nobody", WORKLOAD)
    with pytest.raises(BenchmarkError, match="nobody failed: KeyError: 'nobody'"):
        worker.describe()
    worker.kill()


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sizes", "huge"], "There is no size 'huge'; there are tiny, small, base."),
        (["--contestants", "ours,jax"], "There is no contestant 'jax'"),
        (["--contestants", "torch_eager"], "which is not installed: run `make peers`."),
    ],
)
def test_a_mistake_is_a_sentence(arguments, sentence, monkeypatch):
    monkeypatch.setitem(PACKAGES, "torch_eager", "a_package_that_nobody_has")
    result = invoke(*arguments)
    assert result.exit_code == 1 and result.output.startswith("Error: ") and sentence in result.output
    assert result.output.count("\n") == 1


@pytest.mark.release
def test_a_run_from_command_to_files(tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "test", WORKLOAD)
    monkeypatch.setattr(train, "SECONDS", 0.1)
    options = ["--sizes", "test", "--contestants", "ours,keras_hub,gemm_peak", "--rounds", 2, "--results", tmp_path]
    result = invoke(*options)
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "train_speed.json").read_text(encoding="utf-8"))
    rates = found["tokens_per_second"]
    assert set(found["ratios"]) == {"test/keras_hub", "test/gemm_peak", "test/real_data_step_time"}
    assert found["ratios"]["test/keras_hub"] == pytest.approx(rates["test/ours"] / rates["test/keras_hub"])
    assert found["ratios"]["test/gemm_peak"] == pytest.approx(
        found["model_gflops"]["test"] / found["gemm_gflops"]["test"]
    )
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in found["per_round"].values())
    assert set(found["idle_core_share"]) == {"test/ours", "test/keras_hub", "test/gemm_peak"}
    assert (tmp_path / "train_speed.md").read_text(encoding="utf-8") in result.output
