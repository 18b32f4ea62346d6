"""Predictions in TensorFlow Serving's protocol buffers: requests to arrays, outputs to answers."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_transformer.errors import first_line_of

from .errors import invalid
from .signature import Arrays, Signature, check_dimensions, check_shape, too_many_rows

MOST_ELEMENTS = 1 << 22  # a few bytes may claim any shape, since a single value stands for all elements


class ProtobufCodec:
    """The Codec of a PredictRequest. Raises RequestError if an input has more than `most_rows` rows."""

    def __init__(self, request: PredictRequest, most_rows: int):
        self.request, self.most_rows = request, most_rows
        self.signature_name, self.output_names = request.model_spec.signature_name, list(request.output_filter)

    def read(self, signature: Signature) -> Arrays:
        """Return the inputs as arrays.

        A few bytes may claim a shape of millions, so every shape is checked before an array is filled.
        """
        signature.check_names(self.request.inputs)
        for name, tensor in self.request.inputs.items():
            shape = shape_of(name, tensor)
            check_shape(name, signature.inputs[name], shape)
            if shape and shape[0] > self.most_rows:
                raise too_many_rows(shape[0], self.most_rows)
        return {name: array_of(name, tensor) for name, tensor in self.request.inputs.items()}

    def write(self, outputs: Arrays) -> PredictResponse:
        """Return an answer that has these outputs, but no model_spec yet."""
        return PredictResponse(outputs={name: tf.make_tensor_proto(array) for name, array in outputs.items()})


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
        raise invalid(
            f"The input {name!r} has the shape {shape}. A size must be at least 0, and an input has at most "
            f"{MOST_ELEMENTS} elements."
        )
    return shape


def strings_of(name: str, tensor: TensorProto, shape: list[int]) -> np.ndarray:
    """Return the strings of a tensor as an array. As in TensorFlow, the last value stands for all that are missing."""
    count, values = math.prod(shape), list(tensor.string_val)
    if len(values) > count or (count and not values):
        raise invalid(f"The input {name!r} has {len(values)} values for the shape {shape}.")
    array = np.empty(count, object)
    array[:] = values + values[-1:] * (count - len(values))
    return array.reshape(shape)
