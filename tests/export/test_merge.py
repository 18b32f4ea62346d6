"""Files of one signature each become one file, with equal weights once, which begin where LiteRT may read them."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from export.litert.convert import converted
from export.litert.merge import ALIGNMENT, SharingBuilder, merged
from export.litert.zeros import LEAST, is_zeros
from keras_transformer.lite.folder import Room

WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
COUNTS = (2, 160)
STATE = np.random.default_rng(2).normal(size=(1, 64)).astype(np.float32)


def powers(count):
    """A function that multiplies a state `count` times with the weights, in a loop, and counts from zeros on."""

    def multiplied(state):
        is_left = lambda step, *_: step < count  # noqa: E731
        step = lambda step, x, counts: (step + 1, tf.matmul(x, WEIGHTS), counts + 1.0)  # noqa: E731
        _, state, counts = tf.while_loop(is_left, step, (0, state, tf.zeros(COUNTS)))
        return {"state": state, "counts": counts}

    return tf.function(multiplied, [tf.TensorSpec([1, 64], tf.float32, "state")], autograph=False)


@pytest.mark.slow
def test_each_signature_computes_what_it_did_and_equal_weights_stand_once():
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    rooms = {Room(1, count): count for count in (1, 2, 3)}
    files = [converted(room, powers(count), None) for room, count in rooms.items()]
    file = merged(files)
    assert len(file) < sum(map(len, files)) - 2 * WEIGHTS.nbytes
    opened = interpreter.Interpreter(model_content=file)
    for room, count in rooms.items():
        translate = opened.get_signature_runner(room.signature)
        for _ in range(2):  # the zeros are there again in the second call
            found = translate(state=STATE)
            np.testing.assert_array_equal(found["counts"], np.full(COUNTS, count, np.float32))
        np.testing.assert_allclose(found["state"], STATE @ np.linalg.matrix_power(WEIGHTS, count), rtol=1e-3, atol=1e-3)
    model, start = schema.Model.GetRootAs(file), np.frombuffer(file, np.uint8).ctypes.data
    data = [model.Buffers(number).DataAsNumpy() for number in range(model.BuffersLength())]
    places = [each.ctypes.data - start for each in data if isinstance(each, np.ndarray)]
    assert len(places) > 2 and not any(place % ALIGNMENT for place in places)
    assert not any(isinstance(each, np.ndarray) and len(each) >= LEAST and not each.any() for each in data)


def test_zeros_are_a_kilobyte_at_least_and_nothing_else():
    for data, expected in (
        (np.zeros(LEAST, np.uint8), True),
        (np.zeros(LEAST - 1, np.uint8), False),
        (np.eye(1, LEAST, LEAST - 1, dtype=np.uint8)[0], False),
        (None, False),
    ):
        assert is_zeros(schema.BufferT(data=data)) is expected


def test_equal_names_and_arrays_are_written_once():
    builder = SharingBuilder(16)
    assert builder.CreateString(b"weights") == builder.CreateString(b"weights") != builder.CreateString(b"biases")
    arrays = [np.array(values, kind) for values, kind in (([1, 0], "int32"), ([1], "int64"), ([1, 1], "int32"))]
    places = [builder.CreateNumpyVector(array) for array in arrays]
    assert places == [builder.CreateNumpyVector(array.copy()) for array in arrays] and len(set(places)) == len(places)
