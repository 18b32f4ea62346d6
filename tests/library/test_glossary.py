"""Glossaries: which terms are found in a text, and which files are refused."""

import random
import sys

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.text import glossary as glossary_module
from keras_transformer.text.glossary import Glossary, Term, length_written_out


def found(text, *terms):
    return [(text[start:end], target) for start, end, target in Glossary(terms).matches(text)]


def test_a_term_is_a_whole_word_in_any_case_unless_its_flags_say_otherwise():
    assert found("Dogs and a DOG", Term("dog", "Hund")) == [("DOG", "Hund")]
    assert found("Dogs and a DOG", Term("dog", "Hund", ("part",))) == [("Dog", "Hund"), ("DOG", "Hund")]
    assert found("a Dog, a dog", Term("dog", "Hund", ("case",))) == [("dog", "Hund")]
    assert found("C++ and c++", Term("C++", "C++", ("case",))) == [("C++", "C++")]
    assert found("犬が好き", Term("犬", "dog", ("part",))) == [("犬", "dog")]


def test_the_longest_term_at_a_place_is_found():
    assert found("new york city", Term("new", "neu"), Term("New York", "NY"), Term("york", "Y"))[0] == (
        "new york",
        "NY",
    )


def test_letters_whose_lower_case_is_longer_keep_their_places():
    assert found("İİ Dog", Term("dog", "Hund")) == [("Dog", "Hund")]


def test_a_regular_expression_finds_whole_words_too_unless_it_may_be_a_part():
    assert found("dogs hotdog", Term("dogs?", "x", ("regex",))) == [("dogs", "x")]
    assert found("dogs hotdog", Term("dog", "x", ("regex", "part"))) == [("dog", "x"), ("dog", "x")]


def test_a_regular_expression_may_write_its_groups_into_the_target():
    assert found("Fig. 3, fig. 12", Term(r"fig\. (\d+)", r"Abb. \1", ("regex",))) == [
        ("Fig. 3", "Abb. 3"),
        ("fig. 12", "Abb. 12"),
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("dog\tHund\n\tKatze", r"terms.tsv, line 2 has an empty term: give both"),
        ("dog\t ", r"line 1 has an empty translation"),
        ("\n" * 999 + "dog", r"terms.tsv, line 1,000 has no tab: give a term, a tab and its translation"),
        ("a\tb\tcase\tx", r"line 1 has 4 columns: give a term"),
        ("dog\tHund\tCase", r"line 1 has the flag 'Case'; it may have case, part, regex"),
        ("dog\tHund\n\nDog\tKöter", r"line 3 translates 'Dog' as 'Köter', and terms.tsv, line 1 as 'Hund': keep one"),
        ("(\tx\tregex", r"line 1 has '\(', which is no regular expression: missing \)"),
        ("(a)\t\\2\tregex", r"line 1 has '\(a\)', which is no regular expression: no such group"),
        ("a" * 201 + "\tx\tregex", r"line 1 has a regular expression of 201 characters; at most 200"),
        ("a\t\\U99999999\tregex", r"line 1 has 'a', which is no regular expression: "),
        ("a{0,99999999999999999999}\tx\tregex", r"line 1 has .*, which is no regular expression: "),
        (
            "a{99999999999999999999}\tx\tregex",
            r"line 1 has .*, which repeats its signs 99,999,999,999,999,999,999 times",
        ),
        (
            "a(?:[b{9}]{101}){100}\tx\tregex",
            r"repeats its signs 10,301 times; at most 10,000 times are possible: write",
        ),
        ("a" * 1001 + "\tx", r"line 1 has a term of 1,001 characters; at most 1,000"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_sentence_with_its_line(text, message):
    with pytest.raises(InputError, match=message):
        Glossary.of_lines(text.split("\n"), "terms.tsv")


@pytest.mark.parametrize(
    ("pattern", "length"),
    [("", 0), ("ab", 2), ("a{3}b", 4), ("(ab){3}", 6), ("(a(b{2}c){3}){4}", 40), (r"\(\{9}", 4), ("[)]{2}[]{3}]", 3)],
)
def test_a_regular_expression_is_as_long_as_its_repetitions_written_out(pattern, length):
    assert length_written_out(pattern) == length


def test_comments_and_equal_lines_are_no_mistake():
    glossary = Glossary.of_lines(["# animals", "", "dog\tHund", "dog\tHund", "#1\tNr. 1"], "terms.tsv")
    assert [term.source for term in glossary.terms] == ["dog", "dog", "#1"]


def test_regular_expressions_are_bounded_in_number_and_together_in_time(monkeypatch):
    monkeypatch.setattr(glossary_module, "MOST_PATTERNS", 2)
    terms = [Term("a", "x", ("regex",)), Term("b", "x"), Term("c", "x", ("regex",)), Term("d", "x", ("regex",))]
    assert len(Glossary(terms[:3]).terms) == 3
    with pytest.raises(InputError, match="Term 4 is the regular expression number 3; at most 2 are possible"):
        Glossary(terms)
    monkeypatch.setattr(glossary_module, "LINE_SECONDS", 0.0)
    slow = Glossary([Term("(x+x+)+y", "z", ("regex", "part"))])
    with pytest.raises(InputError, match="took longer than 0.001 s"):
        list(slow.matches("x" * 3000))


def test_all_regular_expressions_together_have_so_many_signs():
    """Each may have 10,000, which take 3 MB: a list of 28 bytes per line would take a gigabyte."""
    long = [Term(f"a{{9990}}{letter}", "x", ("regex",)) for letter in "abc"]
    assert len(Glossary(long[:2]).terms) == 2
    with pytest.raises(InputError, match="up to Term 3 have 29,973 signs, with those that they repeat; at most 20,000"):
        Glossary(long)


def test_a_regular_expression_that_hangs_is_stopped():
    pattern = Term("(x+x+)+y", "z", ("regex", "part"))
    with pytest.raises(InputError, match=f"took longer than 0.1 s for the line {'x' * 60!r}: write it"):
        found("x" * 5000 + "z", pattern)


def test_of_ten_thousand_terms_each_is_found():
    numbers = random.Random(1).sample(range(10**6), 10_000)
    glossary = Glossary([Term(f"word{number}", str(number)) for number in numbers])
    text = " ".join(f"Word{number}," for number in numbers[:1000])
    assert [match.target for match in glossary.matches(text)] == [str(number) for number in numbers[:1000]]


def test_a_term_at_the_end_of_a_text_ends_there_although_a_longer_one_does_not_fit():
    terms = Glossary([Term("dog food", "Hundefutter"), Term("dog", "Hund")])
    assert [match[:3] for match in terms.matches("a dog")] == [(2, 5, "Hund")]


def test_words_have_their_own_flags_beside_those_of_all():
    words = Glossary.of_words(["Apple\tpart", "AB-\\d\tregex", "Pear"], "words.txt")
    assert [term.flags for term in words.terms] == [("case", "part"), ("case", "regex"), ("case",)]
    assert [match[:3] for match in words.matches("apples Apples Pears")] == [(7, 12, "Apple")]


@pytest.mark.parametrize(
    "terms", [[("dog", "Hund")], {"dog": "Hund"}, Term("dog", "Hund"), [Term(None, "Hund")], [Term("dog", None)]]
)
def test_what_is_no_term_is_refused(terms):
    with pytest.raises(TypeError, match="Term 1 must be a Term of two texts, such as Term"):
        Glossary(terms)


def test_a_term_may_have_as_many_characters_as_its_bound_and_is_not_blank():
    assert Glossary([Term("a" * 1000, "b" * 1000), Term("a" * 200, "b", ("regex",))]).terms
    for blank, what in (Term(" ", "x"), "term"), (Term("x", "\t"), "translation"):
        with pytest.raises(InputError, match=f"Term 1 has an empty {what}: give both"):
            Glossary([blank])


def test_a_regular_expression_matches_in_its_case_if_asked_to_and_never_nothing():
    assert found("Dog dog", Term("dog", "x", ("regex", "case"))) == [("dog", "x")]
    assert found("ab", Term("x*", "y", ("regex", "part"))) == []


def test_words_to_keep_are_as_written_if_their_case_counts_and_all_names_stay_with_their_terms():
    words = Glossary.of_words(["Apple\tcase", "Pear", "", "Fig"], "words.txt", ())
    assert [term.target for term in words.terms] == ["Apple", "pear", "fig"]
    assert words.names == ["words.txt, line 1", "words.txt, line 2", "words.txt, line 4"]
    with pytest.raises(
        InputError, match=r"more.txt, line 1 translates 'fig' as 'Feige', and words.txt, line 4 as 'fig'"
    ):
        words.joined(Glossary.of_lines(["fig\tFeige"], "more.txt"))
    with pytest.raises(InputError, match="words.txt, line 1,000 has the flag 'soft'; it may have case, part, regex"):
        Glossary.of_words([""] * 999 + ["a\tsoft"], "words.txt")


def test_spaces_around_the_columns_of_a_line_do_not_count():
    assert Glossary.of_lines([" dog \t Hund \t case  part "], "terms.tsv").terms == (
        Term("dog", "Hund", ("case", "part")),
    )


def test_without_the_package_of_regular_expressions_they_are_refused_with_their_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)  # its import fails
    with pytest.raises(InputError, match=r"^mine, line 2 is a regular expression, which needs the package regex: pip "):
        Glossary.of_lines(["a\tb", "c+\td\tregex"], "mine")
