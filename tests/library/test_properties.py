"""Resource bundles of Java: values change where they stand, in the encoding that the file has."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.parts import Field, Notation, bytes_of
from keras_transformer.text.formats.properties import ESCAPE, meaning_of, written, written_in_ascii
from tests.support.documents import capitals, texts_of, through, translated

FILE = (
    "# a = note\n  ! another: one\n\nopen=open it\n  close : a long text \\\n     goes on \\\n\there\\u0020\n"
    "key\\ with\\=signs=value = here\nspaced value\nempty=\nclass = java.lang.String\nurl=https://a.b/c\n\\\nlast=a\\tb"
)


def from_bytes(content, of_line=str):
    return bytes_of(translated(FORMATS["properties"](io.BytesIO(content), "file", ()), of_line))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_an_engine_that_changes_nothing_gives_the_file_back(ending):
    file = FILE.replace("\n", ending)
    assert through("properties", file, str) == file


def test_values_change_and_keys_comments_names_and_addresses_stay():
    expected = FILE
    for text in ("open it", "a long text", "goes on", "here\\u", "value = here", " value", "a\\tb"):
        expected = expected.replace(text, text.upper().replace("\\U", "\\u").replace("\\T", "\\t"))
    assert through("properties", FILE, capitals) == expected
    assert texts_of("properties", FILE) == ["open it", "a long text goes on here", "value = here", "value", "a\tb"]


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_a_file_keeps_its_encoding(encoding):
    content = "# \xe9\na=caf\xe9\nb=x\n".encode(encoding)
    assert from_bytes(content) == content
    output = from_bytes(content, lambda line: line if line == "x" else "\xe4\U0001f389")
    letters = "\xe4\U0001f389".encode() if encoding == "utf-8" else rb"\u00e4\ud83c\udf89"
    assert output == "# \xe9\na=".encode(encoding) + letters + b"\nb=x\n"
    assert from_bytes(b"a=x", lambda line: "\xe4") == rb"a=\u00e4"  # what every version of Java reads


@pytest.mark.parametrize("write", [written, written_in_ascii])
@given(st.text())
def test_escapes_give_the_text_back(write, text):
    raw = write(text)
    assert Notation(ESCAPE, meaning_of, write).text(raw) == text and not re.search(r"[\n\r]", raw)
    assert raw.isascii() or write is written


@pytest.mark.parametrize(
    ("file", "translation", "value"),
    [
        ("a=open {0}", "l'image {0}", "l''image {0}"),
        ("a=open it", "l'image", "l'image"),
        ("a=don''t", "l'image", "l''image"),
        ("b=can't {0}\na=open {0}", "l'image {0}", "l'image {0}"),  # no MessageFormat would show it
        ("b=can''t {0}\na=open {0}", "l'image {0}", "l''image {0}"),
        ("a={1} of {0}", "{0} von {1}", "{0} von {1}"),
        ("a={0} dogs", "Hunde", "{0} dogs"),
        ("a=the '{x}' of {0}", "das von {0}", "das '{x}' von {0}"),
        ("a=&Open", "Datei", "&Datei"),
        ("a=R&D", "F", "F"),
    ],
)
def test_apostrophes_and_marks_of_keys_are_as_the_program_reads_them(file, translation, value):
    output = through("properties", file, lambda line: line if "can" in line else translation)
    assert output.split("a=", 1)[1] == value


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a=b\nc=d\na = e\n", "file, line 3 has 'a' of line 1 again: remove one of them"),
        (b"x=y\na=\\u12\n", "file, line 2 has \\u without four hexadecimal digits"),
        ("a=b".encode("utf-16"), "file is not ISO-8859-1 or UTF-8, as .properties are: convert it first"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_translated(content, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        next(iter(FORMATS["properties"](io.BytesIO(content), "file", ())))


def test_the_log_says_what_is_left(caplog):
    through("properties", FILE, str)
    [message] = [record.getMessage() for record in caplog.records]
    assert message == "file: 5 texts translated, 3 left: 2 names or addresses, 1 without words"
    assert not any(isinstance(part, Field) for part in FORMATS["properties"](io.BytesIO(b"# a\n"), "file", ()))
