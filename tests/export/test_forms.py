"""Forms are read as RFC 7578 and browsers write them, in a time that grows with their length."""

import time

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from export.server.errors import RequestError
from export.server.forms import File, fields_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20)
NAMES = st.text("abcxyz_", min_size=1, max_size=8)


def read(kind, body, query=""):
    return fields_of(Headers({"content-type": kind}), query, body)


def written(**how):
    """A body, and its type, as requests writes them."""
    prepared = requests.Request("POST", "http://localhost", **how).prepare()
    body = prepared.body or b""
    return prepared.headers["content-type"], body.encode() if isinstance(body, str) else body


@given(st.dictionaries(NAMES, TEXTS, min_size=1), st.booleans())
def test_what_a_client_writes_is_read(values, in_parts):
    how = {"files": {name: (None, value) for name, value in values.items()}} if in_parts else {"data": values}
    assert read(*written(**how)).values == values


@given(st.binary(max_size=200), st.sampled_from(["a.txt", "ä ö.html", 'a"b.srt', "x;y.vtt"]))
def test_a_file_comes_through_byte_for_byte(content, name):
    fields = read(*written(files={"file": (name, content)}, data={"q": "x"}))
    assert fields.values == {"q": "x"} and fields.files["file"].content == content
    assert fields.files["file"].name.rpartition(".")[2] == name.rpartition(".")[2]


def test_a_name_that_comes_twice_is_a_list_and_a_line_break_is_one():
    assert read("application/x-www-form-urlencoded", b"q=a%0D%0Ab&q=c&q=&p=").values == {
        "q": ["a\nb", "c", ""],
        "p": "",
    }


def test_the_query_counts_unless_the_form_says_it():
    fields = read("application/x-www-form-urlencoded; charset=UTF-8", b"q=a", "q=b&source=en")
    assert fields.values == {"q": "a", "source": "en"}


@pytest.mark.parametrize("kind", ["application/json", "application/problem+json", "Application/JSON; charset=utf-8"])
def test_json_is_json_however_its_type_is_written(kind):
    assert read(kind, b'{"q": ["a"]}').values == {"q": ["a"]}


def test_a_boundary_may_have_quotation_marks_and_what_stands_before_the_first_is_left():
    body = b'before\r\n--a b\r\nX: y\r\nContent-Disposition: form-data; name="q"\r\n\r\nx\r\n--a b--\r\nafter'
    assert read('multipart/form-data; boundary="a b"', body).values == {"q": "x"}


def test_a_file_without_a_name_is_one():
    body = b'--x\r\ncontent-disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--x--'
    assert read("multipart/form-data; boundary=x", body).files == {"file": File("", b"")}


PARTS, FORM = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
HEAD = b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\n'
UNITS = {
    "boundaries": (PARTS, lambda size: b"--x\r\n" * (size // 5)),
    "almost boundaries": (PARTS, lambda size: HEAD + b"\r\n--" * (size // 4) + b"\r\n--x--"),
    "line breaks": (PARTS, lambda size: b"\r\n" * (size // 2)),
    "parameters": (PARTS, lambda size: b"--x\r\ncontent-disposition: a" + b';a="' * (size // 4) + b"\r\n\r\n\r\n--x--"),
    "headers": (PARTS, lambda size: b"--x\r\n" + b"a:b\r\n" * (size // 5) + b"\r\n\r\n--x--"),
    "type": ("multipart/form-data" + ';a="' * 15_000, lambda size: b""),
    "fields": (FORM, lambda size: b"&" * size),
    "values": (FORM, lambda size: b"q=" + b"%" * size),
    "escapes": (FORM, lambda size: b"q=" + b"%0D%0A" * (size // 6)),
    "names": (FORM, lambda size: b"q=&" * 1000 + b"a" * size),
}


@pytest.mark.parametrize("unit", UNITS)
def test_a_form_costs_what_its_length_does(unit):
    kind, body_of = UNITS[unit]

    def seconds(size):
        begun = time.process_time()
        try:
            read(kind, body_of(size))
        except RequestError:  # that is an answer too
            pass
        return time.process_time() - begun

    seconds(1 << 10)
    assert any(seconds(1 << 21) < 10 * seconds(1 << 19) + 0.05 for _ in range(4))
    assert min(seconds(1 << 21) for _ in range(2)) < 2
