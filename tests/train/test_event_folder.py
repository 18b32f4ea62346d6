"""tensorboard/ of a run: one writer per part of a name; killed at any byte, no step is twice and none is missing."""

import logging
import os
import signal
import time

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_transformer.inspection import event_file
from keras_transformer.inspection.event_file import event_files, read_events
from tests.support import events
from train.loop.event_folder import EventFolder, writer_and_tag


def histogram(tag="weights", value=1.0):
    return histogram_pb(tag, [value, 2.0, 3.0])


def write(folder, first_step, last_step):
    """A process that goes on from `first_step`, and at each step adds a histogram to two writers."""
    opened = EventFolder(folder, first_step)
    for step in range(first_step + 1, last_step + 1):
        for writer in ("", "validation"):
            opened.add(writer, step, 1000.0 * first_step + step, histogram())
    opened.close()


def steps_of(folder):
    """The steps at which each writer has a histogram; both writers have the same."""
    found = {name: [step for step, _ in added] for name, added in events.read_added(folder).items()}
    assert set(found) == {"weights", "validation/weights"} and found["weights"] == found["validation/weights"]
    return found["weights"]


# writers


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train/loss", ("train", "loss")),
        ("validation/attention/encoder_1_head_2/entropy", ("validation", "attention/encoder_1_head_2/entropy")),
        ("seconds", ("", "seconds")),
        ("../loss", ("", "../loss")),
        ("/loss", ("", "/loss")),
    ],
)
def test_a_name_begins_with_its_writer(name, expected):
    assert writer_and_tag(name) == expected


def test_the_same_tag_of_two_writers_is_one_chart(tmp_path):
    folder = EventFolder(tmp_path / "new", 0)
    folder.write(1, 5.0, {"train/loss": 2.0, "validation/loss": 3.0, "validation/samples": "| ä |", "seconds": 4.0})
    folder.close()
    assert [path.name for path in sorted((tmp_path / "new").iterdir()) if path.is_dir()] == ["train", "validation"]
    assert events.read_events(tmp_path / "new") == {
        "seconds": [(1, 4.0)],
        "train/loss": [(1, 2.0)],
        "validation/loss": [(1, 3.0)],
        "validation/samples": [(1, "| ä |")],
    }


# resumption


def test_what_was_added_up_to_the_first_step_stays_at_its_own_time_and_the_later_goes(tmp_path):
    write(tmp_path, 0, 4)
    write(tmp_path, 2, 5)
    expected = [(1, 1.0), (2, 2.0), (3, 2003.0), (4, 2004.0), (5, 2005.0)]
    assert events.read_added(tmp_path) == {"weights": expected, "validation/weights": expected}


def test_a_run_that_begins_again_keeps_nothing(tmp_path):
    opened = EventFolder(tmp_path, 0)
    opened.add("", 0, 1.0, histogram())
    opened.close()
    EventFolder(tmp_path, 0).close()
    assert events.read_added(tmp_path) == {}


def test_scalars_and_texts_are_left_to_the_caller(tmp_path):
    opened = EventFolder(tmp_path, 0)
    opened.write(1, 1.0, {"train/loss": 1.0, "train/samples": "one"})
    opened.add("train", 1, 1.0, histogram())
    opened.close()
    EventFolder(tmp_path, 1).close()
    assert events.read_events(tmp_path) == {} and events.read_added(tmp_path) == {"train/weights": [(1, 1.0)]}


def test_files_of_other_programs_are_left_alone(tmp_path):
    others = [tmp_path / "events.out.tfevents.1.host.profile-empty", tmp_path / "events.out.tfevents.1.host.2.3.v2"]
    for path in others:
        path.write_bytes(b"theirs")
    for first_step in (0, 2):
        write(tmp_path, first_step, 3)
    assert [path.read_bytes() for path in others] == [b"theirs"] * 2 and len(event_files(tmp_path)) == 1


# damage


def test_a_torn_end_is_logged_and_the_steps_before_it_stay(tmp_path, caplog):
    write(tmp_path, 0, 3)
    (path,) = event_files(tmp_path)
    *_, last = read_events(path)
    path.write_bytes(path.read_bytes()[:-5])
    size, torn = path.stat().st_size, path.read_bytes()[-(16 + last.ByteSize() - 5) :]
    write(tmp_path, 2, 3)
    assert steps_of(tmp_path) == [1, 2, 3]
    assert (tmp_path / "damaged_events").read_bytes() == torn
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert str(path) in warning and f"{len(torn)} of its {size} bytes" in warning and "damaged_events" in warning
    (path,) = event_files(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    write(tmp_path, 2, 3)
    both = (tmp_path / "damaged_events").read_bytes()
    assert both.startswith(torn) and len(both) == 2 * len(torn)


@pytest.mark.parametrize("place", ["length", "data"])
def test_a_damaged_byte_costs_its_event_and_is_logged(tmp_path, caplog, place):
    write(tmp_path, 0, 3)
    (path,) = event_files(tmp_path)
    content = bytearray(path.read_bytes())
    sizes = [16 + event.ByteSize() for event in read_events(path)]
    second = sum(sizes[:3])  # where the histogram of step 2 begins, after two marks and that of step 1
    content[second + {"length": 0, "data": 20}[place]] ^= 1
    path.write_bytes(content)
    steps = [event.step for event in read_events(path)]
    assert steps == {"length": [0, 0, 1], "data": [0, 0, 1, 3]}[place]
    lost = {"length": sizes[3] + sizes[4], "data": sizes[3]}[place]
    assert (tmp_path / "damaged_events").read_bytes() == content[second : second + lost]
    assert f"{path} is damaged: moved {lost} of its" in caplog.text


# kill -9


def test_a_process_that_is_killed_between_the_new_file_and_the_old_one_leaves_no_step_twice(tmp_path):
    write(tmp_path, 0, 3)
    old = [(path, path.read_bytes()) for writer in ("", "validation") for path in event_files(tmp_path / writer)]
    write(tmp_path, 2, 4)
    for path, content in old:
        path.write_bytes(content)  # as if it had not been removed
    write(tmp_path, 3, 5)
    assert steps_of(tmp_path) == [1, 2, 3, 4, 5]


def test_a_process_that_is_killed_while_it_copies_loses_nothing(tmp_path, monkeypatch):
    write(tmp_path, 0, 3)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(event_file, "write_events", killed)
        with pytest.raises(KeyboardInterrupt):
            EventFolder(tmp_path, 2)
    (tmp_path / "staged").write_bytes(b"half")
    write(tmp_path, 2, 4)
    assert steps_of(tmp_path) == [1, 2, 3, 4]


@pytest.mark.parametrize("moment", [0.01, 0.05])
def test_after_kill_9_everything_that_was_added_is_there(tmp_path, moment):
    """A child process adds a histogram per step and tells through a pipe which step is done; its end is a SIGKILL."""
    done, tell = os.pipe()
    if (child := os.fork()) == 0:
        try:
            opened = EventFolder(tmp_path, 0)
            for step in range(1, 1_000_000):
                opened.add("", step, float(step), histogram())
                os.write(tell, step.to_bytes(4, "little"))
        finally:
            os._exit(1)
    os.close(tell)
    os.read(done, 4)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = b"".join(iter(lambda: os.read(done, 1 << 16), b""))
    os.close(done)
    last = int.from_bytes(told[-4:], "little") if told else 1
    opened = EventFolder(tmp_path, last)
    opened.add("", last + 1, float(last + 1), histogram())
    opened.close()
    assert events.read_added(tmp_path) == {"weights": [(step, float(step)) for step in range(1, last + 2)]}


@pytest.mark.parametrize(
    "number", [0.0, -2.5, 7, 1e-30, 3e38, 1e300, float("inf"), float("nan"), True, np.float32(0.1)]
)
def test_a_number_is_written_as_tensorboard_writes_it(number):
    found = Summary()
    event_file.add_scalar(found, "loss", number)
    with np.errstate(over="ignore"):
        expected = scalar_pb("loss", number)
    assert found.SerializeToString() == expected.SerializeToString()
