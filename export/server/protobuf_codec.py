"""Predictions in TensorFlow Serving's protocol buffers: requests to arrays, outputs to answers."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_transformer.ground.errors import first_line_of

from .errors import invalid, too_big
from .signature import SERVING_DEFAULT, Arrays, Signature, check_dimensions, check_shape, too_many_rows

MOST_FIELDS = 1 << 17  # of a PredictRequest: reading them holds Python for 0.2 microseconds each, and more
MOST_ELEMENTS = 1 << 22  # a few bytes may claim any shape, since a single value stands for all elements

FIELDS = {  # of TensorProto, with the values of each type
    tf.string: "string_val",
    tf.bool: "bool_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.float16: "half_val",
    tf.bfloat16: "half_val",
    tf.complex64: "scomplex_val",
    tf.complex128: "dcomplex_val",
    tf.int64: "int64_val",
    tf.uint32: "uint32_val",
    tf.uint64: "uint64_val",
} | dict.fromkeys((tf.int32, tf.int16, tf.int8, tf.uint16, tf.uint8), "int_val")
VARINT, LENGTH, FIXED = 0, 2, {1: 8, 5: 4}  # how protocol buffers write a field: FIXED by its bytes
BITS = {  # of types whose field has something else: the bits of a half, and both parts of a complex number
    tf.float16: np.uint16,
    tf.bfloat16: np.uint16,
    tf.complex64: np.float32,
    tf.complex128: np.float64,
}


def check_fields(body: bytes) -> None:
    """Raise RequestError if the bytes of a PredictRequest have more than MOST_FIELDS fields.

    Counted are those of the request, its inputs, their tensors and shapes: all of them stand in fields of number 2. A
    body that is no protocol buffer is left to the parser, which refuses it where the counting ends.
    """
    if len(body) <= 2 * MOST_FIELDS:  # a field has two bytes or more
        return
    at, ends, count = 0, [len(body)], 0  # ends: of the messages around
    try:
        while ends:
            if at >= ends[-1]:
                ends.pop()
                continue
            tag, at = varint(body, at)
            count += 1
            if count > MOST_FIELDS:
                raise invalid(f"The message has more than {MOST_FIELDS} fields, the most here: send several requests.")
            size = FIXED.get(tag & 7, 0)
            if tag & 7 == VARINT:
                _, at = varint(body, at)
            elif tag & 7 == LENGTH:
                size, at = varint(body, at)
                if tag >> 3 == 2 and len(ends) < 4:
                    ends.append(min(at + size, ends[-1]))
                    size = 0
            at += size
    except IndexError:
        return


def varint(body: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place of a protocol buffer, and the place behind it. Raises IndexError at the end."""
    value, shift = 0, 0
    while (byte := body[at]) > 127:
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
    return value | byte << shift, at + 1


class ProtobufCodec:
    """The Codec of a PredictRequest to the version `number`.

    Raises RequestError if an input has more than `most_rows` rows.
    """

    def __init__(self, request: PredictRequest, number: int, most_rows: int):
        self.request, self.number, self.most_rows = request, number, most_rows
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

    def write(self, outputs: Arrays, most: int) -> bytes:
        """Return a PredictResponse with these outputs. Raises RequestError if it has more than `most` bytes."""
        response = PredictResponse(outputs={name: tensor_of(array) for name, array in outputs.items()})
        response.model_spec.name = self.request.model_spec.name
        response.model_spec.signature_name = self.signature_name or SERVING_DEFAULT
        response.model_spec.version.value = self.number
        content = response.SerializeToString()
        if len(content) > most:
            raise too_big(most)
        return content


def tensor_of(array: np.ndarray) -> TensorProto:
    """Return an output as a tensor whose values stand in the field of their type.

    TensorFlow Serving writes them so (Tensor::AsProtoField), and clients read `float_val`. `tf.make_tensor_proto` would
    write numbers as bytes into `tensor_content`.
    """
    array = np.asarray(array)
    dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
    if dtype not in FIELDS:
        return tf.make_tensor_proto(array)
    tensor = TensorProto(dtype=dtype.as_datatype_enum)
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    values = array.ravel()
    if dtype in BITS:
        values = values.view(BITS[dtype])
    getattr(tensor, FIELDS[dtype]).extend(values.tolist())
    return tensor


def array_of(name: str, tensor: TensorProto) -> np.ndarray:
    """Return the input `name` as an array. Raises RequestError if the values do not fill the shape."""
    shape = shape_of(name, tensor)
    if tensor.dtype == tf.string.as_datatype_enum:
        return strings_of(name, tensor, shape)
    try:
        return tf.make_ndarray(tensor)
    except LookupError:
        raise invalid(f"The input {name!r} is {tf.as_dtype(tensor.dtype).name}, which is no type of arrays.") from None
    except (TypeError, ValueError, OverflowError) as error:
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
    count, length = math.prod(shape), len(tensor.string_val)
    if length > count or (count and not length):
        raise invalid(f"The input {name!r} has {length} values for the shape {shape}.")
    array, values = np.empty(count, object), list(tensor.string_val)
    array[:] = values + values[-1:] * (count - len(values))
    return array.reshape(shape)
