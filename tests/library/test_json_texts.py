"""JSON files of a program's texts: each text is translated where it stands, and nothing else changes."""

import io
import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.parts import Field
from tests.support.documents import capitals, through, translated

FILE = (
    '\ufeff{ "menu" : {"open": "open \\u00e9 file", "n": 1.50, "n": null,\r\n'
    '  "list": ["a", {"b": "say \\"hi\\"\\n"}, []]},'
    '\n\t"dogs": "{n, plural, one {a dog} other {# dogs}}", "": "" , "deep.name": true,\n'
    '  "@@locale": "en", "@dogs": {"description": "not this", "placeholders": {"n": {"type": "int"}}} }\n'
)


def test_texts_change_and_names_numbers_order_and_what_is_said_about_texts_stay():
    expected = FILE
    for before, after in (
        ("open \\u00e9 file", "OPEN \u00e9 FILE"),
        ('["a"', '["A"'),
        ('say \\"hi\\"', 'SAY \\"HI\\"'),
    ):
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert through("json", FILE, capitals) == expected  # and the message, whose names are no capitals, stays
    assert through("json", FILE, str) == FILE


WRAPPED = (
    "This is a line that has some sixty characters, or a few more,\n"
    "so that its sentence goes on in the next line of the text"
)


def test_a_line_break_inside_of_a_wrapped_sentence_stays_an_escape():
    [text] = json.loads(through("json", json.dumps({"a": WRAPPED}), capitals)).values()
    assert text == WRAPPED.upper()
    entry = json.dumps(WRAPPED)
    assert f'\n{json.dumps(WRAPPED[:62].upper())}\n"SO THAT' in through("po", f'msgid {entry}\nmsgstr ""\n', capitals)


@pytest.mark.parametrize(
    ("source", "translation", "is_taken"),
    [
        ("{n, plural, one {a dog} other {# dogs}}", "{n, plural, one {ein Hund} other {# Hunde}}", True),
        ("I see {n, plural, one {a dog} other {# dogs}}", "{n, plural, one {Da ist er} other {Da sind #}}", True),
        ("{n, plural, one {a dog} other {# dogs}}", "{n, Plural, ein {Hund} andere {# Hunde}}", False),
        ("{n, plural, one {a dog} other {# dogs}}", "{n, plural, one {ein Hund}}", False),
        ("{n, plural, one {a dog} other {# dogs}}", "Hunde", False),
        ("{n, plural, other {# dogs}}", "{n, plural, few {# Hunde} other {# Hunde}}", True),
        ("{n, plural, one {a dog}}", "{n, plural, one {ein Hund} other {# Hunde}}", False),
        ("{n, plural, other {# dogs}}", "{n, plural, viele {# Hunde} other {# Hunde}}", False),
        ("{{count}} dogs and {name}", "{name} und {{count}} Hunde", True),
        ("{{count}} dogs", "{{Zahl}} Hunde", False),
        ("%s has %d", "%d hat %s", False),
        ("a dog", "ein {0}", False),
    ],
)
def test_a_text_without_what_a_program_fills_in_stays_and_is_named(source, translation, is_taken, caplog):
    parts = FORMATS["json"](io.BytesIO(json.dumps({"a": source}).encode()), "en.json", ())
    [field] = [part for part in parts if isinstance(part, Field)]
    assert field.laid_out(translation) == (translation if is_taken else source)
    assert (f"en.json, a stays as it is: {translation!r}" in caplog.text) == (not is_taken)


def backwards(line):
    """The words of a line in the other order: whatever holds its place does so by itself."""
    return " ".join(reversed(line.split()))


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("no dogs | one dog | {n} dogs", "dogs no | dog one | dogs {n}"),
        ("{0} big dogs|{0} big dog", "dogs big {0}|dog big {0}"),
        ("{n}|my dog", "{n}|dog my"),
        ("{{ n | upper }} dogs", "{{ n | upper }} dogs"),  # one placeholder, which this engine loses: the text stays
        ('the file "a|b" is here', 'here is "a|b" file the'),
        ("|| a dog", "|| dog a"),
    ],
)
def test_each_form_of_a_text_of_vue_is_a_text(text, translation):
    assert json.loads(through("json", json.dumps({"a": text}), backwards)) == {"a": translation}


DOGS = {"dogs_one": "{{n}} dog", "dogs_other": "{{n}} dogs"}
ONE_DOG = DOGS | {"dogs_one": "a dog"}


@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [
        ("de", DOGS, {"dogs_one": "{{n}} DOG", "dogs_other": "{{n}} DOGS"}),
        ("pl", DOGS, {"dogs_one": "{{n}} DOG"} | dict.fromkeys(("dogs_few", "dogs_many", "dogs_other"), "{{n}} DOGS")),
        ("ru", ONE_DOG, dict.fromkeys(("dogs_one", "dogs_few", "dogs_many", "dogs_other"), "{{n}} DOGS")),  # 21 too
        ("ja", DOGS, {"dogs_one": "{{n}} DOG", "dogs_other": "{{n}} DOGS"}),
        (
            "de",
            {"dogs_zero": "no dog"} | DOGS,
            {"dogs_zero": "NO DOG", "dogs_one": "{{n}} DOG", "dogs_other": "{{n}} DOGS"},
        ),
        ("pl", {"a_other": "a dog"}, {"a_other": "A DOG"}),  # the name of a text
        ("pl", {"n_ordinal_one": "a", "n_ordinal_other": "b"}, {"n_ordinal_one": "A", "n_ordinal_other": "B"}),
        ("", DOGS, {"dogs_one": "{{n}} DOG", "dogs_other": "{{n}} DOGS"}),
    ],
)
def test_texts_by_number_get_the_keys_of_the_language(language, texts, expected, caplog):
    """As i18next has them; each object has its own."""
    upper = lambda text: text.replace("{{n}}", "\0").upper().replace("\0", "{{n}}")  # noqa: E731
    caplog.set_level("INFO", "keras_transformer")
    for indent in (None, 2):
        source = json.dumps({"page": texts, "dogs_one": "x"}, indent=indent)
        written = "".join(translated(FORMATS["json"](io.BytesIO(source.encode()), "en.json", (), language), upper))
        assert written == json.dumps({"page": expected, "dogs_one": "X"}, indent=indent)
    added = len(expected) - len(texts)
    assert (f"en.json: {added} keys added, for the numbers of {language}" in caplog.text) == bool(added)
    assert ("en.json: texts by number keep their keys: tell the language" in caplog.text) == (not language)


WHO = {"who": {"content": "$1", "example": "hi"}}
MESSAGES = {  # what is said about texts, as programs write it
    "Chrome": {"a": {"message": "hi $who$", "description": "hi", "placeholders": WHO}, "b": {"message": "hi"}},
    "FormatJS": {"a.b": {"defaultMessage": "hi", "description": "hi", "file": "hi.js", "start": 7}},
    "Transifex": {"a": {"string": "hi", "developer_comment": "hi"}},
    "Lokalise": {"a": {"translation": "hi", "notes": "hi"}},
    "VS Code": {"plain": "hi", "a/long comment": {"message": "hi", "comment": ["hi"]}},
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_said_about_a_text_is_none(kind):
    expected = {
        key: {name: text.replace("hi", "ho") if name == next(iter(each)) else text for name, text in each.items()}
        if isinstance(each, dict)
        else "ho"
        for key, each in MESSAGES[kind].items()
    }
    translation = through("json", json.dumps(MESSAGES[kind]), lambda line: line.replace("hi", "ho"))
    assert json.loads(translation) == expected


@pytest.mark.parametrize(
    "file",
    [
        {"a": {"message": "hi", "description": "text"}, "b": {"title": "ho"}},  # groups of texts, as i18next has them
        {"page": {"a": {"message": "hi", "description": "text"}}},
        {"message": "hi", "description": "text"},
    ],
)
def test_a_description_among_texts_is_a_text(file):
    assert json.loads(through("json", json.dumps(file), capitals)) == shouted(file)


@pytest.mark.parametrize("text", ["https://x.org/a", "jo@x.org", "app.title", "{{name}}", r"\r", "12"])
def test_addresses_names_and_what_has_no_words_stay(text, caplog):
    assert through("json", json.dumps({"a": text}), capitals) == json.dumps({"a": text})
    assert "file: 0 texts translated, 1 left" in caplog.text


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.integers()
    | st.text(string.ascii_lowercase + ' "\\é,:[]').filter(lambda text: not re.search(r"\\[nrtu]", text)),  # escapes
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_lowercase, max_size=3), inner, max_size=3)
    ),
)


def shouted(value):
    """An oracle: the values of a JSON object with the texts in capitals."""
    if isinstance(value, str):
        return value.upper()
    if isinstance(value, list):
        return [shouted(each) for each in value]
    return {name: shouted(each) for name, each in value.items()} if isinstance(value, dict) else value


@given(
    st.dictionaries(st.text(max_size=3).filter(lambda name: "@" not in name), VALUES, max_size=4),
    st.sampled_from([None, 1, "\t"]),
)
def test_json_reads_the_same_names_with_other_texts(content, indent):
    text = json.dumps(content, indent=indent, ensure_ascii=indent is None)
    parts = list(FORMATS["json"](io.BytesIO(text.encode()), "file", ()))
    written = [json.dumps(json.loads(f'"{p.passage.raw}"').upper())[1:-1] if isinstance(p, Field) else p for p in parts]
    assert json.loads("".join(written)) == shouted(content)


def test_logs_name_a_text_by_its_names():
    parts = FORMATS["json"](io.BytesIO(FILE.encode()), "en.json", ())
    where = [part.passage.where for part in parts if isinstance(part, Field)]
    assert where == [
        "en.json, menu.open",
        "en.json, menu.list",
        "en.json, menu.list.b",
        "en.json, dogs",
    ]
    [field] = [part for part in FORMATS["json"](io.BytesIO(b'{"": "a dog"}'), "en.json", ()) if isinstance(part, Field)]
    assert field.passage.where == "en.json, a text"
    parts = FORMATS["json"](io.BytesIO(json.dumps({"page": DOGS}).encode()), "en.json", (), "pl")
    named = [part.passage.where.removeprefix("en.json, page.") for part in parts if isinstance(part, Field)]
    assert named == ["dogs_one", "dogs_few", "dogs_many", "dogs_other"]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ('{"a": "b"}\n{"a": "c"}\n', "file is not JSON: Extra data.* If each line is an object, give --format jsonl"),
        ('{"a": "b"', "file is not JSON"),
        ("[" * 100_000, "file is not JSON"),
        ('["a"]', "file is JSON, but not an object with texts: it begins with '\\[\"a\"\\]'"),
        ('{"a": {"b": "\\ud83d"}}', r"file, a.b has \\ud83d, half of a character"),
        ('{"a": "a dog \\udc00."}', r"file, a has \\udc00, half of a character"),
        ("", "file is not JSON"),
    ],
)
def test_what_has_no_texts_is_refused(file, sentence):
    with pytest.raises(InputError, match=sentence):
        translated(FORMATS["json"](io.BytesIO(file.encode()), "file", ()), capitals)
