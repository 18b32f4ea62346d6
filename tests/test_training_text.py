"""A run that continues on other text than it was trained on so far warns, and names the files."""

import logging
import os

import pytest

from keras_transformer.run_folder import RunFolder
from train.config import FilesData, NumbersData, TokenizerConfig, TrainingConfig
from train.data.prepare import load_corpus, prepare_data
from train.data.training_text import record_training_text
from train.data.vocabulary import prepare_tokenizer
from train.workers.tf_config import ONLY_WORKER, Worker

TRAINING = TrainingConfig(tokens_per_batch=64, row_length=32)


@pytest.fixture
def pair(tmp_path):
    paths = [tmp_path / name for name in ("train.en", "train.de")]
    for path in paths:
        path.write_text("".join(f"one {number}\n" for number in range(40)), encoding="utf-8")
    return paths


@pytest.fixture
def folder(tmp_path):
    """A run folder with a checkpoint."""
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    (folder.checkpoints / "step-00000001.npz").touch()
    return folder


@pytest.fixture
def start(folder, pair, caplog):
    """A function that prepares the data as a start of the run does. Returns what is warned of."""

    def start(data=None, worker=ONLY_WORKER):
        entry = list(map(str, pair))
        corpus = load_corpus(data or FilesData(source="files", train=[entry], validation=[entry]))
        vocabulary = TokenizerConfig(vocab_size=290)
        tokenizer = prepare_tokenizer(vocabulary, corpus.train.shards, folder.tokenizer)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "train"):
            record_training_text(
                folder, prepare_data(corpus, tokenizer, TRAINING, folder.path / "cache", worker), worker
            )
        return caplog.messages

    return start


def test_a_changed_file_is_named_once_and_the_unchanged_one_is_not(start, pair):
    assert start() == []
    pair[0].write_text(pair[0].read_text(encoding="utf-8").replace("one 7\n", "two 7\n"), encoding="utf-8")
    (warning,) = start()
    assert f"{pair[0]} has changed" in warning and str(pair[1]) not in warning
    assert "40 pairs before, 40 now" in warning
    assert start() == []


def test_missing_lines_are_counted(start, pair):
    start()
    for path in pair:
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:30]), encoding="utf-8")
    (warning,) = start()
    assert "40 pairs before, 30 now" in warning and all(f"{path} has changed" in warning for path in pair)


def test_the_same_text_in_other_files_is_no_change(start, pair, tmp_path):
    start()
    os.utime(pair[0], ns=(1, 1))
    assert start() == []
    moved = [path.rename(tmp_path / f"moved.{path.name}") for path in pair]
    pair[:] = moved
    assert start() == []


def test_the_order_of_the_pairs_counts(start, pair):
    start()
    for path in pair:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(reversed(lines)), encoding="utf-8")
    assert len(start()) == 1


def test_text_without_files_is_compared_too(start):
    sizes = {"maximum": 999, "train_pairs": 200, "validation_pairs": 5, "test_pairs": 5}
    assert start(NumbersData(source="numbers", **sizes)) == []
    (warning,) = start(NumbersData(source="numbers", seed=2, **sizes))
    assert "200 pairs before, 200 now" in warning


def test_before_the_first_checkpoint_the_text_may_change(start, folder, pair):
    start()
    (folder.checkpoints / "step-00000001.npz").unlink()
    pair[0].write_text(pair[0].read_text(encoding="utf-8").replace("one", "two"), encoding="utf-8")
    assert start() == []


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pairs": 1, "shards": 2, "files": {}}'])
def test_a_damaged_record_is_reported_and_written_again(start, folder, content):
    start()
    folder.training_text.write_text(content, encoding="utf-8")
    (warning,) = start()
    assert f"{folder.training_text} is damaged" in warning
    assert start() == []


@pytest.mark.parametrize("workers", [(ONLY_WORKER, Worker(0, 2)), (Worker(0, 2), ONLY_WORKER)])
def test_another_number_of_workers_is_no_change_of_the_text(start, pair, workers):
    entry = list(map(str, pair))
    data = FilesData(source="files", train=[entry, entry[::-1]], validation=[entry], shards=2)
    assert [start(data, worker) for worker in workers] == [[], []]
    pair[0].write_text(pair[0].read_text(encoding="utf-8").replace("one 7\n", "two 7\n"), encoding="utf-8")
    (warning,) = start(data, workers[0])
    assert f"{pair[0]} has changed" in warning
