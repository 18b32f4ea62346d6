"""Apple's .strings: values change where they stand, and nothing else does."""

import io
import plistlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.parts import Field, bytes_of
from keras_transformer.text.formats.strings import NOTATION
from tests.support.documents import capitals, texts_of, through

FILE = r"""/* A note; "no" = "value"; */
// "another" = "one";
"menu.open" = "open \"it\"\n\U00e9 %@"; bare_key="x";
"same as its value";
"a = b" /* why */ = "two
lines";"none" = "%d";
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_engine_that_changes_nothing_gives_the_file_back(ending, mark):
    file = mark + FILE.replace("\n", ending)
    assert through("strings", file, str) == file


def test_values_change_and_keys_and_comments_stay():
    expected = FILE.replace(r"open \"it\"", r"OPEN \"IT\"").replace('="x"', '="X"').replace("two\nlines", "TWO\\nLINES")
    assert through("strings", FILE, capitals).replace("TWO\nLINES", "TWO\\nLINES") == expected
    assert texts_of("strings", FILE) == ['open "it"', "\xe9 %@", "x", "two", "lines"]


@pytest.mark.parametrize("encoding, mark", [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
def test_utf_16_stays_utf_16(encoding, mark):
    content = mark + '/* \xe9 */\n"a" = "a dog \u72ac";\n'.encode(encoding)
    parts = list(FORMATS["strings"](io.BytesIO(content), "file", ()))
    identity, other = (
        b"".join(
            bytes_of(part.laid_out(each or part.passage.raw) if isinstance(part, Field) else part) for part in parts
        )
        for each in ("", '\xe4\U0001f389\\"')
    )
    assert identity == content
    assert other == mark + '/* \xe9 */\n"a" = "\xe4\U0001f389\\"";\n'.encode(encoding)


LIST = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
\t<!-- a note -->
\t<key>menu.open</key>
\t<string>open &amp; close %@</string>
\t<key>lines</key><string>one &lt;b&gt;big&lt;/b&gt; dog

a cat</string>
\t<key>none</key><string/>
\t<key>number</key><integer>3</integer>
\t<key>forms</key><dict><key>one</key><string>not this</string></dict>
</dict>
</plist>
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_property_list_has_the_same_keys_and_all_but_texts_as_before(ending, caplog):
    file = LIST.replace("\n", ending)
    assert through("strings", file, str) == file
    new = through("strings", file, lambda line: capitals(line).replace("<B>", "<b>").replace("</B>", "</b>"))
    assert new.lower() == file.lower()
    before, after = plistlib.loads(file.encode()), plistlib.loads(new.encode())
    texts = {"menu.open": "OPEN & CLOSE %@", "lines": "ONE <b>BIG</b> DOG\n\nA CAT"}
    assert after == before | texts
    assert "file: 2 texts translated, 3 left" in caplog.text


def test_a_property_list_in_utf_16_becomes_utf_8_and_says_so():
    content = LIST.replace("UTF-8", "UTF-16").encode("utf-16")
    parts = FORMATS["strings"](io.BytesIO(content), "file", ())
    assert "".join(part.passage.raw if isinstance(part, Field) else part for part in parts) == LIST


@given(st.text())
def test_escapes_give_the_text_back(text):
    assert NOTATION.text(NOTATION.written(text)) == text and not re.search(
        r'[\n\r]|(?<!\\)(?:\\\\)*"', NOTATION.written(text)
    )


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("%@ has %d", "%d hat %@", "%@ has %d"),
        ("%1$@ has %2$d", "%2$d hat %1$@", "%2$d hat %1$@"),
        ("a", "\U0001f389", "\U0001f389"),
    ],
)
def test_what_is_filled_in_comes_through_or_the_text_stays_and_is_named(source, translation, written, caplog):
    assert through("strings", f'"k" = "{source}";\n', lambda line: translation) == f'"k" = "{written}";\n'
    assert ("file, line 1 stays as it is" in caplog.text) == (written != translation)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ('"a" = "b";\n"a" = "c";\n', "file, line 2 has 'a' of line 1 again: remove one of them"),
        ('"a" = "b"\n"c" = "d";\n', "file, line 2 has '\"c\"' where ';' is due"),
        ('"a" "b";\n', "file, line 1 has '\"b\"' where '=' is due"),
        ('\n= "b";\n', "file, line 2 has '=' where a key such as"),
        ('"a" = "b', "file, line 1 is '\"b', where a value such as"),
        ('"a" = "b"', "file, line 1 ends where ';' is due"),
        ('{"a": 1}', "file, line 1 is '{\"a\": 1}', where a key"),
        (
            "<plist><dict><key>a</key><string>b</string>\n<key>a</key><string>c</string></dict></plist>",
            "file, line 2 has 'a' of line 1 again",
        ),
        ("<plist><dict>", "file, line 1 is not XML"),
        ("<xliff/>", "file is XML, but no property list: its first element is <xliff>"),
        ("bplist00", "file is a binary property list: make XML of it first, with plutil -convert xml1"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_translated(file, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        next(iter(FORMATS["strings"](io.BytesIO(file.encode()), "file", ())))


def test_utf_16_that_is_cut_is_named():
    with pytest.raises(InputError, match="file says that it is utf-16-le"):
        list(FORMATS["strings"](io.BytesIO(b'\xff\xfe"\0a'), "file", ()))
