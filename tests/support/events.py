"""TensorBoard's event files read back."""

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def read_events(folder):
    """Every tag of a folder's event files -> its (step, value) in the order of writing: floats, or texts."""
    accumulator = EventAccumulator(str(folder), size_guidance={"tensors": 0})  # 0: all of them
    accumulator.Reload()
    return {
        tag: [(event.step, _value(event.tensor_proto)) for event in accumulator.Tensors(tag)]
        for tag in accumulator.Tags()["tensors"]
    }


def _value(proto):
    if proto.string_val:
        return proto.string_val[0].decode("utf-8")
    return float(np.frombuffer(proto.tensor_content, "float32")[0] if proto.tensor_content else proto.float_val[0])
