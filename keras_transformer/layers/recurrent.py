"""Recurrent layers over packed rows: the state begins anew at every segment."""

import operator

import keras
from keras import ops

from keras_transformer.layers.cells import CELLS
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.loop import scan
from keras_transformer.masks import first_in_segment, hide_padding, last_in_segment, segment_mask

DIRECTIONS = ("forward", "backward", "both")


@keras.saving.register_keras_serializable("keras_transformer")
class Recurrent(CompositeLayer):
    """A GRU or an LSTM that reads every segment of a row from an empty state.

        forward: h_t = cell(h_{t-1}, x_t)        backward: h_t = cell(h_{t+1}, x_t)        both: [forward ; backward]

    A backward layer begins at the last token of each segment. Padding leaves the state as it is.

    Args:
        units: width of the state of each direction.
        cell: "gru" or "lstm".
        direction: "forward", "backward" or "both"; each direction has weights of its own.

    Shapes: inputs (B, L, any width), segments int (B, L). Returns a list of the parts of the state after every
    position: h (B, L, units), and of an LSTM m (B, L, units) too; twice as wide if `direction` is "both".
    Where `inputs_mask`, bool (B, L), or a mask that Keras carries with `inputs` is False, there is padding.
    Raises ValueError for another cell or direction.
    """

    def __init__(self, units: int, cell: str = "gru", direction: str = "forward", **kwargs):
        super().__init__(**kwargs)
        for name, value, allowed in (("cell", cell, tuple(CELLS)), ("direction", direction, DIRECTIONS)):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}. Received: {name}={value!r}")
        self.units, self.cell, self.direction = operator.index(units), cell, direction
        directions = ("forward", "backward") if direction == "both" else (direction,)
        self.cells = [CELLS[cell](units, name=name, **self.for_parts()) for name in directions]

    def build(self, inputs_shape: tuple, segments_shape: tuple | None = None):
        for cell in self.cells:
            cell.build(inputs_shape)

    def call(self, inputs, segments, inputs_mask=None):
        segments = hide_padding(segments, inputs_mask)
        states = [self.run(cell, inputs, segments) for cell in self.cells]
        return [ops.concatenate(of_directions, axis=-1) for of_directions in zip(*states, strict=True)]

    def run(self, cell, inputs, segments) -> list:
        """Return the parts of the state after every position of one direction."""
        is_backward = cell.name == "backward"
        begins = last_in_segment(segments) if is_backward else first_in_segment(segments)
        columns = [ops.expand_dims(flags, 2) for flags in (begins, segments != 0)]  # (B, L, 1)

        def one_position(state, values):
            projected, begins, is_token = values
            state = [ops.where(begins, ops.zeros_like(part), part) for part in state]
            after = cell.step(state, projected)
            return [ops.where(is_token, new, old) for new, old in zip(after, state, strict=True)]

        projected = cell.project(inputs)  # of all positions: one matrix product
        nothing = ops.zeros((ops.shape(inputs)[0], self.units), projected.dtype)
        return scan(one_position, [nothing] * cell.parts, [projected, *columns], range(cell.parts), is_backward)

    def compute_mask(self, inputs, previous_mask=None):
        """Return the mask that Keras carries with the inputs, for every part of the state."""
        return None if previous_mask is None else [previous_mask] * self.cells[0].parts

    def compute_output_shape(self, inputs_shape: tuple, segments_shape: tuple | None = None) -> list[tuple]:
        return [(*inputs_shape[:-1], self.units * len(self.cells))] * self.cells[0].parts

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units, "cell": self.cell, "direction": self.direction}


@keras.saving.register_keras_serializable("keras_transformer")
class FinalStates(keras.layers.Layer):
    """What a Recurrent layer knows at the end of a source segment, at each target position of the same segment.

    A forward layer ends at the last token, a backward layer at the first one.

    Args:
        direction: of the Recurrent layer.

    Shapes: part (B, S, width) of its state, target_segments int (B, T), source_segments int (B, S) -> (B, T, width).
    A target segment without a source has 0.
    """

    def __init__(self, direction: str, **kwargs):
        super().__init__(**kwargs)
        self.direction = direction

    def call(self, part, target_segments, source_segments):
        is_same = segment_mask(target_segments, source_segments)  # (B, T, S)
        ends = {"forward": last_in_segment(source_segments), "backward": first_in_segment(source_segments)}
        directions = ("forward", "backward") if self.direction == "both" else (self.direction,)
        states = []
        for direction, values in zip(directions, ops.split(part, len(directions), axis=-1), strict=True):
            is_end = ops.logical_and(is_same, ops.expand_dims(ends[direction], 1))
            states.append(ops.matmul(ops.cast(is_end, values.dtype), values))  # a sum of one
        return ops.concatenate(states, axis=-1)

    def compute_output_shape(
        self, part_shape: tuple, target_segments_shape: tuple, source_segments_shape: tuple | None = None
    ) -> tuple:
        return (*target_segments_shape, part_shape[-1])

    def get_config(self) -> dict:
        return {**super().get_config(), "direction": self.direction}
