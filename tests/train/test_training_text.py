"""A run that continues on other text than it was trained on so far warns, and names the files."""

import dataclasses
import itertools
import logging
import os
import types

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.training import copying_pairs
from train.config.sources.files import FilesData
from train.config.sources.numbers import NumbersData
from train.config.tokenizer import TokenizerConfig
from train.config.training import TrainingConfig
from train.data.encoding import EncodedShards
from train.data.prepare import load_corpus, prepare_data
from train.data.vocabulary import prepare_tokenizer
from train.record.finished import Standing
from train.record.training_text import check_same_text_on_all_workers, record_training_text
from train.workers.tf_config import ONLY_WORKER, Worker
from train.workers.workers import Workers

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

    steps = itertools.count(1)  # each start but a repeated one comes after a checkpoint

    def start(data=None, worker=ONLY_WORKER, step=None, is_done=False):
        entry = list(map(str, pair))
        corpus = load_corpus(data or FilesData(source="files", train=[entry], validation=[entry]))
        vocabulary = TokenizerConfig(vocab_size=290)
        tokenizer = prepare_tokenizer(vocabulary, corpus.train.shards, folder.tokenizer)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "train"):
            found = prepare_data(corpus, tokenizer, TRAINING, folder.path / "cache", worker)
            record_training_text(folder, found, Standing(step or next(steps), is_done), worker)
        return caplog.messages

    return start


def test_a_changed_file_is_named_once_and_the_unchanged_one_is_not(start, pair):
    assert start() == []
    pair[0].write_text(pair[0].read_text(encoding="utf-8").replace("one 7\n", "two 7\n"), encoding="utf-8")
    (warning,) = start()
    assert f"{pair[0]} has changed" in warning and str(pair[1]) not in warning
    assert "40 pairs before, 40 now" in warning
    assert start() == []


def test_a_run_that_trains_no_more_is_said_to_be_of_no_other_text(start, pair, folder):
    start()
    assert start(step=7, is_done=True) == []
    record = folder.training_text.read_bytes()
    pair[0].write_text(pair[0].read_text(encoding="utf-8").replace("one 7\n", "two 7\n"), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"trained for 7 steps, .*{pair[0].name} has changed.*another run_folder"):
        start(step=7, is_done=True)
    assert folder.training_text.read_bytes() == record
    assert len(start(step=7)) == 1  # with more steps it goes on


def test_a_text_that_no_step_was_trained_on_is_forgotten(start, pair):
    first = pair[0].read_text(encoding="utf-8")
    start()
    for text, warnings in ((first.replace("one 7\n", "two 7\n"), 1), (first, 0), (first.replace("7", "8"), 1)):
        pair[0].write_text(text, encoding="utf-8")
        assert len(start(step=50)) == warnings  # no checkpoint was written in between
    with pytest.raises(ConfigError, match="trained for 50 steps"):
        start(step=50, is_done=True)
    assert start(step=60) == []  # now one was: the run is of the last text
    pair[0].write_text(first, encoding="utf-8")
    assert start(step=50, is_done=True) == []  # its checkpoint is lost, and with it all steps on that text


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


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("", "[]", '{"pairs": 1, "shards": 2, "files": {}}')
        ),
    ],
)
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


# the text of several workers


def data_with(*keys, shards=1):
    """What is compared of PreparedData with pairs of these keys."""
    pairs = dataclasses.replace(copying_pairs(len(keys)), keys=np.array(keys, np.uint64))
    corpus = types.SimpleNamespace(train=types.SimpleNamespace(shards=range(shards)))
    return types.SimpleNamespace(corpus=corpus, train=EncodedShards([pairs]))


def compare(chief, other):
    """Compare the PreparedData of two workers, as both do."""
    sent = []
    first, second = (lambda text: sent.append(text) or text), (lambda text: sent[0])
    check_same_text_on_all_workers(chief, types.SimpleNamespace(worker=Worker(0, 2), text_of_chief=first))
    check_same_text_on_all_workers(other, types.SimpleNamespace(worker=Worker(1, 2), text_of_chief=second))


def test_a_worker_with_other_pairs_than_the_chief_is_refused():
    compare(data_with(1, 2, 3), data_with(1, 2, 3))
    for others in ((1, 2, 4), (1, 3, 2)):
        with pytest.raises(ConfigError, match="not that of worker 0: it has 3 pairs here and 3 there.*data.shards"):
            compare(data_with(1, 2, 3), data_with(*others))
    with pytest.raises(ConfigError, match="it has 2 pairs here and 3 there"):
        compare(data_with(1, 2, 3), data_with(1, 2))


def test_workers_that_divide_the_text_have_pairs_of_their_own():
    compare(data_with(1, 2, shards=2), data_with(3, shards=2))
    check_same_text_on_all_workers(data_with(1), Workers(None))  # nobody to compare with
