"""Branches of ICU messages for the numbers of another language, read by ICU."""

import json
import logging

import pytest

from keras_transformer.text.formats.plurals import FORMS, categories_of
from keras_transformer.text.messages import Sentence, is_sentence, joined, messages_in, parts_of_line, pieces_of
from tests.support.documents import capitals, through

NUMBERS = [*range(130), 1000, 1_000_000]
LANGUAGES = sorted(FORMS)
WITHOUT_NUMBER = "{n, plural, one {a dog} other {# dogs}}"
WITH_NUMBER = "{n, plural, =0 {no dog}\n  one{# dog}\n  other{# dogs}\n}"


def in_capitals(line):
    """A line with its texts in capitals, those of the branches of a message too."""
    pieces = pieces_of(line) or [Sentence(line)]
    return joined(pieces, [capitals(piece) for piece in pieces if is_sentence(piece)])


def in_language(message, language, of_line=str):
    """A message of a JSON file of i18next, ARB and so on, translated by `of_line`."""
    return json.loads(through("json", json.dumps({"a": message}), of_line, target_language=language))["a"]


def selectors_of(text):
    return [[branch.selector for branch in message.branches] for message in messages_in(parts_of_line(text))]


def formatted(message, language):
    """What ICU writes for each number."""
    icu = pytest.importorskip("icu4py.messageformat")
    pattern = icu.MessageFormat(message, language)
    return [pattern.format({"n": number}) for number in NUMBERS]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_has_a_branch_for_each_category_that_icu_chooses(language):
    categories = "".join(f"{each} {{{each}}} " for each in ("zero", "one", "two", "few", "many"))
    chosen = set(formatted(f"{{n, plural, {categories} other {{other}}}}", language))
    [selectors] = selectors_of(in_language("{n, plural, one {# dog} other {# dogs}}", language))
    assert chosen <= {*selectors} and len({*selectors}) == len(selectors)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_without_a_number_is_for_one_thing_alone(language):
    texts = dict(zip(NUMBERS, formatted(in_language(WITHOUT_NUMBER, language), language), strict=True))
    of_one = {1} if "one" in categories_of(language) else set()
    assert {number for number, text in texts.items() if text == "a dog"} == of_one
    assert all(text.endswith(" dogs") for text in texts.values() if text != "a dog")


@pytest.mark.parametrize("language", ["en", "de", "ja", "zh-Hans", "tr"])
def test_a_message_that_has_what_a_language_needs_stays_as_it_is(language):
    for message in (WITH_NUMBER, WITHOUT_NUMBER, f"I have {WITHOUT_NUMBER}."):
        assert selectors_of(in_language(message, language)) == selectors_of(message)


@pytest.mark.parametrize(
    ("message", "russian"),
    [
        (  # the branches of the inner one alone are by number
            "{g, select, a {{n, plural, one {a dog} other {# dogs}}} other {They}}",
            "{g, select, a {{n, plural, =1 {a dog} one {# dogs} few {# dogs} many {# dogs} other {# dogs}}} "
            "other {They}}",
        ),
        (
            "{n, plural, offset:1 =1 {You} one {You and a dog} other {You and # dogs}}",
            "{n, plural, offset:1 =1 {You} one {You and # dogs} few {You and # dogs} many {You and # dogs} "
            "other {You and # dogs}}",
        ),
        (  # whose one was for no number
            "{n, plural, =1 {Rex} one {a dog} other {# dogs}}",
            "{n, plural, =1 {Rex} one {# dogs} few {# dogs} many {# dogs} other {# dogs}}",
        ),
        (  # =1 does not count the offset
            "{n, plural, offset:1 one {a dog} other {# dogs}}",
            "{n, plural, offset:1  one {# dogs} few {# dogs} many {# dogs} other {# dogs}}",
        ),
        (  # as Flutter has it, which takes =0, =1 and =2 for zero, one and two
            "{n, plural, =1{1 dog} other{{n} dogs}}",
            "{n, plural, =1{1 dog} few{{n} dogs} many{{n} dogs} other{{n} dogs}}",
        ),
        ("{n, selectordinal, one {#st} other {#th}}",) * 2,
        ("{n, plural, one {# dog} few {# d} few {# e} other {# dogs}}",) * 2,  # none, as few is there twice
        ("{n, plural, one {# dog}}",) * 2,  # none, as other is missing
    ],
)
def test_messages_in_russian(message, russian):
    assert in_language(message, "ru") == russian


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_said_of_none_one_and_two_is_said_of_these_alone_if_the_language_can_say_it(language):
    """ICU asks a branch for a number before that of its category, which may be for 10 (Latvian) or 102 (Slovenian)."""
    said = {"zero": "none", "one": "a dog", "two": "a pair"}
    branches = " ".join(f"{category} {{{text}}}" for category, text in said.items())
    message = in_language(f"{{n, plural, {branches} other {{# dogs}}}}", language)
    texts = dict(zip(NUMBERS, formatted(message, language), strict=True))
    for number, (category, text) in enumerate(said.items()):
        has_it = category in categories_of(language)
        assert {each for each, found in texts.items() if found == text} == ({number} if has_it else set()), text


def test_each_branch_is_translated_and_one_that_a_translation_lacks_is_noticed(caplog):
    polish = in_language(f"I see {WITH_NUMBER}.", "pl", in_capitals)
    assert " ".join(polish.split()) == (
        "{n, plural, =0 {I SEE NO DOG.} one{I SEE # DOG.} few{I SEE # DOGS.} many{I SEE # DOGS.} other{I SEE # DOGS.} }"
    )
    assert in_language(WITHOUT_NUMBER, "pl", lambda line: "{m, plural, other {#}}") == WITHOUT_NUMBER
    assert "stays as it is" in caplog.text


def test_what_stands_in_a_branch_is_in_each_copy_as_the_file_writes_it():
    escaped = json.dumps({"a": '{n, plural, other {say "é" \n#}}'})
    assert through("json", escaped, str, target_language="pl").count('say \\"\\u00e9\\" \\n#') == len(
        categories_of("pl")
    )
    unit = '<x id="n"/><x id="b"/> minutes &lt; <x id="m"/>'
    xliff = (
        '<xliff version="1.2"><file source-language="en" target-language="pl"><body><trans-unit id="1"><source>'
        f"{{n, plural, one {{a minute}} other {{{unit}}}}}</source></trans-unit></body></file></xliff>"
    )
    target = through("xliff", xliff, in_capitals, target_language="pl").partition("<target")[2]
    assert target.count(unit.replace("minutes", "MINUTES")) == len({*categories_of("pl")} - {"one"})


FILES = {
    "po": 'msgid "{n, plural, other {# x}}"\nmsgstr ""\n',
    "strings": '"a" = "{n, plural, other {# x}}";\n',
    "properties": "a={n, plural, other {# x}}\n",
    "jsonl": '{"text": "{n, plural, other {# x}}"}\n',
    "tsv": "text\n{n, plural, other {# x}}\n",
    "android": '<resources><string name="a">{n, plural, other {# x}}</string></resources>',
}


@pytest.mark.parametrize("name", FILES)
def test_messages_of_every_format_of_texts_of_programs(name, caplog):
    caplog.set_level(logging.INFO)
    polish = through(name, FILES[name], in_capitals, target_language="pl")
    assert all(f" {each} {{# X}}" in polish for each in categories_of("pl")), polish
    assert "file: messages with new branches for the numbers of pl: 1" in caplog.messages
    assert " few {" not in through(name, FILES[name], in_capitals)
    told = "file: messages with numbers keep their branches: tell the language with --target-language"
    assert caplog.messages.count(told) == 1
