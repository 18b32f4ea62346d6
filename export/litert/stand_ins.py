"""Constants of one number in place of the weights of products, while a graph is converted, and the weights back again.

TensorFlow writes no graph of more than 2 GiB, and takes several times the bytes of its constants to convert one. A
constant of one number takes a few bytes. The converter rounds it to integers, which are all the same, and to scales,
which tell whose place it takes.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from tensorflow.lite.python import schema_py_generated as schema

from keras_transformer.search.step import IncrementalDecoder

from ..versions import ExportError
from .merge import AlignedBuffer

LARGEST = 127  # of a rounded number, on both sides of 0
ROUNDED_AT_ONCE = 4096  # rows
LEAST = 4096  # numbers of a matrix; that of a smaller one may as well stay
FIRST, RATIO = 2.0**16, 1.05  # scale of the first one, and of each to the one before: norms near 1 confuse no two


class Rounded(NamedTuple):
    """The rows of a matrix as integers, and by what they are to be multiplied."""

    buffer: AlignedBuffer  # of int8 (rows, columns)
    scales: np.ndarray  # float32 (rows,)


class StandIns:
    """What stands for the matrices of a model in the graphs of its search, and these, rounded.

    Only a Transformer's search has any: in others all weights stay in the graph.
    """

    def __init__(self, model: keras.Model, decoder: Any) -> None:
        is_transformer = isinstance(decoder, IncrementalDecoder)
        self.variables = list(matrices_of(model)) if is_transformer else []
        self._matrices: list[Callable[[], np.ndarray]] = [
            functools.partial(rows_of, variable) for variable in self.variables
        ]
        self._factors = factors_of(model, decoder.config.d_k) if is_transformer else []
        self._rounded: dict[tuple[int, int], Rounded] = {}
        self._tables: list[AlignedBuffer] = []
        if is_transformer:
            decoder.projections = [self._with_stand_in(projection) for projection in decoder.projections]

    def _with_stand_in(self, projection: Callable[[], Any]) -> Callable[[], Any]:
        number = len(self._matrices)
        self._matrices.append(lambda: ops.convert_to_numpy(projection().kernel).T)

        def projected() -> Any:
            joined = projection()
            return joined._replace(kernel=stand_in(number, joined.kernel.shape))

        return projected

    def table(self, integers: np.ndarray) -> Callable[[], Any]:
        """Return a function that returns, in a graph, what stands for these int8 (V, d_model), whose rows are read."""
        self._tables.append(buffer_of(integers))
        number = len(self._tables)
        return lambda: tf.constant(number, tf.int8, integers.shape)

    def in_graph(self, outputs: Callable) -> Callable:
        """Return a function of the same outputs which, called in a graph, reads the numbers in place of the weights."""

        def standing_in(*values: Any, **named: Any) -> Any:
            constants = [stand_in(number, variable.shape) for number, variable in enumerate(self.variables)]
            with keras.StatelessScope(zip(self.variables, constants, strict=True)):
                return outputs(*values, **named)

        return standing_in

    def replace(self, part: Any) -> None:
        """Give a converted model its weights. Raises ExportError if a number is left that is none of them."""
        for tensor in (tensor for subgraph in part.subgraphs for tensor in subgraph.tensors):
            data = part.buffers[tensor.buffer].data
            if data is None or not len(data):
                continue
            scales: Any = None if tensor.quantization is None else tensor.quantization.scale
            buffer = None
            if tensor.type == schema.TensorType.INT8 and scales is None:
                buffer = self._table_of(data)
            elif tensor.type == schema.TensorType.INT8 and self.variables and scales[0] >= FIRST * self._least:
                buffer, tensor.quantization.scale = self._found(scales, data.view(np.int8)[: tensor.shape[-1]])
            elif tensor.type == schema.TensorType.FLOAT32 and self.variables and len(data) >= 4 * LEAST:
                refuse_left_over(data.view(np.float32), self._least)
            if buffer is not None:
                part.buffers.append(buffer)
                tensor.buffer = len(part.buffers) - 1

    def _table_of(self, data: np.ndarray) -> AlignedBuffer:
        """Return the table that an array of one number stands for."""
        if not 0 < data[0] <= len(self._tables) or len(data) != len(self._tables[data[0] - 1].data) or np.ptp(data):
            raise left_over()
        return self._tables[data[0] - 1]

    @property
    def _least(self) -> float:
        return min(float(np.abs(factor).max()) for factor in self._factors)

    def _found(self, scales: np.ndarray, row: np.ndarray) -> Rounded:
        """Return what belongs in the place of rounded numbers with these scales, whose first row is `row`."""
        number, place = key = number_and_factor(scales, row, self._factors, len(self._matrices))
        if key not in self._rounded:
            matrix, factor = self._matrices[number](), self._factors[place]
            integers, of_rows = rounded_matrix(matrix if (factor == 1).all() else matrix * factor)
            self._rounded[key] = Rounded(buffer_of(integers), of_rows[:, 0])
        return self._rounded[key]


def number_and_factor(scales: np.ndarray, row: np.ndarray, factors: list[np.ndarray], matrices: int) -> tuple[int, int]:
    """Return for which of so many matrices a constant with these scales and this first row stands, and its factor.

    Raises ExportError if it stands for none.
    """
    for place, factor in enumerate(factors):
        largest = float(np.abs(factor).max())
        number = round(math.log(float(scales[0]) / largest / FIRST, RATIO))
        is_near = 0 <= number < matrices and np.allclose(scales, largest * scale_of(number), rtol=1e-6)
        if is_near and factor.size in (1, row.size) and np.abs(row - LARGEST * factor / largest).max() <= 1:
            return number, place
    raise left_over()


def factors_of(model: keras.Model, d_k: int) -> list[np.ndarray]:
    """Return what the converter may multiply into the columns of a matrix: float32 (1,) or (d_model,).

    It is 1 / sqrt(d_k), and the scale of the RMSNorm before a matrix. LayerNorm, which adds something, stays apart.
    """
    scales = [ops.convert_to_numpy(weight) for weight in model.weights if weight.name == "scale"]
    ones = np.ones(1, np.float32)
    return [factor * np.float32(of_scores) for factor in (ones, *scales) for of_scores in (1.0, d_k**-0.5)]


def matrices_of(model: keras.Model) -> Iterator[Any]:
    """Yield the larger variables of a model that are one side of a product and nothing else but embeddings."""
    for variable in model.weights:
        if len(variable.shape) == 2 and variable.name in ("kernel", "matrix") and np.prod(variable.shape) >= LEAST:
            yield variable


def rows_of(variable: Any) -> np.ndarray:
    """Return a matrix as LiteRT has it, a row per output: embeddings (V, d_model) have their rows already."""
    matrix = ops.convert_to_numpy(variable)
    return matrix if variable.name == "matrix" else matrix.T


def scale_of(number: int) -> float:
    """Return the scale of the constant that stands for a matrix, once it is rounded."""
    return FIRST * RATIO**number


def stand_in(number: int, shape: tuple) -> Any:
    """Return the constant that stands for a matrix."""
    return tf.constant(LARGEST * scale_of(number), tf.float32, shape)


def buffer_of(integers: np.ndarray) -> AlignedBuffer:
    return AlignedBuffer(integers.view(np.uint8).reshape(-1))


def refuse_left_over(values: np.ndarray, least: float) -> None:
    """Raise ExportError for the numbers of a constant that was not rounded."""
    if values[0] == values[-1] and values[0] >= LARGEST * FIRST * least:
        raise left_over()


def left_over() -> ExportError:
    return ExportError(
        "This model uses a weight in a way that --quantization int8 cannot write: export it without --quantization."
    )


def rounded_matrix(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix as int8 (rows, columns), and float32 (rows, 1), by which a row is to be multiplied.

    It computes as the converter does, in float64 and with halves away from 0.
    """
    integers, scales = np.empty(matrix.shape, np.int8), np.empty((len(matrix), 1), np.float32)
    for start in range(0, len(matrix), ROUNDED_AT_ONCE):  # of 128,000 pieces float64 would take a gigabyte
        rows = slice(start, start + ROUNDED_AT_ONCE)
        largest = np.maximum(np.abs(matrix[rows]).max(axis=1, keepdims=True), 1e-30).astype(np.float64)
        quotients = matrix[rows] / (largest / LARGEST)
        integers[rows], scales[rows] = np.trunc(quotients + np.copysign(0.5, quotients)), largest / LARGEST
    return integers, scales
