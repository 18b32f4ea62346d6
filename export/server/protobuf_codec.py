"""Tensors of requests and answers in protocol buffers: TensorProto to array and back."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from keras_transformer.errors import first_line_of

from .errors import invalid

MOST_DIMENSIONS = 64  # of an array of numpy
MOST_ELEMENTS = 1 << 22  # a few bytes may claim any shape, since a single value stands for all elements


def array_of(name: str, tensor: TensorProto) -> np.ndarray:
    """Return the input `name` as an array. Raises RequestError if the values do not fill the shape."""
    shape = shape_of(name, tensor)
    if tensor.dtype == tf.string.as_datatype_enum:
        return strings_of(name, tensor, shape)
    try:
        return tf.make_ndarray(tensor)
    except (TypeError, ValueError, LookupError, OverflowError) as error:  # a KeyError: a type that numpy lacks
        raise invalid(f"The input {name!r} cannot be read: {first_line_of(error)}") from None


def shape_of(name: str, tensor: TensorProto) -> list[int]:
    """Return the shape that the input `name` claims. Raises RequestError if no array of this server can have it."""
    if tensor.tensor_shape.unknown_rank:
        raise invalid(f"The input {name!r} has no shape.")
    check_dimensions(name, len(tensor.tensor_shape.dim))
    shape = [dimension.size for dimension in tensor.tensor_shape.dim]
    if any(not 0 <= size <= MOST_ELEMENTS for size in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise invalid(f"The input {name!r} has the shape {shape}: sizes are at least 0, and elements {MOST_ELEMENTS}.")
    return shape


def check_dimensions(name: str, count: int) -> None:
    """Raise RequestError if an input has more dimensions than an array can have."""
    if count > MOST_DIMENSIONS:
        raise invalid(f"The input {name!r} has {count} dimensions; at most {MOST_DIMENSIONS} are possible.")


def strings_of(name: str, tensor: TensorProto, shape: list[int]) -> np.ndarray:
    """As in TensorFlow, the last value stands for all that follow it."""
    count, values = math.prod(shape), list(tensor.string_val)
    if len(values) > count or (count and not values):
        raise invalid(f"The input {name!r} has {len(values)} values for the shape {shape}.")
    array = np.empty(count, object)
    array[:] = values + values[-1:] * (count - len(values))
    return array.reshape(shape)


def tensor_of(array: np.ndarray) -> TensorProto:
    """Return an output as a TensorProto."""
    return tf.make_tensor_proto(array)
