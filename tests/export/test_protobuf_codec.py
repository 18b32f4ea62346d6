"""Tensors in requests: one that fills its shape is an array; any other is an error that names the input."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from export.server.errors import Code, RequestError
from export.server.protobuf_codec import MOST_ELEMENTS, ProtobufCodec, array_of
from export.server.signature import MOST_DIMENSIONS

STRING, FLOAT, VARIANT = tf.string.as_datatype_enum, tf.float32.as_datatype_enum, tf.variant.as_datatype_enum


def proto(dtype, shape, **values):
    tensor = TensorProto(dtype=dtype, **values)
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


@pytest.mark.parametrize("values", [[b"a", b"\xff"], [[1.5], [2.0]], 3, True, np.empty((0, 2), np.float32)])
def test_an_array_survives_the_way_there_and_back(values):
    array = np.array(values, object if isinstance(values, list) and isinstance(values[0], bytes) else None)
    answer = ProtobufCodec(PredictRequest(), most_rows=1).write({"x": array})
    found = array_of("x", answer.outputs["x"])
    assert found.tolist() == array.tolist() and found.shape == array.shape


def test_an_array_may_have_every_dimension_that_numpy_can_have():
    assert array_of("x", proto(STRING, [1] * MOST_DIMENSIONS, string_val=[b"a"])).ndim == MOST_DIMENSIONS
    with pytest.raises(ValueError, match=f"{MOST_DIMENSIONS}"):
        np.empty([1] * (MOST_DIMENSIONS + 1))


def test_the_last_value_stands_for_all_that_follow():
    assert array_of("x", proto(STRING, [3], string_val=[b"a", b"b"])).tolist() == [b"a", b"b", b"b"]
    assert array_of("x", proto(FLOAT, [3], float_val=[1, 2])).tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    "tensor",
    [
        proto(STRING, [-1], string_val=[b"a"]),
        proto(STRING, [1], string_val=[b"a", b"b"]),
        proto(STRING, [2]),
        proto(STRING, [MOST_ELEMENTS + 1], string_val=[b"a"]),
        proto(STRING, [2**62, 2**62, 0]),
        proto(FLOAT, [2**62, 2**62, 0]),
        proto(FLOAT, [2**40], float_val=[1]),
        proto(FLOAT, [2], tensor_content=b"abc"),
        proto(FLOAT, [1], float_val=[1, 2]),
        proto(VARIANT, [1]),
        proto(0, [1]),
        proto(101, [1]),
        TensorProto(dtype=STRING, tensor_shape={"unknown_rank": True}),
        proto(STRING, [1] * 65, string_val=[b"a"]),
        proto(FLOAT, [1] * 500, float_val=[1]),
    ],
)
def test_what_does_not_fill_its_shape_is_refused(tensor):
    with pytest.raises(RequestError, match="'x'") as error:
        array_of("x", tensor)
    assert error.value.code is Code.INVALID_ARGUMENT and "\n" not in error.value.message
