"""The table of glossaries: which terms it takes, and when one came out right."""

from benchmarks.recipes.glossaries import Case, cases_of, coined, row_of
from train.data.word_pairs import WordPairs

WORD_PAIRS = WordPairs(
    {"dogs": {"Hunde": 0.6, "Hunden": 0.3}, "run": {"laufen": 0.9}, "with": {"mit": 0.9}},
    {"dogs": 5, "run": 5, "with": 5},
    {"Hunde": 9, "Hunden": 3, "laufen": 4, "mit": 5},
)
CASE = Case("with dogs", "mit Hunden", "dogs", "Hunden", "Hunde", "Hunde")


def test_the_least_expected_word_of_a_sentence_is_its_term_in_the_form_of_a_glossary():
    pairs = [("run with dogs", "laufen mit Hunden"), ("with", "mit"), ("run", "laufen")]
    assert cases_of(pairs, WORD_PAIRS, 5) == [
        Case("run with dogs", "laufen mit Hunden", "dogs", "Hunden", "Hunde", "Hunde"),
        Case("run", "laufen", "run", "laufen", "laufen", "laufen"),
    ]
    assert len(cases_of(pairs, WORD_PAIRS, 1)) == 1


def test_a_term_counts_as_in_the_reference_as_in_the_glossary_and_in_any_form():
    texts = ["mit Hunden", "mit Hunde", "mit Hund", "mit Katzen"]
    assert row_of("x", [CASE] * 4, texts)[:4] == ["x", "25.0", "25.0", "75.0"]
    assert row_of("x", [CASE] * 2, ["mit Hunden"] * 2)[1:4] == ["100.0", "0.0", "100.0"]


def test_a_coined_term_is_in_the_reference_too_and_the_word_beside_it_is_the_usual_one():
    case = coined(CASE)
    assert (case.reference, case.target, case.term) == ("mit Zorbhunde", "Zorbhunde", "Zorbhunde")
    texts = ["mit Zorbhunde", "mit Zorbhunde Hunden", "mit Hund", "mit Katzen"]
    assert row_of("x", [case] * 4, texts)[1:4] == ["50.0", "50.0", "50.0"]
