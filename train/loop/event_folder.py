"""The folder `tensorboard/` of a run: one event file per writer, so that curves of the same name lie on one chart."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.custom_scalar.metadata import PLUGIN_NAME as LAYOUTS
from tensorboard.plugins.hparams.metadata import PLUGIN_NAME as SETTINGS
from tensorboard.plugins.scalar.metadata import PLUGIN_NAME as SCALARS
from tensorboard.plugins.text.metadata import PLUGIN_NAME as TEXTS

from keras_transformer.inspection.event_file import EventFile, event_files, read_events

REWRITTEN = {SCALARS, TEXTS, LAYOUTS, SETTINGS}  # kinds of summaries that every process writes again


class EventFolder:
    """One EventFile per writer: `train/`, `validation/` and so on, and "" for the folder itself.

    TensorBoard shows each writer as a run, and the same tag of several runs on one chart.

    Steps after `first_step` will run again, so what earlier processes added at them is discarded. What they added up to
    `first_step` stays, each at its own wall time; it is copied to new files, because TensorBoard's files cannot be
    truncated. The caller writes scalars and texts again.

    writers: those whose files are made now, so that a disk that is full later does not matter.
    """

    def __init__(self, folder: pathlib.Path, first_step: int, writers: Sequence[str] = ()):
        self.folder, self.files = folder, {}
        self.kept = set()  # (writer, tag, step) of each value that earlier processes added
        subfolders = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
        written = [writer for writer in ("", *sorted(subfolders)) if event_files(folder / writer)]
        for writer in dict.fromkeys([*written, *writers]):
            self.files[writer] = EventFile(folder / writer, self._events_to_keep(writer, first_step))

    def write(self, step: int, wall_time: float, values: Mapping[str, float | str | None]) -> None:
        """values: by name; "train/loss" is the tag `loss` of the writer `train`. A str is Markdown, None is NaN."""
        values_of = {}
        for name, value in values.items():
            writer, tag = writer_and_tag(name)
            values_of.setdefault(writer, {})[tag] = value
        for writer, own in values_of.items():
            self._file(writer).write(step, wall_time, own)

    def add(self, writer: str, step: int, wall_time: float, summary: Summary) -> None:
        """Write a summary of any kind, but for the values that an earlier process added at the same step."""
        new = [value for value in summary.value if (writer, value.tag, step) not in self.kept]
        if new:
            self._file(writer).add(step, wall_time, Summary(value=new))

    def close(self) -> None:
        for file in self.files.values():
            file.close()

    def _file(self, writer: str) -> EventFile:
        if writer not in self.files:
            self.files[writer] = EventFile(self.folder / writer)
        return self.files[writer]

    def _events_to_keep(self, writer: str, first_step: int) -> Iterator[Event]:
        """Yield what `add` has written up to `first_step`; nothing if the run begins again."""
        for path in event_files(self.folder / writer)[-1:] if first_step else ():
            for event in read_events(path):
                values = [value for value in event.summary.value if kind_of(value) not in REWRITTEN]
                if values and event.step <= first_step:
                    self.kept.update((writer, value.tag, event.step) for value in values)
                    yield Event(wall_time=event.wall_time, step=event.step, summary=Summary(value=values))


def writer_and_tag(name: str) -> tuple[str, str]:
    """Split "train/loss" into the writer "train" and the tag "loss". A name without a writer belongs to the folder."""
    writer, slash, tag = name.partition("/")
    return (writer, tag) if slash and writer.isidentifier() else ("", name)


def kind_of(value: Summary.Value) -> str:
    """The name of the TensorBoard plugin that shows a value; empty if it names none."""
    return value.metadata.plugin_data.plugin_name
