"""The folder that an inspection in a script writes to."""

import pathlib
import time
from collections.abc import Mapping

from tensorboard.compat.proto.summary_pb2 import Summary

from keras_transformer.inspection.event_file import EventFile, event_files, read_events


class LogFolder:
    """A folder with an event file for TensorBoard, which the first write creates.

    What an earlier process wrote there stays.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.file: EventFile | None = None

    def write(self, step: int, values: Mapping[str, float | str]) -> None:
        """Write numbers and texts (Markdown) by name: "validation/samples" becomes the tag "samples"."""
        values = {name.partition("/")[2]: value for name, value in values.items()}
        self._opened().write(step, time.time(), values)

    def add(self, writer: str, step: int, summary: Summary) -> None:
        """Write a summary of any other kind. There is one writer, the folder, whatever `writer` is."""
        self._opened().add(step, time.time(), summary)

    def _opened(self) -> EventFile:
        if self.file is None:
            events = (event for path in event_files(self.folder)[-1:] for event in read_events(path))
            self.file = EventFile(self.folder, (event for event in events if event.summary.value))
        return self.file
