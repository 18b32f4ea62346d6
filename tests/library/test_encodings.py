"""Documents in the encoding that they tell, and what they tell afterwards."""

import io
import re
from xml.etree import ElementTree

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats import FORMATS
from tests.support.documents import capitals, translated

HTML = '<html><head><meta charset="{}"></head><p>{}</p></html>'
OLD_HTML = "<meta content='text/html; charset={}' http-equiv=Content-Type><p>{}</p>"
XML = (
    "<?xml version='1.0' encoding='{}'?><xliff version='1.2'><file><body><trans-unit id='1'><source>{}</source>"
    "<target></target></trans-unit></body></file></xliff>"
)
PLACES = [("html", HTML), ("html", OLD_HTML), ("html", '<?xml version="1.0" encoding="{}"?><p>{}</p>'), ("xliff", XML)]
TEXTS = [
    ("windows-1252", "caf\xe9 \u201cone\u201d \u20ac"),
    ("ISO-8859-1", "caf\xe9"),
    ("iso-8859-2", "za\u017c\xf3\u0142\u0107"),
    ("koi8-r", "\u0441\u043e\u0431\u0430\u043a\u0430"),
    ("Shift_JIS", "\u72ac\u304c\u8d70\u308b"),
    ("gb2312", "\u72d7\u5728\u8dd1"),
    ("Big5", "\u72d7\u5728\u8dd1"),
    ("EUC-KR", "\uac1c\uac00"),
    ("iso-2022-jp", "\u72ac\u304c\u8d70\u308b"),
    ("us-ascii", "a dog"),
    ("utf-8", "caf\xe9"),
]


def through(name, content, of_line=str):
    return translated(FORMATS[name](io.BytesIO(content), "file", ()), of_line)


@pytest.mark.parametrize("name, file", PLACES)
@pytest.mark.parametrize("encoding, text", TEXTS)
def test_a_document_is_read_by_what_it_tells_and_then_tells_what_it_is(name, file, encoding, text):
    seen = []
    result = through(name, file.format(encoding, text).encode(encoding), lambda line: seen.append(line) or "\xe4\u4e00")
    assert seen == [text]
    expected = file.format("utf-8" if encoding == "utf-8" else "UTF-8", "\xe4\u4e00")
    if name == "html":
        assert result == expected
    else:
        assert re.match("<.xml.*?>", result)[0] == re.match("<.xml.*?>", expected)[0]
        assert ElementTree.fromstring(result.encode())[0][0][0][1].text == "\xe4\u4e00"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_tells_it_too(encoding):
    for name, file in PLACES:
        result = through(name, file.format(encoding, "A dog \u72ac").encode(encoding), capitals)
        assert "A DOG \u72ac" in result and "UTF-8" in result and encoding not in result


@pytest.mark.parametrize("encoding", ["iso-8859-1", "x-unknown", "utf-16", "base64"])
def test_a_declaration_that_was_left_behind_is_corrected(encoding):
    """As after `iconv`, which converts the bytes of a page alone."""
    assert through("html", HTML.format(encoding, "caf\xe9").encode()) == HTML.format("UTF-8", "caf\xe9")


@pytest.mark.parametrize(
    "encoding, content, sentence",
    [
        ("x-unknown", b"\xe9", "file says that it is x-unknown: convert it to UTF-8 first"),
        ("base64", b"\xe9", "file says that it is base64: convert it to UTF-8 first"),
        ("windows-1252", b"\x81", r"file says that it is windows-1252, but its byte \d+ is not: convert"),
        ("utf-8", b"\n\xe9\n", "file, line 2 is not UTF-8: its byte 1 is 0xe9.*iconv -f WINDOWS-1252"),
    ],
)
def test_bytes_that_are_not_what_is_told_are_one_sentence(encoding, content, sentence):
    with pytest.raises(InputError, match=sentence):
        through("html", HTML.format(encoding, "X").encode().replace(b"X", content))


def test_a_declaration_in_the_text_is_text():
    page = HTML.format("utf-8", "Write &lt;meta charset='latin1'>." + "x" * 2000 + '<meta charset="latin1">')
    assert through("html", page.encode()) == page
