"""Whether terms of a document are translated in one way, and pronouns as in the reference."""

import numpy as np
import pytest

from benchmarks.quality.consistency import pronoun_of, pronouns, terms_of
from benchmarks.quality.context import app, interval
from tests.support.commands import assert_one_sentence, invoke

NUMBERS = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(200)]
FILLER = [(f"word{letters}", f"wort{letters}") for letters in NUMBERS]
# "window" is Fenster in one document, and both Fenster and Scheibe in the other
PAIRS = [
    ("open the window", "öffnen sie das fenster"),
    ("a window closes", "ein fenster schließt"),
    ("the window is red", "das fenster ist rot"),
    ("one window more", "ein fenster mehr"),
    ("this window breaks", "diese scheibe bricht"),
    *FILLER,
]
DOCUMENTS = ["one"] * 3 + ["two"] * 2 + ["three"] * 200
REFERENCES = [reference for _, reference in PAIRS]


def test_a_term_is_one_that_the_references_of_a_document_translate_in_one_way():
    terms = terms_of(PAIRS, DOCUMENTS)
    assert [(each.term, each.sentences, each.reference) for each in terms.terms] == [
        (("window",), (0, 1, 2), ("fenster",))
    ]
    assert terms.same(REFERENCES).tolist() == terms.as_reference(REFERENCES).tolist() == [1.0]


def test_another_word_each_time_is_one_way_and_two_words_are_two():
    terms = terms_of(PAIRS, DOCUMENTS)
    other = [text.replace("fenster", "luke") for text in REFERENCES]
    assert (terms.same(other).tolist(), terms.as_reference(other).tolist()) == ([1.0], [0.0])
    mixed = [REFERENCES[0], REFERENCES[1].replace("fenster", "luke"), *REFERENCES[2:]]
    assert (terms.same(mixed).tolist(), terms.as_reference(mixed).tolist()) == ([0.0], [0.0])


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("Er ist rot.", "It is red.", "er"),
        ("Dann ist sie rot.", "Then it is red.", "sie"),
        ("Sie ist rot.", "It is red.", "sie"),
        ("Sie sehen es.", "You see it.", "es"),
        ("Wenn Sie ihn sehen, ist er rot.", "If you see it, it is red.", "er"),
        ("Es ist rot, wenn er kommt.", "It is red when it comes.", ""),
        ("Das Fenster ist rot.", "It is red.", ""),
    ],
)
def test_a_german_text_has_one_pronoun_or_none(text, source, expected):
    assert pronoun_of(text, source) == expected


def test_pronouns_are_of_subjects_in_later_sentences_of_a_document():
    pairs = [
        ("It is red.", "Er ist rot."),  # the first one
        ("It is blue.", "Sie ist blau."),
        ("If you see it, it opens.", "Wenn man ihn sieht, öffnet er sich."),
        ("Open it.", "Öffnen Sie es."),  # no subject
        ("It is possible to open a file.", "Es ist möglich, eine Datei zu öffnen."),  # stands for nothing
        ("It falls.", "Der Stein fällt."),  # another word
    ]
    assert pronouns(pairs, ["one"] * 6) == [1, 2]


def test_an_interval_holds_the_mean_and_is_narrower_for_more_values():
    few, many = interval([0.0, 1.0] * 10), interval([0.0, 1.0] * 1000)
    assert few[0] == many[0] == 50.0
    assert few[1] < many[1] < 50.0 < many[2] < few[2]
    assert interval(np.ones(5)) == (100.0, 100.0, 100.0)


def test_a_file_without_documents_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n", encoding="utf-8")
    assert_one_sentence(invoke(app, tmp_path / "run", "--data", tmp_path / "none.tsv"), "none.tsv")
