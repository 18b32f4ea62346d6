"""A file that outlives a full disk: nothing is lost while the process lives, and the log tells what happened."""

import logging

import pytest

from keras_transformer.inspection.retrying_file import RetryingFile


class Disk:
    """Stands in for the file of a RetryingFile: takes so many bytes of each call, or refuses it."""

    def __init__(self):
        self.content, self.takes, self.is_closed = b"", 100, False

    def write(self, data):
        if not self.takes:
            raise OSError(28, "No space left on device")
        written = bytes(data[: self.takes])
        self.content += written
        return len(written)

    def close(self):
        self.is_closed = True


@pytest.fixture
def file(tmp_path, caplog):
    caplog.set_level(logging.INFO, "keras_transformer")
    (tmp_path / "log").write_bytes(b"before ")
    file = RetryingFile(tmp_path / "log")
    file.write(b"now")
    assert (tmp_path / "log").read_bytes() == b"before now"  # behind what is there, and not in a buffer
    file.file.close()
    file.file = Disk()
    return file


def test_records_that_are_refused_are_written_in_their_order_once_there_is_room(file, caplog):
    disk = file.file
    disk.takes = 2
    file.write(b"abcde")
    assert disk.content == b"abcde" and not caplog.messages
    disk.takes = 0
    for record in (b"f", b"g", b"h"):
        file.write(record)
    refusal = f"{file.path} cannot be written: No space left on device. Training continues; make room."
    assert caplog.messages == [refusal]
    disk.takes = 100
    file.write(b"i")
    again = f"{file.path} can be written again, and has the 3 records that were refused"
    assert disk.content == b"abcdefghi" and caplog.messages == [refusal, again]
    file.write(b"j")
    assert caplog.messages == [refusal, again]
    disk.takes = 0
    file.write(b"k")
    assert caplog.messages == [refusal, again, refusal]


@pytest.mark.parametrize("has_room", [True, False])
def test_what_was_refused_is_tried_once_more_at_the_end(file, caplog, has_room):
    disk = file.file
    disk.takes = 0
    file.write(b"a")
    disk.takes = 100 * has_room
    file.close()
    assert disk.is_closed and disk.content == b"a" * has_room
    lost = f"{file.path} is incomplete: its last records could not be written and are lost"
    assert (lost in caplog.messages) == (not has_room)


def test_a_file_without_refusals_is_closed_in_silence(file, caplog):
    file.close()
    assert file.file.is_closed and not caplog.messages
