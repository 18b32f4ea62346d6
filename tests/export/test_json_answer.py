"""The JSON of an answer: by row or by column, whole or in parts, it says the same."""

import base64
import contextlib
import json

import numpy as np
import pytest

from export.server.errors import RequestError
from export.server.json_answer import CHUNK, encoded
from export.server.json_codec import JsonCodec


def written(outputs, is_by_row):
    return b"".join(JsonCodec("all", is_by_row, {}).write(outputs, 1 << 30))


def test_answers_are_by_row_or_by_column():
    text, score = np.array(["ü".encode(), b"\xff"], object), np.array([-0.5, 0.0], np.float32)
    both = {"score": score, "text": text}
    assert json.loads(written(both, is_by_row=True)) == {
        "predictions": [{"score": -0.5, "text": "ü"}, {"score": 0.0, "text": "\ufffd"}]
    }
    assert json.loads(written(both, is_by_row=False)) == {"outputs": {"score": [-0.5, 0.0], "text": ["ü", "\ufffd"]}}
    assert json.loads(written({"text": text}, is_by_row=True)) == {"predictions": ["ü", "\ufffd"]}
    assert json.loads(written({"text_bytes": text}, is_by_row=False)) == {"outputs": [{"b64": "w7w="}, {"b64": "/w=="}]}
    with pytest.raises(RequestError, match="by column"):
        written({"count": np.array(3)}, is_by_row=True)


@pytest.mark.parametrize("is_by_row", [True, False])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 3, 1000])
def test_a_long_answer_comes_in_parts_and_is_the_same_json(is_by_row, count, rows):
    array = np.array([f"{row} \u00fc".encode() * 200 for row in range(rows)], object)
    outputs = dict([("a", array), ("b", np.arange(2 * rows, dtype=np.float32).reshape(rows, 2))][:count])
    chunks = JsonCodec("all", is_by_row, {}).write(outputs, 1 << 30)
    values = {
        name: [v.decode() if isinstance(v, bytes) else v for v in each.tolist()] for name, each in outputs.items()
    }
    rows_of = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    by_row, by_column = (rows_of, values) if count == 2 else (values["a"], values["a"])
    assert json.loads(b"".join(chunks)) == ({"predictions": by_row} if is_by_row else {"outputs": by_column})
    assert max(map(len, chunks)) < 4 * CHUNK


def test_an_answer_is_bounded_as_it_is_written():
    """A control character takes six bytes in JSON."""
    outputs = {"text": np.array([b"\0" * 100], object)}
    assert len(b"".join(JsonCodec("all", False, {}).write(outputs, 620))) == 617
    with pytest.raises(RequestError, match="more than 610 bytes"):
        JsonCodec("all", False, {}).write(outputs, 610)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("is_by_row", [True, False])
def test_a_long_string_comes_in_parts_and_is_the_same_json(is_by_row, shift):
    """Characters, escapes and damaged bytes stand at every place of a part's end."""
    value = b"x" * shift + 'a"\\\n\u00fc\u4e2d\U0001f600'.encode() * 30_000 + b"\xff\xf0\x9f" * 10_000
    outputs = {"text": np.array([b"short", value], object), "score": np.arange(2.0)}
    chunks = JsonCodec("all", is_by_row, {}).write(outputs, 1 << 30)
    answer = json.loads(b"".join(chunks))
    texts = [row["text"] for row in answer["predictions"]] if is_by_row else answer["outputs"]["text"]
    assert texts == ["short", value.decode("utf-8", "replace")]
    assert max(map(len, chunks)) < 4 * CHUNK
    binary = json.loads(written({"text_bytes": np.array([value], object)}, is_by_row))
    [encoded] = binary["predictions" if is_by_row else "outputs"]
    assert base64.b64decode(encoded["b64"], validate=True) == value


@pytest.mark.parametrize("length", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK])
@pytest.mark.parametrize("end", ["ü".encode(), b"\xf0\x9f", b"\xff", b"a"])
def test_the_end_of_a_long_string_is_read_to_its_last_byte(length, end):
    value = b"x" * (length - len(end)) + end
    assert json.loads(written({"text": np.array([value], object)}, False)) == {
        "outputs": [value.decode("utf-8", "replace")]
    }


@pytest.mark.parametrize("array", [np.arange(300_000.0).reshape(2, -1), np.full((2, 1, 50_000), b"ab", object)])
def test_a_row_of_many_values_comes_in_parts_and_is_the_same_json(array):
    chunks = JsonCodec("all", False, {}).write({"values": array}, 1 << 30)
    content = json.loads(b"".join(chunks))["outputs"]
    assert np.array_equal(np.array(content), array.astype(str) if array.dtype == object else array)
    assert max(map(len, chunks)) < 4 * CHUNK


@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_each_part_but_the_last_has_the_size_of_a_part(length):
    parts = encoded(["x"] * length, length)
    assert list(map(len, parts)) == [CHUNK] * (length // CHUNK) + [length % CHUNK]
    with pytest.raises(RequestError, match=f"more than {length} bytes") if length else contextlib.nullcontext():
        encoded(["\u00fc"] * length, length)
