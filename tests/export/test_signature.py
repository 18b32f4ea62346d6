"""A signature: which requests may share a batch."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import TensorInfo

from export.server.errors import RequestError
from export.server.signature import Signature, Tensor, check_shape


def test_a_message_names_the_first_of_what_is_wrong_in_the_order_of_letters():
    names = [f"{letter}{letter}" for letter in "zyxwvutsrqponm"]
    known = Signature("one", {name: Tensor(name, tf.string, (None,)) for name in names}, {}, {})
    with pytest.raises(RequestError, match="needs the input 'mm', which"):
        known.complete({})
    with pytest.raises(RequestError, match=f"does not take a, b, c; it takes {', '.join(names[::-1])}."):
        known.check_names(["h", "zz", "c", "g", "a", "f", "b", "e", "d"])


@pytest.mark.parametrize("shape", [None, (), (None,), (3,), (None, 0, 7)])
def test_a_tensor_has_the_shape_that_the_savedmodel_says_and_of_an_unknown_rank_every_request_fits(shape):
    info = TensorInfo(name="x:0", dtype=tf.int32.as_datatype_enum, tensor_shape=tf.TensorShape(shape).as_proto())
    tensor = Tensor.of(info)
    assert tensor == ("x:0", tf.int32, shape)
    for found in ((), (2,), (3,), (2, 0, 7)):
        if tf.TensorShape(shape).is_compatible_with(found):
            check_shape("x", tensor, found)
        else:
            with pytest.raises(RequestError, match="must have the shape"):
                check_shape("x", tensor, found)


def signature(of_input, of_output):
    return Signature(
        "one", {"text": Tensor("text:0", tf.string, of_input)}, {"out": Tensor("out:0", tf.string, of_output)}, {}
    )


@pytest.mark.parametrize(
    ("of_input", "of_output", "can"),
    [
        ((None,), (None,), True),
        ((None,), (None, 3), True),
        ((None,), (None, None), False),  # an answer would show how long those of others are
        ((None,), (3,), False),
        ((None,), (), False),
        ((None,), None, False),
        ((None, 2), (None,), False),
        ((), (None,), False),
        (None, (None,), False),
    ],
)
def test_requests_share_a_batch_if_its_rows_can_be_told_apart(of_input, of_output, can):
    assert signature(of_input, of_output).can_join(("out",)) is can
    assert signature((None,), (None, None)).can_join(())


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"text": 2, "a": 1, "c": 3, "b": 2}, "numbers of rows: b has 2, c has 3, text has 2. An input has one row"),
        ({"text": 2, "a": 0}, "numbers of rows: a has 0, text has 2."),
        ({"text": 1, "a": 0, "b": 1}, "numbers of rows: a has 0, b has 1, text has 1."),
    ],
)
def test_of_different_numbers_of_rows_those_are_named_that_differ(rows, sentence):
    known = signature((None,), (None,))._replace(defaults={"a": [b""], "b": [b""], "c": [b""]})
    with pytest.raises(RequestError, match=re.escape(sentence)):
        known.rows({name: np.full(count, b"", object) for name, count in rows.items()})
    assert known.rows({"text": np.zeros(0), "a": np.zeros(1)}) == 0


def test_outputs_are_in_the_order_of_letters_whoever_asks_in_which():
    outputs = {name: Tensor(name, tf.string, (None,)) for name in "cab"}
    known = Signature("one", {}, outputs, {})
    assert known.output_names([]) == ("a", "b", "c") and known.output_names(["c", "a"]) == ("a", "c")
    for wanted, reason in (
        (["d"], "has no output 'd'; it has a, b, c"),
        (["a", "c", "a"], "a, c, a name one of them twice"),
    ):
        with pytest.raises(RequestError, match=reason):
            known.output_names(list(wanted))
