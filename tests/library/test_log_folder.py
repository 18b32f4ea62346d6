"""A folder of an event file: what is written is read, in one file, and what an earlier process wrote stays."""

import time

from tensorboard.compat.proto.summary_pb2 import Summary

from keras_transformer.inspection.callbacks import LogFolder
from keras_transformer.inspection.event_file import event_files, read_events


def values_in(folder):
    """(step, tag, number or text) of everything in the newest file."""
    values = [(event.step, value) for event in read_events(event_files(folder)[-1]) for value in event.summary.value]
    return [
        (step, value.tag, value.tensor.string_val[0].decode() if value.tensor.string_val else value.tensor.float_val[0])
        for step, value in values
    ]


def test_a_folder_is_made_by_the_first_write_and_goes_on_in_another_process(tmp_path):
    folder = tmp_path / "validation"
    first = LogFolder(folder)
    assert not folder.exists()
    first.write(1, {"validation/rate": 0.5, "validation/sample": "a dog"})
    first.write(2, {"validation/rate": 0.25})
    written = [(1, "rate", 0.5), (1, "sample", "a dog"), (2, "rate", 0.25)]
    assert len(event_files(folder)) == 1 and values_in(folder) == written
    LogFolder(folder).write(3, {"validation/rate": 0.125})
    assert values_in(folder) == [*written, (3, "rate", 0.125)]


def test_everything_has_the_time_at_which_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1e9)
    folder = LogFolder(tmp_path)
    folder.write(1, {"validation/rate": 0.5})
    folder.add("", 2, Summary(value=[Summary.Value(tag="other", simple_value=1.0)]))
    events = [event for event in read_events(event_files(tmp_path)[-1]) if event.summary.value]
    assert [(event.step, event.wall_time) for event in events] == [(1, 1e9), (2, 1e9)]


def test_of_two_files_that_a_killed_process_left_the_newer_one_goes_on(tmp_path):
    """A new file is whole before the old one, whose events it holds too, is removed."""
    folder = LogFolder(tmp_path)
    folder.write(1, {"validation/rate": 0.5})
    folder.file.close()
    [newer] = event_files(tmp_path)
    older = newer.with_name(newer.name.replace(newer.name.split(".")[3], "0000000007"))
    older.write_bytes(newer.read_bytes())
    assert event_files(tmp_path) == [older, newer]
    LogFolder(tmp_path).write(2, {"validation/rate": 0.25})
    assert len(event_files(tmp_path)) == 1 and values_in(tmp_path) == [(1, "rate", 0.5), (2, "rate", 0.25)]
