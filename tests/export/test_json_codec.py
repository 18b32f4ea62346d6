"""The JSON of REST: rows and columns are the same arrays, and a value of another type is refused with its name."""

import base64
import gzip
import json

import numpy as np
import pytest
import tensorflow as tf

from export.server import json_codec
from export.server.errors import RequestError
from export.server.signature import Signature, Tensor
from tests.support.damage import flips

LINES = 4


def nested(depth):
    return [nested(depth - 1)] if depth else "a"


SIGNATURE = Signature(
    "all",
    {
        "text": Tensor("t:0", tf.string, (None,)),
        "beam": Tensor("b:0", tf.int32, (None,)),
        "alpha": Tensor("a:0", tf.float32, (None,)),
        "flag": Tensor("f:0", tf.bool, (None,)),
    },
    {},
    {},
)
TEXT = SIGNATURE._replace(inputs={"text": SIGNATURE.inputs["text"]})
PAIRS = SIGNATURE._replace(inputs={"pair": Tensor("p:0", tf.float32, (None, 2))})


def arrays(content, signature=SIGNATURE):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return json_codec.json_codec(body, LINES).read(signature)


def assert_equal(found, expected):
    assert {name: array.tolist() for name, array in found.items()} == expected


def test_rows_and_columns_are_the_same_arrays():
    rows = [{"text": "ü", "beam": 2, "alpha": 0.5, "flag": True}, {"text": "", "beam": 3, "alpha": 1, "flag": False}]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    expected = {"text": ["ü".encode(), b""], "beam": [2, 3], "alpha": [0.5, 1.0], "flag": [True, False]}
    assert_equal(arrays({"instances": rows}), expected)
    assert_equal(arrays({"inputs": columns}), expected)
    assert [array.dtype for array in arrays({"inputs": columns}).values()] == [object, np.int32, np.float32, np.bool_]


def test_the_least_and_the_largest_whole_number_are_read():
    assert_equal(arrays({"inputs": {"beam": [-(2**31), 2**31 - 1]}}), {"beam": [-(2**31), 2**31 - 1]})


def test_a_single_input_needs_no_name():
    assert_equal(arrays({"instances": ["a", {"b64": "/w=="}]}, TEXT), {"text": [b"a", b"\xff"]})
    assert_equal(arrays({"inputs": ["a"]}, TEXT), {"text": [b"a"]})
    assert_equal(arrays({"instances": [[1, 2], [3, 4]]}, PAIRS), {"pair": [[1, 2], [3, 4]]})


@pytest.mark.parametrize("length", [0, 1, 2, 3, 49_151, 49_152, 49_153, 200_000])
@pytest.mark.parametrize("padding", ["", "="])
def test_base64_of_any_length_is_read(length, padding):
    content = bytes(number % 251 for number in range(length))
    text = base64.b64encode(content).decode()
    assert_equal(arrays({"inputs": [{"b64": text if padding else text.rstrip("=")}]}, TEXT), {"text": [content]})


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["JSON"]),
        (b"{", ["JSON"]),
        (b'{"inputs": "\xff"}', ["UTF-8", "13"]),
        (b"[" * 100_000, ["JSON"]),
        (b'{"instances": [' + b"9" * 5000 + b"]}", ["JSON", "digits"]),
        (b'{"inputs": ["a"], "inputs": ["b"]}', ["'inputs' twice"]),
        (b'{"instances": [{"text": "a", "text": "b"}]}', ["'text' twice"]),
        (b'{"%s": 1, "%s": 2}' % (b"k" * 101, b"k" * 101), [f"the key '{'k' * 100}' twice"]),
        ([], ["object"]),
        ({}, ["instances", "inputs"]),
        ({"inputs": ["a"], "instances": ["a"]}, ["instances", "inputs"]),
        ({"instances": ["a"], "signature_name": 3}, ["signature_name"]),
        ({"instances": []}, ["instances"]),
        ({"instances": {"text": "a"}}, ["instances"]),
        ({"instances": ["a"] * (LINES + 1)}, ["5 rows", "4"]),
        ({"instances": ["a", {"text": "a"}]}, ["element 1"]),
        ({"instances": ["a"]}, ["alpha", "text", "by name"]),
    ],
)
def test_what_is_no_request_is_refused(content, parts):
    with pytest.raises(RequestError) as error:
        arrays(content)
    assert error.value.http_status == 400 and all(part in error.value.message for part in parts)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("text", 3, "a number"),
        ("text", None, "null"),
        ("text", [["a"], "b"], "text"),
        ("text", [["a"], ["b", "c"]], "shape"),
        ("text", ["a", ["b"]], "nested"),
        ("text", nested(65), "65 dimensions"),
        ("text", nested(500), "500 dimensions"),
        ("text", "\ud800", "surrogate"),
        ("text", {"b64": "*"}, "base64"),
        ("text", {"b64": "YQ==YQ=="}, "base64"),
        ("text", {"b64": "a" * 131_073}, "base64"),
        ("text", {"b64": 3}, "an object"),
        ("beam", True, "a boolean"),
        ("beam", 1.0, "whole"),
        ("beam", 2**31, "range"),
        ("beam", float("nan"), "whole"),
        ("alpha", "1", "a string"),
        ("alpha", 10**39, "range"),
        ("alpha", 1e39, "range"),
        ("alpha", -1e39, "range"),
        ("flag", 1, "a number"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_name_of_the_input(name, value, part):
    with pytest.raises(RequestError) as error:
        arrays({"inputs": {name: value if isinstance(value, list) else [value]}})
    assert error.value.http_status == 400 and name in error.value.message and part in error.value.message


@pytest.mark.parametrize(("value", "part"), [([[1, 2], [3]], "length"), ([1, 2], "shape"), ([[1, 2, 3]], "shape")])
def test_pairs_must_be_pairs(value, part):
    with pytest.raises(RequestError, match=f"'pair' .*{part}"):
        arrays({"inputs": {"pair": value}}, PAIRS)


def test_a_column_of_too_many_values_is_refused():
    for inputs in ({"text": ["a"] * (LINES + 1)}, ["a"] * (LINES + 1)):
        with pytest.raises(RequestError, match=f"has {LINES + 1} rows; this server takes at most {LINES}"):
            arrays({"inputs": inputs}, TEXT)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "3.4028234e38"])
def test_what_a_float_can_be_is_read(number):
    [found] = arrays(f'{{"inputs": {{"alpha": [{number}]}}}}'.encode())["alpha"]
    assert found == np.float32(number) or (found != found and number == "NaN")


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_beyond_every_float_is_not_infinity(number):
    with pytest.raises(RequestError, match="range"):
        arrays(f'{{"inputs": {{"alpha": [{number}]}}}}'.encode())


@pytest.mark.parametrize("value", ["[]", "{}", '"a"', "1", "1.5", "null", "[[]]", '"\\"[,"'])
def test_a_body_has_so_many_values_and_what_stands_in_strings_is_none(value):
    signs = 1 + value.count("[[") if '"' not in value and value[0] in "[{" else 0
    count = json_codec.MOST_VALUES // (1 + signs) - 3  # a comma each, and what begins it
    assert len(json_codec.parsed(f'{{"inputs": [{",".join([value] * count)}]}}'.encode())["inputs"]) == count
    with pytest.raises(RequestError, match=f"more than {json_codec.MOST_VALUES} JSON values"):
        json_codec.parsed(f'{{"inputs": [{",".join([value] * (count + 6))}]}}'.encode())


@pytest.mark.parametrize("text", ["[,{" * 200_000, '",\\' * 200_000])
def test_a_long_text_may_have_any_signs(text):
    assert json_codec.parsed(json.dumps({"inputs": [text]}).encode()) == {"inputs": [text]}


@pytest.mark.parametrize("text", ['"' + '\\"' * 400_000, '"' * 800_000, "\\" * 800_000])
def test_a_body_of_quotes_is_refused_in_seconds_not_hours(text):
    with pytest.raises(RequestError):
        json_codec.parsed(b"[" + b"," * json_codec.MOST_VALUES + text.encode())


def test_a_body_of_gzip_that_is_cut_off_is_refused():
    body = gzip.compress(b'{"inputs": ["a"]}')
    assert json_codec.unzipped(body, 100) == b'{"inputs": ["a"]}'
    with pytest.raises(RequestError, match="gzip that has no end"):
        json_codec.unzipped(body[:-4], 100)


def test_a_body_of_gzip_may_have_several_members_and_nothing_else():
    """RFC 1952, 2.2; a program that packs in parallel writes them."""
    members = gzip.compress(b'{"inputs":') + gzip.compress(b"") + gzip.compress(b' ["a"]}')
    assert json_codec.unzipped(members, 17) == b'{"inputs": ["a"]}'
    with pytest.raises(RequestError, match="more than 16 bytes"):
        json_codec.unzipped(members, 16)
    with pytest.raises(RequestError, match="not gzip"):
        json_codec.unzipped(members + b"junk", 100)


@pytest.mark.parametrize("dtype", [tf.complex64, tf.resource, tf.variant])
def test_an_input_of_a_type_that_has_no_form_in_json_is_named(dtype):
    signature = Signature("all", {"wave": Tensor("wave:0", dtype, (None,))}, {}, {})
    with pytest.raises(RequestError, match=f"'wave' is {dtype.name}, which has no form in JSON"):
        arrays({"inputs": {"wave": [1]}}, signature)


def test_a_body_of_gzip_with_another_byte_is_refused_unless_it_says_the_same():
    content = json.dumps({"inputs": ["a text", "another"]}).encode()
    refused = 0
    for damaged in flips(gzip.compress(content, mtime=0)):
        try:
            assert json_codec.unzipped(damaged, 1000) == content  # a time or a system of the header
        except RequestError as error:
            refused += 1
            assert error.http_status == 400 and "\n" not in error.message
    assert refused > 100
