"""Files of one signature each become one file, with equal weights once, which begin where LiteRT may read them."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from export.litert.convert import converted
from export.litert.merge import ALIGNMENT, merged
from keras_transformer.lite.folder import Room

WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
STATE = np.random.default_rng(2).normal(size=(1, 64)).astype(np.float32)


def powers(count):
    """A function that multiplies a state `count` times with the weights, in a loop."""

    def multiplied(state):
        is_left = lambda step, _: step < count  # noqa: E731
        return {"state": tf.while_loop(is_left, lambda step, x: (step + 1, tf.matmul(x, WEIGHTS)), (0, state))[1]}

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
        found = opened.get_signature_runner(room.signature)(state=STATE)["state"]
        np.testing.assert_allclose(found, STATE @ np.linalg.matrix_power(WEIGHTS, count), rtol=1e-3, atol=1e-3)
    model, start = schema.Model.GetRootAs(file), np.frombuffer(file, np.uint8).ctypes.data
    data = [model.Buffers(number).DataAsNumpy() for number in range(model.BuffersLength())]
    places = [each.ctypes.data - start for each in data if isinstance(each, np.ndarray)]
    assert len(places) > 2 and not any(place % ALIGNMENT for place in places)
