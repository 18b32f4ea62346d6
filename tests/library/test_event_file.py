"""Event files of TensorBoard, byte by byte."""

import io
import math
import struct
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from keras_transformer.inspection.callbacks import LogFolder
from keras_transformer.inspection.event_file import (
    DAMAGED,
    EventFile,
    checksum,
    event_files,
    parse_event,
    read_events,
    read_record,
    write_events,
)


def record_of(event):
    file = io.BytesIO()
    write_events(file, [event])
    return file.getvalue()


STEP = Event(wall_time=1.5, step=7, summary=Summary(value=[Summary.Value(tag="loss", simple_value=2.0)]))


def test_the_checksum_is_that_of_the_record_files_of_tensorflow():
    crc = 0xE3069283  # CRC-32C of "123456789", RFC 3720, B.4
    assert checksum(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def test_a_record_is_read_whole_or_not_at_all():
    record = record_of(STEP)
    data, expected = read_record(io.BytesIO(record))
    assert data == STEP.SerializeToString() and expected == checksum(data)
    for length in (0, 5, 11, 12, len(record) - 5, len(record) - 4, len(record) - 1):
        assert read_record(io.BytesIO(record[:length])) is None
    assert read_record(io.BytesIO(b"\1" + record[1:])) is None  # another length than its checksum says


def test_an_event_has_its_checksum_and_is_one():
    data = STEP.SerializeToString()
    assert parse_event(data, checksum(data)) == STEP and parse_event(data, checksum(data) + 1) is None
    assert parse_event(b"\xff\xff", checksum(b"\xff\xff")) is None


def test_the_files_of_a_folder_are_in_the_order_of_their_stamps_and_those_of_others_are_none(tmp_path):
    names = [f"events.out.tfevents.{stamp}.host.1.run" for stamp in ("0000000009", "10000000000", "0000000010")]
    for name in [*names, "events.out.tfevents.3.host.1.v2", f"{names[0]}.profile", "staged"]:
        (tmp_path / name).touch()
    assert [path.name for path in event_files(tmp_path)] == [names[0], names[2], names[1]]
    assert event_files(tmp_path / "none") == []


def test_a_new_file_takes_the_place_of_the_old_ones_and_is_later_whatever_the_clock_says(tmp_path):
    (tmp_path / "events.out.tfevents.99999999998.host.1.run").write_bytes(record_of(STEP))
    file = EventFile(tmp_path, [STEP])
    [path] = event_files(tmp_path)
    assert path.name.startswith("events.out.tfevents.99999999999.") and path == file.file.path
    file.write(8, 2.5, {"nothing": None, "loss": 0.5, "text": "**a**"})
    file.close()
    version, start, kept, new = read_events(path)
    assert (version.file_version, start.session_log.status, kept) == ("brain.Event:2", 1, STEP)
    assert (new.step, new.wall_time) == (8, 2.5)
    tags = {value.tag: value for value in new.summary.value}
    assert math.isnan(tags["nothing"].tensor.float_val[0]) and tags["loss"].tensor.float_val == [0.5]
    assert list(tags) == ["nothing", "loss", "text"]


def test_damaged_bytes_are_kept_beside_the_file_and_counted(tmp_path, caplog):
    good, torn = record_of(STEP), record_of(STEP)[:-1]
    bad = good[:-1] + bytes([good[-1] ^ 1])
    path = tmp_path / "events"
    path.write_bytes(good + bad + good + torn)
    assert list(read_events(path)) == [STEP, STEP]
    assert (tmp_path / DAMAGED).read_bytes() == bad + torn
    lost, size = len(bad + torn), len(good + bad + good + torn)
    assert caplog.messages == [
        f"{path} is damaged: moved {lost} of its {size} bytes, which are not complete events, to {DAMAGED}"
    ]
    assert len(list(read_events(path))) == 2 and (tmp_path / DAMAGED).read_bytes() == 2 * (bad + torn)


def test_a_length_that_reaches_beyond_the_file_ends_it(tmp_path):
    head = struct.pack("<Q", 2**40)
    (tmp_path / "events").write_bytes(record_of(STEP) + head + struct.pack("<I", checksum(head)))
    assert list(read_events(tmp_path / "events")) == [STEP]


def test_a_folder_of_a_script_keeps_what_an_earlier_process_wrote_and_nothing_of_its_start(tmp_path):
    for step in (1, 2):
        folder = LogFolder(tmp_path / "log")
        folder.write(step, {"validation/samples": "a", "validation/attention/x": 0.5})
        folder.add("validation", step, Summary(value=[Summary.Value(tag="picture")]))
        folder.file.close()
    [path] = event_files(tmp_path / "log")
    events = list(read_events(path))
    assert [event.step for event in events if event.summary.value] == [1, 1, 2, 2]
    assert len(events) == 2 + 4 and all(event.wall_time > 1e9 for event in events)
    assert [value.tag for value in events[2].summary.value] == ["samples", "attention/x"]


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
