"""TensorBoard's event files read back."""

import pathlib

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NUMBERS_AND_TEXTS = {"scalars", "text"}


def read_events(folder):
    """The name of every scalar and text in a folder ("train/loss") -> its (step, value) in the order of writing."""
    return {
        name: [(event.step, _value(event.tensor_proto)) for event in events]
        for name, kind, events in _series(folder)
        if kind in NUMBERS_AND_TEXTS
    }


def read_added(folder):
    """The name of everything else in a folder, such as pictures -> its (step, wall time) in the order of writing."""
    return {
        name: [(event.step, event.wall_time) for event in events]
        for name, kind, events in _series(folder)
        if kind not in NUMBERS_AND_TEXTS
    }


def read_pictures(folder):
    """The name of every picture in a folder -> its (step, width, height, PNG file) in the order of writing."""
    return {
        name: [(event.step, *_picture(*event.tensor_proto.string_val)) for event in events]
        for name, kind, events in _series(folder)
        if kind == "images"
    }


def read_wall_times(folder):
    """The name of every series in a folder -> the wall times of its values in the order of writing."""
    return {name: [event.wall_time for event in events] for name, _, events in _series(folder)}


def steps_in(folder):
    """The name of every series in a folder -> the steps of its values in the order of writing."""
    return {name: [event.step for event in events] for name, _, events in _series(folder)}


def _series(folder):
    """The name, the kind and the events of each series of all writers."""
    for writer, accumulator in _accumulators(folder):
        for tag in accumulator.Tags()["tensors"]:
            kind = accumulator.SummaryMetadata(tag).plugin_data.plugin_name
            yield f"{writer}{tag}", kind, accumulator.Tensors(tag)


def _accumulators(folder):
    """TensorBoard's own readers: of the folder as "", and of each folder in it as "train/"."""
    folder = pathlib.Path(folder)
    for path in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})  # 0: all of them
        accumulator.Reload()
        yield "" if path == folder else f"{path.name}/", accumulator


def _picture(width, height, png):
    return int(width), int(height), png


def _value(proto):
    if proto.string_val:
        return proto.string_val[0].decode("utf-8")
    return float(np.frombuffer(proto.tensor_content, "float32")[0] if proto.tensor_content else proto.float_val[0])
