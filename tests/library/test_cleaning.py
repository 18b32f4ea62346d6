"""Rules that drop sentence pairs: what each drops and keeps, and what holds for all of them."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.text import cleaning
from keras_transformer.text.cleaning import RULES, Cleaner, detector, known_scripts, numbers_of, script_of
from tests.support.processes import python

PAIRS = {  # by rule: its value, a pair that it drops, a pair that it keeps
    "identical": (True, ("Good morning", "good morning "), ("Hotel", "Hotels")),
    "length_ratio": (2.0, ("a" * 31, "b" * 10), ("a" * 30, "b" * 10)),  # (31 + 10) / (10 + 10) > 2
    "longest_word": (5, ("abcdef", "a"), ("abcde abcde", "a")),
    "markup": (True, ('<a href="x">Hi</a>', "Hallo"), ("<b>Good morning, everybody</b>", "Guten Morgen")),
    "source_scripts": (["LATIN"], ("Привет, Bob", "Hallo, Bob"), ("Hello 你好", "Привет")),
    "target_scripts": (["CYRILLIC"], ("Привет", "Hello"), ("Hello", "Привет, Bob")),
    "numbers": (True, ("In 1996", "Im Jahr 1969"), ("1,000.50 and 7", "7 und 1.000,50")),
}


@pytest.mark.parametrize("key", PAIRS)
def test_a_rule_drops_what_it_is_for_and_keeps_the_rest(key):
    value, dropped, kept = PAIRS[key]
    cleaner = Cleaner({key: value})
    assert cleaner.reason_to_drop(*dropped) == RULES[key].reason
    assert cleaner.reason_to_drop(*kept) is None


def test_every_rule_is_tried_above():
    assert set(PAIRS) | {"languages"} == set(RULES)


@pytest.mark.parametrize(
    "source, target, is_dropped",
    [
        (
            "The Security Council decides to remain actively seized of the matter.",
            "安全理事会决定继续积极处理此案。",
            False,
        ),
        ("He was born in a small village in the north of the country.", "他出生在该国北部的一个小村庄。", False),
        ("Please turn off the lights when you leave the room.", "部屋を出るときは電気を消してください。", False),
        ("Please turn off the lights when you leave the room.", "방을 나갈 때 불을 꺼 주세요.", False),
        ("Yes, of course, but only if everybody else who is here agrees with it.", "好。", True),
        ("Yes.", "安全理事会决定继续积极处理此案。安全理事会决定继续积极处理此案。", True),
    ],
)
def test_a_character_of_a_script_of_words_says_more_than_a_letter(source, target, is_dropped):
    for pair in ((source, target), (target, source)):
        assert (Cleaner({"length_ratio": 2.5}).reason_to_drop(*pair) is not None) == is_dropped


def test_a_pair_is_dropped_from_its_second_time_on():
    cleaner = Cleaner({"duplicates": True})
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("a", "b"), ("b", "a")]
    assert [cleaner.reason_to_drop(*pair) for pair in pairs] == [None, None, "repeated", "repeated", None]


def test_a_pair_that_a_rule_drops_is_not_the_first_of_its_repetitions():
    cleaner = Cleaner({"identical": True, "duplicates": True})
    assert [cleaner.reason_to_drop("a", "a") for _ in range(2)] == ["identical"] * 2


def test_no_rule_looks_at_a_tag():
    assert Cleaner({"identical": True}, ["<2de>"]).reason_to_drop("<2de>Hotel", "Hotel") == "identical"
    assert Cleaner({"markup": True}, ["<2de>"]).reason_to_drop("<2de>Hi", "Na") is None
    assert Cleaner({"markup": True}).reason_to_drop("<2de>Hi", "Na") == "mostly markup"


@given(st.text(), st.text())
def test_without_rules_nothing_is_dropped_and_with_all_any_text_is_answered(source, target):
    assert Cleaner({}).reason_to_drop(source, target) is None
    everything = {key: value for key, (value, *_) in PAIRS.items()} | {"duplicates": True}
    reason = Cleaner(everything).reason_to_drop(source, target)
    assert reason in {None, *(rule.reason for rule in RULES.values())}


@given(st.text(), st.text())
def test_rules_about_both_sides_do_not_care_which_is_which(source, target):
    for key in ("identical", "length_ratio", "longest_word", "markup", "numbers"):
        cleaner = Cleaner({key: PAIRS[key][0]})
        assert cleaner.reason_to_drop(source, target) == cleaner.reason_to_drop(target, source)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_number_is_its_digits_however_they_are_written(number):
    groups = f"{number:,}"
    forms = (str(number), groups, groups.replace(",", "."), groups.replace(",", "\u202f"))
    assert {tuple(numbers_of(f"about {form}, or so.")) for form in forms} == {(str(number),)}


def test_a_number_counts_as_often_as_it_is_there():
    cleaner = Cleaner({"numbers": True})
    assert cleaner.reason_to_drop("2 by 2 metres", "2 Meter") == RULES["numbers"].reason
    assert cleaner.reason_to_drop("2 by 2 metres", "2 mal 2 Meter") is None


def test_digits_of_any_script_are_digits():
    assert numbers_of("٤٢ and ४२") == ["42", "42"]


def test_a_script_is_the_first_word_of_a_letters_name():
    assert [script_of(letter) for letter in "aé你あж1 ."] == (
        ["LATIN", "LATIN", "CJK", "HIRAGANA", "CYRILLIC", None, None, None]
    )
    assert {"LATIN", "GREEK", "ARABIC", "HANGUL"} <= known_scripts()


def test_a_sentence_of_another_language_is_dropped():
    pytest.importorskip("py3langid", reason="needs the extra clean")
    cleaner = Cleaner({"languages": ("en", "de")})
    english, german = "The children are playing in the garden.", "Die Kinder spielen im Garten hinter dem Haus."
    assert cleaner.reason_to_drop(english, german) is None
    assert cleaner.reason_to_drop(english, english) == RULES["languages"].reason
    assert cleaner.reason_to_drop(german, german) == RULES["languages"].reason
    assert cleaner.reason_to_drop("Ok.", "Ok.") is None  # too short to tell
    assert "en" in detector().labels


@pytest.mark.nightly
def test_the_rules_need_neither_tensorflow_nor_the_training():
    script = "import sys, keras_transformer.text.cleaning; print({'tensorflow', 'keras', 'train'} & set(sys.modules))"
    assert python("-c", script).stdout == "set()\n"


@pytest.mark.parametrize(
    "key, value, pair, is_dropped",
    [
        ("longest_word", 3, ("aaa\u5b57bbb", "a"), False),  # a character of a script without spaces is a word
        ("longest_word", 3, ("a", "aaaa\u5b57"), True),
        ("source_scripts", ["LATIN"], ("ab \u03b1\u03b2", "a"), False),  # half of them
        ("source_scripts", ["LATIN"], ("ab \u03b1\u03b2\u03b3", "a"), True),
        ("markup", True, ("<b>abc", "a"), False),  # half of it
        ("markup", True, ("a", "<b>ab"), True),
        ("markup", True, ("< b  c >abcd", "a"), False),  # spaces do not count
        ("markup", True, ("<b>a.b@c.de</b>(f-g)", "a"), True),  # an address within a word
        ("markup", True, ("a.b@c.de abcdefgh", "a"), False),
        ("markup", True, ("a", "a.b@c.de abcdefg"), True),
        ("markup", True, ("a@b c@.de @d.ef", "a"), False),  # no addresses
    ],
)
def test_a_bound_is_what_its_rule_says(key, value, pair, is_dropped):
    assert (Cleaner({key: value}).reason_to_drop(*pair) is not None) == is_dropped


@pytest.mark.parametrize("part", ["a", "a@", "a.", "a-", "1.", "<", "&a", "{", "%(", "http://"])
def test_a_line_without_spaces_is_read_as_fast_as_any(part):
    """A search that began anew at each character would take minutes for such a line, as of a file in Base64."""
    cleaner = Cleaner({key: value for key, (value, *_) in PAIRS.items() if key != "longest_word"})
    short, long = (cleaner.reason_to_drop(part * times, part * (times + 1)) for times in (10, 50_000))
    assert long == short


@pytest.mark.parametrize(
    "letters, language, probability, is_other",
    [(20, "en", 0.9, True), (19, "en", 0.99, False), (20, "en", 0.89, False), (20, "de", 0.99, False)],
)
def test_another_language_is_believed_from_so_many_letters_and_so_surely_on(
    letters, language, probability, is_other, monkeypatch
):
    class Detector:
        def classify(self, text):
            return language, probability

    monkeypatch.setattr(cleaning, "detector", Detector)
    reason = Cleaner({"languages": ("de", "de")}).reason_to_drop("a 1" * letters, "")
    assert reason == ("in another language" if is_other else None)


def test_without_its_package_no_language_can_be_detected(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cleaning, "detector", None)
    assert not cleaning.can_detect(["en", "de"])
