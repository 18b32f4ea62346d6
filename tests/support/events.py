"""TensorBoard's event files read back."""

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def read_events(folder):
    """Every tag of a folder's event files -> its (step, value) in the order of writing: floats, or texts."""
    return {
        tag: [(event.step, _value(event.tensor_proto)) for event in events] for tag, events in _events(folder).items()
    }


def read_wall_times(folder):
    """Every tag of a folder's event files -> the wall times of its values in the order of writing."""
    return {tag: [event.wall_time for event in events] for tag, events in _events(folder).items()}


def _events(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"tensors": 0})  # 0: all of them
    accumulator.Reload()
    return {tag: accumulator.Tensors(tag) for tag in accumulator.Tags()["tensors"]}


def _value(proto):
    if proto.string_val:
        return proto.string_val[0].decode("utf-8")
    return float(np.frombuffer(proto.tensor_content, "float32")[0] if proto.tensor_content else proto.float_val[0])
