"""From encoded text to batches: what the seed decides."""

import numpy as np
import pytest

from tests.support.training import TRAINING, copying_pairs
from train.data import cache
from train.data.corpus import Split
from train.data.encoding import EncodedShards
from train.data.prepare import MOST_CHECK_LINES, keep_check_lines, packed_batches
from train.workers.tf_config import ONLY_WORKER


@pytest.mark.parametrize("shards", [1, 2])
def test_the_order_of_the_text_is_that_of_the_seed(shards):
    train = EncodedShards([copying_pairs()] * shards)
    first, same, other = (
        packed_batches(train, TRAINING.model_copy(update={"seed": seed}), shards, ONLY_WORKER).batch(0)["labels"]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_a_run_keeps_the_first_validation_sentences_and_no_more(tmp_path):
    split = Split("data.validation", lambda: ((f"source {n}", "target") for n in range(MOST_CHECK_LINES + 2)))
    keep_check_lines(split, tmp_path / "lines")
    lines = (tmp_path / "lines").read_text(encoding="utf-8").splitlines()
    assert lines == [f"source {n}" for n in range(MOST_CHECK_LINES)]


def test_progress_is_logged_once_for_every_so_many_pairs(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(cache, "REPORT_EVERY", 10)
    chunks = [range(4), range(4), range(4), range(3), range(20), range(3)]
    assert list(cache._log_progress("data.train", chunks)) == chunks
    assert caplog.messages == [f"data.train: {pairs} pairs encoded so far" for pairs in (12, 35)]
