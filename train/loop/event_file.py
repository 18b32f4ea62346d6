"""TensorBoard's event files, with a wall time of our own for every step."""

import math
import os
import pathlib
import socket
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from train.loop.patient_file import PatientFile


class EventFile:
    """A new event file in `folder`.

    `tf.summary` would stamp each value with the present, and fail on a full disk.
    """

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        path = folder / f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        self.file = PatientFile(path)
        self.records = RecordWriter(self.file)
        self.records.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())

    def write(self, step: int, wall_time: float, values: dict[str, float | str | None]) -> None:
        """values: by name ("train/loss"); a str is Markdown, None is NaN. wall_time: seconds since 1970."""
        summary = Summary()
        for name, value in values.items():
            if isinstance(value, str):
                one = text_pb(name, value)
            else:
                one = scalar_pb(name, math.nan if value is None else value)
            summary.value.extend(one.value)
        self.records.write(Event(wall_time=wall_time, step=step, summary=summary).SerializeToString())

    def close(self) -> None:
        self.file.close()
