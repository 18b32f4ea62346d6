"""Whole words in every script, and one text in several forms; tests/support/text_rules.py has what graphs find too."""

import sys
import unicodedata

import pytest

from keras_transformer.text.folding import folded
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.occurrences import places_of
from keras_transformer.text.required import has_phrase
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.text.words import ATTACHED, JOINERS, LETTER, TOKEN, is_edge

NFD = "NFD"


def test_marks_are_those_of_unicode_and_letters_have_them():
    for character in map(chr, range(sys.maxunicode + 1)):
        is_mark = unicodedata.category(character)[0] == "M" or character in JOINERS
        assert bool(ATTACHED.match(character)) == is_mark
        assert bool(LETTER.match(character)) == (is_mark or character.isalnum() or character == "_")


@pytest.mark.parametrize(
    "text",
    ["a b_1-c", "e\u0301a\u0301 \u0301x", "\u72d7dog\u72d7 a\u0e31b\u0e2b\u0e21\u0e32", "\u0e27\u0e34\u0e48\u0e07", ""],
)
def test_a_token_is_what_stands_between_two_edges(text):
    ends = {end for token in TOKEN.finditer(text) for end in token.span()}
    assert ends | {0, len(text)} == {place for place in range(len(text) + 1) if is_edge(text, place)}


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("\u0930\u093e\u092e", "\u0930\u093e\u092e\u093e\u092f\u0923"),  # Hindi: Ram in Ramayana
        ("\u0995\u09b2", "\u0995\u09b2\u09be"),  # Bengali
        ("\u0b95\u0bb2", "\u0b95\u0bb2\u0bc8"),  # Tamil
        ("\u0c2e\u0c30", "\u0c2e\u0c30\u0c3f"),  # Telugu
        ("\u0643\u062a\u0628", "\u0643\u064e\u062a\u064e\u0628\u064e"),  # Arabic with vowels
        ("\u062f\u0631\u0633", "\u062f\u0631\u0633\u0651\u0647"),  # a shadda
        ("\u05e9\u05dc", "\u05e9\u05dc\u05bc\u05b8\u05d4"),  # niqqud
        ("cafe", unicodedata.normalize(NFD, "caf\u00e9")),
        ("ban", unicodedata.normalize(NFD, "b\u00e1n h\u00e0ng")),
        ("\u0645\u06cc", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),  # Persian, with a joiner
        ("dog", "dogs"),
    ],
)
def test_a_part_of_a_word_is_no_word_in_any_script(part, text):
    assert not list(Glossary([Term(part, "x")]).matches(text))
    assert not list(places_of(part, text)) and not has_phrase(text, part)
    pytest.importorskip("regex")
    assert not list(Glossary([Term(part, "x", ("regex",))]).matches(text))
    for terms in (Glossary([Term(part, "x")]), Glossary([Term(part, "x", ("regex",))])):
        assert [match[:2] for match in terms.matches(f"{part} {text}")] == [(0, len(part))]


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        ("New York", "New\u00a0York"),
        ("New York", "New  York"),
        ("New York", "New\tYork"),
        ("New\u00a0York", "New York"),
        ("10 km", "10\u202fkm"),
        ("Donaudampf", "Donau\u00addampf"),
        ("Wi-Fi", "Wi\u2011Fi"),
        ("Firefox", "Fire\u200bfox"),
        ("don't", "don\u2019t"),
        ("caf\u00e9", unicodedata.normalize(NFD, "caf\u00e9")),
        (unicodedata.normalize(NFD, "caf\u00e9"), "caf\u00e9"),
        ("\ud55c\uad6d", unicodedata.normalize(NFD, "\ud55c\uad6d")),
        ("\ud55c\uad6d", "\ud558\u11ab\uad6d"),
        ("\u8c48\u5c71", "\uf900\u5c71"),
    ],
)
def test_one_text_in_another_form_is_found_where_it_is_written(phrase, written):
    text = f"in {written}, now"
    place = (3, 3 + len(written))
    for flags in ((), ("case",), ("part",)):
        assert [match[:2] for match in Glossary([Term(phrase, "x", flags)]).matches(text)] == [place]
    assert list(places_of(phrase, text)) == [place] and has_phrase(text, phrase)
    assert Glossary.of_words([phrase], "forbid", ()).found(text) == [written]


def test_a_phrase_is_there_whatever_tags_and_marks_of_a_file_divide_it():
    for text in ("ein <b>roter</b> Hund", "ein \ue000b 0\ue001roter\ue000/b 1\ue001 Hund"):
        assert has_phrase(text, "roter Hund") and not has_phrase(text, "oter Hund")


def test_every_character_that_nfc_writes_otherwise_is_folded():
    for character in map(chr, range(sys.maxunicode + 1)):
        if not 0xD800 <= ord(character) < 0xE000 and not unicodedata.is_normalized("NFC", character):
            form = unicodedata.normalize("NFC", character)
            assert folded(character).text == folded(form).text


@pytest.mark.parametrize("text", ["", "a", "a  b", "e\u0301\u00adx\u200b", "\u1112\u1161\u11ab!", " \u2019\u2011 "])
def test_a_folded_text_says_the_same_once_folded_and_its_places_are_those_of_the_text(text):
    form = folded(text)
    assert folded(form.text) == (form.text, None, None)
    places = [form.place(number, number + 1) for number in range(len(form.text))]
    assert all(folded(text[slice(*place)]).text == sign for place, sign in zip(places, form.text, strict=True))


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("\u72d7", "\u4e00\u53ea\u72d7\u5728\u8dd1\u3002"),
        ("\u72ac", "\u72ac\u304c\u8d70\u308b"),
        ("\u0e2b\u0e21\u0e32", "\u0e2b\u0e21\u0e32\u0e27\u0e34\u0e48\u0e07"),
    ],
)
def test_a_phrase_is_forbidden_anywhere_in_scripts_without_spaces(phrase, text):
    assert Glossary.of_words([phrase], "forbid", ()).found(text) == [phrase]


@pytest.mark.parametrize(
    "text", ["see https://dog.org/five", "write to dog@five.org", "5.5 or 1,5", "https://x.org/?q=five", "-5.25 %"]
)
@pytest.mark.parametrize("kinds", [(), KINDS])
def test_a_term_is_not_found_inside_of_a_url_an_address_or_a_number(text, kinds):
    terms = Glossary([Term("dog", "x"), Term("five", "x"), Term("5", "x"), Term("org", "x")])
    spans = Protection(kinds, terms).spans(text)
    assert "term" not in [span.kind for span in spans]


def test_a_term_that_is_a_whole_number_or_has_one_is_found():
    terms = Glossary([Term("5", "five"), Term("Plan 9", "X"), Term("dog.org", "y")])
    text = "5 dogs, Plan 9, dog.org"
    assert [span.target for span in Protection((), terms).spans(text)] == ["five", "X", "y"]
