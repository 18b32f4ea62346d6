"""TensorBoard's event files: written with a wall time of our own for every step, and read back."""

import itertools
import logging
import math
import os
import pathlib
import re
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping

import google_crc32c
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb

from keras_transformer.ground.files import write_atomically
from keras_transformer.inspection.retrying_file import RetryingFile

log = logging.getLogger("keras_transformer")

NAME = re.compile(r"events\.out\.tfevents\.(\d+)\..*\.run")  # of an EventFile; files of other programs end otherwise
DAMAGED = "damaged_events"  # bytes of the folder's files that are not complete events; TensorBoard does not read it
SCALAR = scalar_pb("", 0.0).value[0]
LONGEST = 2**31  # bytes of a message of protobuf: no event has as many


class EventFile:
    """A new event file in `folder`, which takes the place of every EventFile there and begins with the events `kept`.

    The old files stay until the new one is complete, so a process may be killed at any moment: the newest file in the
    folder has everything. `kept` may be read from them meanwhile.

    `tf.summary` would stamp each value with the present, and fail on a full disk.
    """

    def __init__(self, folder: pathlib.Path, kept: Iterable[Event] = ()):
        folder.mkdir(parents=True, exist_ok=True)
        old, now = event_files(folder), time.time()
        stamp = max([int(now), *(stamp_of(path) + 1 for path in old[-1:])])  # a clock may be set back
        path = folder / f"events.out.tfevents.{stamp:010d}.{socket.gethostname()}.{os.getpid()}.run"
        start = (
            Event(wall_time=now, file_version="brain.Event:2"),
            Event(wall_time=now, session_log=SessionLog(status=SessionLog.START)),  # a reader forgets the old files
        )
        staged = folder / "staged"  # TensorBoard does not read it
        write_atomically(staged, lambda file: write_events(file, itertools.chain(start, kept)))
        staged.rename(path)
        for other in old:
            other.unlink()
        self.file = RetryingFile(path)

    def write(self, step: int, wall_time: float, values: Mapping[str, float | str | None]) -> None:
        """values: by tag ("loss"); a str is Markdown, None is NaN. wall_time: seconds since 1970."""
        summary = Summary()
        for tag, value in values.items():
            if isinstance(value, str):
                summary.value.extend(text_pb(tag, value).value)
            else:
                add_scalar(summary, tag, math.nan if value is None else value)
        self.add(step, wall_time, summary)

    def add(self, step: int, wall_time: float, summary: Summary) -> None:
        """Write a summary of any kind: pictures, histograms, settings."""
        write_events(self.file, [Event(wall_time=wall_time, step=step, summary=summary)])

    def close(self) -> None:
        self.file.close()


def add_scalar(summary: Summary, tag: str, number: float) -> None:
    """Add what `scalar_pb` makes, in a tenth of its time: a run of 100,000 steps writes a million of them."""
    value = summary.value.add()
    value.CopyFrom(SCALAR)
    value.tag = tag
    value.tensor.float_val[0] = number


def event_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The paths of the EventFiles in a folder, the oldest first. A folder that does not exist has none."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted((path for path in paths if NAME.fullmatch(path.name)), key=stamp_of)


def stamp_of(path: pathlib.Path) -> int:
    return int(path.name.split(".")[3])


def write_events(file, events: Iterable[Event]) -> None:
    """Write events to anything with a method `write`, each with one call, so that it is rarely torn.

    A record is the length of its data, the checksum of the length, the data, and their checksum. TensorBoard's own
    RecordWriter computes checksums in Python, which takes 25 ms for a picture of 100 kB.
    """
    for event in events:
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        file.write(b"".join([length, struct.pack("<I", checksum(length)), data, struct.pack("<I", checksum(data))]))


def checksum(data: bytes) -> int:
    """The masked CRC-32C of TensorFlow's record files."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_events(path: pathlib.Path) -> Iterator[Event]:
    """Yield the events of an event file one by one.

    Damaged events are left out, and so is the torn end that a process leaves if it is killed while it writes. Their
    bytes are kept beside the file, and logged.
    """
    lost = bytearray()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while (begin := file.tell()) < size:
            record = read_record(file)
            event = parse_event(*record) if record else None
            if event is not None:
                yield event
                continue
            end = file.tell() if record else size  # without the length of this one, the next cannot be found
            file.seek(begin)
            lost += file.read(end - begin)
    if lost:
        aside = path.with_name(DAMAGED)
        with open(aside, "ab") as file:
            file.write(lost)
        log.warning(
            "%s is damaged: moved %d of its %d bytes, which are not complete events, to %s",
            path,
            len(lost),
            size,
            aside.name,
        )


def read_record(file) -> tuple[bytes, int] | None:
    """Read one record, as the data and their checksum; None if it is torn or its length is damaged."""
    head = file.read(12)
    if len(head) < 12:
        return None
    length, expected = struct.unpack("<QI", head)
    if checksum(head[:8]) != expected or length >= LONGEST:
        return None
    body = file.read(length + 4)
    if len(body) < length + 4:
        return None
    return body[:-4], struct.unpack("<I", body[-4:])[0]


def parse_event(data: bytes, expected: int) -> Event | None:
    """The event of a record with its checksum; None if it is damaged."""
    try:
        return Event.FromString(data) if checksum(data) == expected else None
    except DecodeError:
        return None
