"""Words that translate each other, learned from pairs of sentences."""

import pytest

from train.data.word_pairs import WordPairs, alike

TEXT = [
    ("the dog runs", "der Hund läuft"),
    ("the dogs run", "die Hunde laufen"),
    ("the cat sleeps", "die Katze schläft"),
    ("the dog sleeps", "der Hund schläft"),
    ("the cat runs", "die Katze läuft"),
    ("the dogs sleep", "die Hunde schlafen"),
    ("the cats run", "die Katzen laufen"),
    ("the cats sleep", "die Katzen schlafen"),
] * 3


@pytest.fixture(scope="module")
def word_pairs():
    return WordPairs.learned(TEXT)


@pytest.mark.parametrize(
    "source, target, words",
    [
        ("The Dog sleeps.", "Der Hund schläft.", [("Dog", "Hund"), ("sleeps", "schläft")]),
        ("the cats run", "laufen die Katzen", [("cats", "Katzen"), ("run", "laufen")]),
        ("the dog, the dog", "der Hund", []),
        ("dog cat", "Hund Hund Katze", [("cat", "Katze")]),
        ("a bird", "ein Vogel", []),
        ("", "", []),
        ("the dog", "", []),
        ("", "der Hund", []),
    ],
)
def test_words_belong_together_if_each_is_the_best_for_the_other(word_pairs, source, target, words):
    found = word_pairs.of_pair(source, target)
    assert [
        (source[pair.start : pair.end], pair.target) for pair in found if pair.target not in ("der", "die")
    ] == words


@pytest.mark.parametrize(("times", "is_known"), [(2, False), (3, True)])
def test_words_are_learned_that_the_text_has_three_times(times, is_known):
    learned = WordPairs.learned([*TEXT, *[("a bird", "ein Vogel")] * times])
    assert bool(learned.of_pair("bird", "Vogel")) is is_known


def test_what_stands_before_a_place_is_no_word(word_pairs):
    assert [pair.start for pair in word_pairs.of_pair("dog cat", "Hund Katze", first=4)] == [4]


def test_a_term_is_the_most_frequent_form_that_translates_the_same_word():
    probabilities = {"dogs": {"Hunde": 0.5, "Hunden": 0.3, "Hund": 0.1, "Bund": 0.1}, "dog": {"Hund": 1.0}}
    word_pairs = WordPairs(probabilities, {"dogs": 5, "dog": 9}, {"Hunde": 3, "Hunden": 2, "Hund": 10, "Bund": 99})
    assert [pair.term for pair in word_pairs.of_pair("dogs", "Hunden")] == ["Hund"]


@pytest.mark.parametrize(("probability", "is_one"), [(0.1, True), (0.0999, False)])
def test_a_translation_has_a_tenth_of_the_probability(probability, is_one):
    word_pairs = WordPairs({"dog": {"Hund": probability}}, {"dog": 5}, {"Hund": 5})
    assert bool(word_pairs.of_pair("dog", "Hund")) is is_one


@pytest.mark.parametrize(("others", "is_one"), [(190, True), (191, False)])
def test_a_word_has_a_twentieth_of_what_is_expected_of_its_translation(others, is_one):
    """0.2 * 10 of "einem" come from "shirt", and 0.2 * 190 from "with", which are 40 together."""
    probabilities = {"shirt": {"einem": 0.2}, "with": {"einem": 0.2}}
    word_pairs = WordPairs(probabilities, {"shirt": 10, "with": others}, {"einem": 300})
    assert bool(word_pairs.of_pair("shirt", "einem")) is is_one


def test_a_word_that_stands_for_many_is_no_translation_of_one():
    probabilities = {"shirt": {"einem": 0.2}, "with": {"einem": 0.2}}
    counts = {"shirt": 10, "with": 1000}
    assert WordPairs(probabilities, counts, {"einem": 300}).of_pair("shirt", "einem") == []
    assert WordPairs(probabilities, counts | {"with": 10}, {"einem": 300}).of_pair("shirt", "einem")


@pytest.mark.parametrize(
    "first, second, are",
    [
        ("Hund", "Hunden", True),
        ("Mann", "Männer", True),
        ("braune", "braunes", True),
        ("läuft", "laufen", True),
        ("Mann", "Mannschaft", False),
        ("Hund", "Hand", False),
        ("essen", "Essen", False),
        ("Bund", "Hund", False),
    ],
)
def test_forms_of_a_word_begin_alike(first, second, are):
    assert alike(first, second) == alike(second, first) == are


def test_a_word_of_a_target_belongs_to_one_word_of_the_source():
    word_pairs = WordPairs({"big": {"groß": 0.9}, "large": {"groß": 0.5}}, {"big": 5, "large": 5}, {"groß": 9})
    assert [pair.start for pair in word_pairs.of_pair("large big", "groß")] == [6]
