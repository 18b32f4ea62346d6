"""The training-speed benchmark compares equal work and reports ratios of its measurements."""

import importlib.util
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.speed import train
from benchmarks.speed.contestants import prepare
from benchmarks.speed.contestants.workload import SIZES, Workload
from benchmarks.speed.train import app
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


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


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
