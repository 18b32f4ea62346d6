"""metrics.jsonl and TensorBoard hold the same; a resumed run goes on where its checkpoint stands; disks fill up."""

import errno
import json
import logging
import time

import pytest

from keras_transformer.runs.run_folder import RunFolder
from tests.support.events import read_events, read_wall_times
from train.loop.metrics_log import MetricsLog


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def write(folder, first_step, last_step):
    """A process that goes on from `first_step` and logs up to `last_step`."""
    metrics = MetricsLog(folder, first_step)
    for step in range(first_step + 1, last_step + 1):
        metrics.write(step, {"train/loss": 10.0 / step, "train/gradient_norm": float(step)})
    metrics.close()


def records_of(folder):
    """The records without their times, parsed as strictly as JSON is: without NaN and Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")

    lines = folder.metrics.read_text(encoding="utf-8").split("\n")
    records = [json.loads(line, parse_constant=refuse) for line in lines if line]
    assert all(isinstance(record.pop("time"), float) for record in records)
    return records


def steps_of(folder):
    return [record["step"] for record in records_of(folder)]


def event_steps_of(folder):
    return [step for step, _ in read_events(folder.tensorboard)["train/loss"]]


def damaged_lines_of(folder):
    return folder.metrics.with_name("metrics.jsonl.damaged").read_bytes()


def test_the_file_and_tensorboard_hold_the_same_numbers(folder):
    write(folder, 0, 3)
    records, events = records_of(folder), read_events(folder.tensorboard)
    assert [set(record) for record in records] == [{"step", "train/loss", "train/gradient_norm"}] * 3
    assert set(events) == {"train/loss", "train/gradient_norm"}
    for name, values in events.items():
        assert [step for step, _ in values] == [1, 2, 3]
        assert [value for _, value in values] == pytest.approx([record[name] for record in records])


def test_a_record_is_in_both_files_before_the_next_step(folder):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/loss": 2.0})
    assert records_of(folder) == [{"step": 1, "train/loss": 2.0}]
    assert read_events(folder.tensorboard) == {"train/loss": [(1, 2.0)]}
    metrics.close()


def test_texts_go_to_both_too(folder):
    metrics = MetricsLog(folder, 0)
    metrics.write(7, {"validation/samples": "| ä | 한 |"})
    metrics.close()
    assert read_events(folder.tensorboard) == {"validation/samples": [(7, "| ä | 한 |")]}
    assert records_of(folder) == [{"step": 7, "validation/samples": "| ä | 한 |"}]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_null_in_the_file(folder, number):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/gradient_norm": number, "train/loss": 2.0})
    metrics.close()
    assert records_of(folder) == [{"step": 1, "train/gradient_norm": None, "train/loss": 2.0}]


# resumption


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c", "\n"])
def test_a_text_with_any_line_separator_in_it_survives_a_resumption(folder, separator):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"validation/samples": f"one{separator}two"})
    metrics.close()
    write(folder, 1, 2)
    assert read_events(folder.tensorboard)["validation/samples"] == [(1, f"one{separator}two")]


def test_records_after_the_checkpoint_are_discarded_and_come_again(folder):
    write(folder, 0, 5)
    write(folder, 3, 6)
    assert steps_of(folder) == event_steps_of(folder) == [1, 2, 3, 4, 5, 6]


def test_a_step_keeps_the_time_at_which_it_ran_through_a_resumption(folder, monkeypatch):
    for first_step, now in ((0, 1_000_000.0), (2, 2_000_000.5)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        write(folder, first_step, first_step + 2)
    assert read_wall_times(folder.tensorboard)["train/loss"] == [1_000_000.0] * 2 + [2_000_000.5] * 2


def test_a_run_that_starts_from_the_beginning_starts_a_new_file(folder):
    write(folder, 0, 5)
    write(folder, 0, 2)
    assert steps_of(folder) == event_steps_of(folder) == [1, 2]


# damage


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"step": 4, "train/lo',
        b'{"train/loss": 2.0}',
        b"[]",
        b"\xff\xfe{}",
        b'{"step": 4, "time": "noon"}',
        b'{"step": 4, "train/loss": NaN}',
        b'{"step": 1%s}' % (400 * b"0"),
        b'{"step": 4, "a": 1%s}' % (400 * b"0"),
    ],
)
@pytest.mark.parametrize("line", [1, 4])
def test_a_damaged_line_is_named_and_kept_beside_the_file(folder, caplog, damaged, line):
    write(folder, 0, 3)
    lines = folder.metrics.read_bytes().splitlines()
    folder.metrics.write_bytes(b"\n".join([*lines[: line - 1], damaged, *lines[line - 1 :]]))
    write(folder, 3, 5)
    assert steps_of(folder) == event_steps_of(folder) == [1, 2, 3, 4, 5]
    assert damaged_lines_of(folder) == damaged + b"\n"
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    for part in (str(folder.metrics), "1 damaged ", f"line {line})", "metrics.jsonl.damaged"):
        assert part in warning


def test_a_last_line_that_lacks_only_its_line_feed_is_a_record(folder):
    write(folder, 0, 3)
    folder.metrics.write_bytes(folder.metrics.read_bytes().rstrip(b"\n"))
    write(folder, 3, 4)
    assert steps_of(folder) == [1, 2, 3, 4]


# a full disk


class FullDisk:
    """Stands for a file on a disk with room for `room` more bytes."""

    def __init__(self, file, room=0):
        self.file, self.room = file, room

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self.file.write(bytes(data[: self.room]))
        self.room -= written
        return written

    def close(self):
        self.file.close()


@pytest.mark.parametrize("room", [0, 1, 40, 150])
def test_records_that_a_full_disk_refuses_are_written_once_there_is_room(folder, caplog, room):
    metrics = MetricsLog(folder, 0)
    disks = [FullDisk(metrics.file.file, room), FullDisk(metrics.events.files["train"].file.file, room)]
    metrics.file.file, metrics.events.files["train"].file.file = disks
    with caplog.at_level(logging.INFO, logger="keras_transformer"):
        for step in range(1, 5):
            metrics.write(step, {"train/loss": 1.0 / step})
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 2  # once per file, not once per step
        assert all("No space left" in error for error in errors) and str(folder.metrics) in errors[0]
        for disk in disks:
            disk.room = 10**9
        metrics.write(5, {"train/loss": 0.2})
        metrics.close()
    assert steps_of(folder) == event_steps_of(folder) == [1, 2, 3, 4, 5]
    assert "metrics.jsonl can be written again" in caplog.text


def test_records_that_are_lost_at_the_end_are_logged_and_their_steps_can_be_written_again(folder, caplog):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/loss": 1.0})
    metrics.file.file = FullDisk(metrics.file.file, room=20)
    metrics.write(2, {"train/loss": 0.5})
    metrics.close()
    assert f"{folder.metrics} is incomplete" in caplog.text
    write(folder, 1, 2)
    assert steps_of(folder) == [1, 2]
    assert damaged_lines_of(folder).startswith(b'{"step": 2, "time": ')
