"""Qt's .ts: messages without a translation get one, which stays unfinished, and nothing else changes."""

import io
import re

import pytest

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.text.formats.parts import Field
from keras_transformer.text.formats.qt import ts_parts
from tests.support.documents import translator

FILE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="LANGUAGE">
<context>
    <name>Window</name>
    <message>
        <location filename="a.cpp" line="7"/>
        <source>&amp;Open &quot;it&quot;</source>
        <translatorcomment>a note</translatorcomment>
        <translation type="unfinished"></translation>
    </message>
    <message><source>done</source><translation>fertig</translation></message>
    <message><source>doubted</source><translation type="unfinished">Zweifel</translation></message>
    <message><source>old</source><translation type="vanished">alt</translation></message>
    <message><source>older</source><translation type="obsolete"></translation></message>
    <message><source>%1 of &lt;b&gt;%2&lt;/b&gt; dogs</source><translation type="unfinished"/></message>
    <message numerus="yes">
        <source>%n dog(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message><source>%1</source><translation type="unfinished"></translation></message>
</context>
</TS>
"""
GERMAN = FILE.replace("LANGUAGE", "de_DE")


TWICE = """
    <message><source>done</source><oldsource>ended</oldsource><translation type="unfinished"></translation></message>"""


def loud(text):
    return re.sub(r"%n|[a-z]", lambda found: found[0] if found[0] == "%n" else found[0].upper(), text)


def written(file, of_line=loud, **options):
    parts = list(ts_parts(io.BytesIO(file.encode()), "a.ts", (), **options))
    documents = iter(translator(of_line).documents(part.passage for part in parts if isinstance(part, Field)))
    return "".join(part.laid_out(next(documents).text) if isinstance(part, Field) else part for part in parts)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_messages_without_a_translation_get_one_and_nothing_else_changes(ending):
    empty = '<translation type="unfinished"></translation>'
    expected = GERMAN.replace(empty, empty.replace("><", ">&amp;OPEN &quot;IT&quot;<"), 1)
    of_tags = '<translation type="unfinished">%1 OF &lt;b&gt;%2&lt;/b&gt; DOGS</translation>'
    expected = expected.replace('<translation type="unfinished"/>', of_tags)
    expected = expected.replace("<numerusform></numerusform>", "<numerusform>%n DOG(S)</numerusform>")
    assert written(GERMAN.replace("\n", ending)) == expected.replace("\n", ending)
    assert written(expected) == expected  # and what is translated stays


def test_a_message_that_lupdate_left_twice_is_named_and_translated(caplog):
    done = "<message><source>done</source><translation>fertig</translation></message>"
    file = GERMAN.replace(done, done + TWICE)
    assert written(file) == written(GERMAN).replace(done, done + TWICE.replace("></trans", ">DONE</trans"))
    assert "a.ts, line 13 has 'done Window' of line 12 again: both are translated" in caplog.text


@pytest.mark.parametrize(
    ("options", "anew"),
    [
        ({}, set()),
        ({"states": ["unfinished"]}, {"Zweifel"}),
        ({"states": ["finished"]}, {"fertig"}),
        ({"everything": True}, {"Zweifel", "fertig"}),
    ],
)
def test_states_say_what_is_translated_anew_and_the_log_what_is_left(options, anew, caplog):
    output = written(GERMAN, **options)
    assert {text for text in ("fertig", "Zweifel") if text not in output} == anew
    assert ">alt<" in output and ('<translation type="unfinished">DONE<' in output) == ("fertig" in anew)
    message = caplog.records[-1].getMessage()
    assert message.startswith(f"a.ts: {3 + len(anew)} messages translated, {5 - len(anew)} left: ")
    assert "1 vanished" in message and "1 obsolete" in message and "1 without words" in message
    with pytest.raises(UserError, match="--state new is no state of messages of Qt: give unfinished or finished"):
        written(GERMAN, states=["new"])


@pytest.mark.parametrize(
    ("language", "count"),
    [("de", 2), ("ja_JP", 1), ("ru", 3), ("lv", 3), ("ar", 6), ("sl", 4), ("fr", 2), ("cy", 5)],
)
def test_forms_are_as_many_as_the_language_has(language, count):
    assert written(FILE.replace("LANGUAGE", language)).count("<numerusform>%n DOG(S)</numerusform>") == count
    without = FILE.replace(' language="LANGUAGE"', "")
    assert written(without, target_language=language).count("<numerusform>%n DOG(S)") == count
    assert written(without).count("<numerusform>%n DOG(S)") == 2  # as many as there are


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("%1 of %2", "%2 von %1", "%2 von %1"),
        ("%1 of %2", "%1 von %3", ""),
        ("%L1 dogs", "Hunde", ""),
        ("slot[:serial]", "Platz", "Platz"),
        ("Sa&amp;ve", "Sichern", "&amp;Sichern"),
        ("it is", "l'un", "l&apos;un"),
    ],
)
def test_a_translation_without_what_is_filled_in_is_left_out_and_named(source, translation, expected, caplog):
    file = f"<TS><context><name>a</name><message><source>{source}</source><translation/></message></context></TS>"
    assert f'<translation type="unfinished">{expected}</translation>' in written(file, lambda line: translation)
    assert ("a.ts, line 1 stays as it was" in caplog.text) == (not expected)


@pytest.mark.parametrize(
    ("file", "options", "sentence"),
    [
        ("<TS>\n<context>", {}, "a.ts, line 2 is not XML"),
        ("const a: number = 1;", {}, "a.ts, line 1 is not XML"),
        ("<xliff/>", {}, "a.ts is XML, but no file of translations of Qt: its first element is <xliff>"),
        (GERMAN, {"target_language": "fr"}, "a.ts tells language='de_DE', and the translation is into fr: correct one"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_translated(file, options, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        next(iter(ts_parts(io.BytesIO(file.encode()), "a.ts", (), **options)))
