"""Tensors in requests: one that fills its shape is an array; any other is an error that names the input."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from export.server.errors import Code, RequestError
from export.server.protobuf_codec import (
    MOST_ELEMENTS,
    MOST_FIELDS,
    ProtobufCodec,
    array_of,
    check_fields,
    shape_of,
    tensor_of,
)
from export.server.signature import MOST_DIMENSIONS

STRING, FLOAT, VARIANT = tf.string.as_datatype_enum, tf.float32.as_datatype_enum, tf.variant.as_datatype_enum


def request_of(kind, count):
    """A PredictRequest with so many fields of a kind, and four more: the input, its name, its tensor and the shape."""
    request = PredictRequest()
    if kind == "filter":
        request.output_filter.extend([""] * (count + 4))
    elif kind == "inputs":
        for number in range((count + 4) // 3):  # an input is a field, and has two
            request.inputs[f"{number:06d}"].SetInParent()
    elif kind == "text":
        request.inputs["text"].string_val.extend([b""] * (count + 1))
        request.inputs["text"].tensor_shape.SetInParent()
        request.inputs["text"].string_val.pop()
    elif kind == "dimensions":
        for _ in range(count):
            request.inputs["text"].tensor_shape.dim.add()
    return request


@pytest.mark.parametrize("kind", ["filter", "inputs", "text", "dimensions"])
def test_a_request_has_so_many_fields_wherever_they_stand(kind):
    check_fields(request_of(kind, MOST_FIELDS - 4).SerializeToString() + b"\x52\x00" * (kind == "inputs"))
    with pytest.raises(RequestError, match=f"more than {MOST_FIELDS} fields"):
        check_fields(request_of(kind, MOST_FIELDS).SerializeToString())


def test_a_long_text_is_one_field():
    request = PredictRequest()
    request.inputs["text"].string_val.append(b"\x12\x00" * MOST_FIELDS * 2)
    check_fields(request.SerializeToString())


@pytest.mark.parametrize("end", [b"\x80", b"\x12", b"\x12\xff\xff\xff\xff\x0f", b"\xff" * 9])
def test_a_body_that_ends_in_a_field_is_left_to_the_parser_and_costs_no_more(end):
    check_fields(b"\x1a\x00" * (MOST_FIELDS - 9) + b"\x1a\x10" + b"a" * 16 + end)
    with pytest.raises(RequestError):
        check_fields(b"\x12\x02\x12\x00" * MOST_FIELDS + end)


def proto(dtype, shape, **values):
    tensor = TensorProto(dtype=dtype, **values)
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


@pytest.mark.parametrize("values", [[b"a", b"\xff"], [[1.5], [2.0]], 3, True, np.empty((0, 2), np.float32)])
def test_an_array_survives_the_way_there_and_back(values):
    array = np.array(values, object if isinstance(values, list) and isinstance(values[0], bytes) else None)
    answer = ProtobufCodec(PredictRequest(), number=3, most_rows=1).write({"x": array}, most=1000)
    found = array_of("x", PredictResponse.FromString(answer).outputs["x"])
    assert found.tolist() == array.tolist() and found.shape == array.shape


def test_an_answer_is_bounded():
    codec, outputs = ProtobufCodec(PredictRequest(), number=3, most_rows=1), {"x": np.array([b"a" * 100], object)}
    length = len(codec.write(outputs, most=1000))
    assert len(codec.write(outputs, most=length)) == length > 100
    with pytest.raises(RequestError, match=f"more than {length - 1} bytes"):
        codec.write(outputs, most=length - 1)


FIELDS = [
    (np.float32, "float_val"),
    (np.float64, "double_val"),
    (np.int8, "int_val"),
    (np.int16, "int_val"),
    (np.int32, "int_val"),
    (np.uint8, "int_val"),
    (np.uint16, "int_val"),
    (np.int64, "int64_val"),
    (np.uint32, "uint32_val"),
    (np.uint64, "uint64_val"),
    (np.bool_, "bool_val"),
    (np.complex64, "scomplex_val"),
    (np.complex128, "dcomplex_val"),
    (np.float16, "half_val"),
    (tf.bfloat16.as_numpy_dtype, "half_val"),
    (object, "string_val"),
]


@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (0, 2)])
@pytest.mark.parametrize(("dtype", "field"), FIELDS)
def test_the_values_of_an_answer_stand_in_the_field_of_their_type(dtype, field, shape):
    """As TensorFlow Serving's: clients read the field, and never `tensor_content`."""
    array = np.full(shape, b"a", object) if dtype is object else np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    tensor = tensor_of(array)
    length = len(getattr(tensor, field))
    assert not tensor.tensor_content and length == array.size * (2 if np.iscomplexobj(array) else 1)
    assert {each.name for each, _ in tensor.ListFields()} <= {"dtype", "tensor_shape", field}
    back = tf.make_ndarray(tensor)
    assert back.shape == shape and back.tolist() == array.tolist() and back.dtype == array.dtype


def test_numbers_of_an_answer_are_those_of_the_field():
    assert list(tensor_of(np.array([[0.5, -2.0], [1.0, 0.0]], np.float32)).float_val) == [0.5, -2.0, 1.0, 0.0]


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


def test_a_type_that_no_array_has_is_named():
    for name in ("resource", "variant"):
        with pytest.raises(RequestError, match=f"The input 'x' is {name}, which is no type of arrays"):
            array_of("x", TensorProto(dtype=tf.as_dtype(name).as_datatype_enum, tensor_shape={"dim": [{"size": 1}]}))


def test_the_elements_of_all_dimensions_together_are_bounded():
    sizes = [MOST_ELEMENTS // 2, 2]
    fits, claims = (proto(FLOAT, shape) for shape in (sizes, [*sizes, 2]))
    assert shape_of("text", fits) == sizes
    with pytest.raises(RequestError, match=f"at most {MOST_ELEMENTS} elements"):
        shape_of("text", claims)


@pytest.mark.parametrize(("asked", "answered"), [("", "serving_default"), ("score", "score")])
def test_an_answer_names_the_model_the_version_and_the_signature(asked, answered):
    request = PredictRequest(model_spec={"name": "mine", "signature_name": asked})
    spec = PredictResponse.FromString(ProtobufCodec(request, number=7, most_rows=1).write({}, most=1000)).model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("mine", 7, answered)
