"""Tables about the text of software: which kind a text is, which terms its menus have, what comes through."""

import pytest
import sacrebleu

from benchmarks.quality.software import (
    Pair,
    menu_terms,
    read,
    scores_by_kind_and_length,
    survival_table,
    tables,
    terms_table,
    with_terms,
)
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.pieces.translation import Translation

MENU = "usr/lib/libreoffice/program/resource/sc.mo"
PAIRS = [
    Pair("Press %1 to open the file.", "Drücken Sie %1, um die Datei zu öffnen.", "help/swriter/01.html"),
    Pair("Open the file", "Datei öffnen", MENU),
    Pair("The file 3 of 7 could not be opened.", "Die Datei 3 von 7 konnte nicht geöffnet werden.", MENU),
]


@pytest.mark.parametrize(("pair", "kind"), list(zip(PAIRS, ["help", "menus", "messages"], strict=True)))
def test_a_text_is_of_help_of_a_menu_or_a_message(pair, kind):
    assert pair.kind == kind


@pytest.mark.parametrize(
    ("words", "length"), [(1, "1 to 5 words"), (5, "1 to 5 words"), (6, "6 to 10 words"), (41, "more than 40 words")]
)
def test_lengths_are_words_of_the_source(words, length):
    assert Pair(" ".join(["file"] * words), "", MENU).length == length


def test_a_split_is_read_line_by_line(tmp_path):
    (tmp_path / "test.tsv").write_text("".join("\t".join(pair) + "\n" for pair in PAIRS), encoding="utf-8")
    assert read(tmp_path / "test.tsv") == PAIRS


def test_terms_are_short_texts_of_catalogues_that_have_one_translation():
    pairs = [
        Pair("Cell Range:", "Zellbereich:", MENU),
        Pair("cell range", "Zellbereich", MENU),
        Pair("Insert", "Einfügen", MENU),
        Pair("insert", "Eingabe", MENU),  # another translation
        Pair("Row", "Zeile", MENU),  # too short to be found for certain
        Pair("Line %1", "Linie %1", MENU),  # not of words alone
        Pair("Paragraph", "Absatz", "help/swriter/01.html"),
    ]
    assert menu_terms(pairs) == {"cell range": "Zellbereich"}


def test_pairs_with_terms_are_those_whose_reference_has_all_of_them():
    terms = {"file": "Datei", "open": "öffnen"}
    some, wanted = with_terms(PAIRS, terms)
    assert some == PAIRS and wanted == [["öffnen", "Datei"], ["öffnen", "Datei"], ["Datei"]]
    assert with_terms(PAIRS, {"file": "Akte"}) == ([], [])


def test_scores_of_a_kind_are_of_its_pairs_alone():
    right = [PAIRS[0].reference, "falsch", "auch ganz falsch"]
    lines = list(scores_by_kind_and_length(PAIRS, right, "de"))
    names = ["text", "---", "all", "help", "menus", "messages", "1 to 5 words", "6 to 10 words"]
    assert [line.split("|")[1].strip() for line in lines[:-1]] == names
    assert next(line for line in lines if line.startswith("| help")).startswith("| help | 1 | 100.00")
    assert next(line for line in lines if line.startswith("| messages")).startswith("| messages | 1 | 0.00")
    bleu = sacrebleu.corpus_bleu(right, [[pair.reference for pair in PAIRS]]).score
    assert any(line.startswith(f"| all | 3 | {bleu:.2f} ±") for line in lines)


def test_survival_counts_spans_beside_those_of_the_references():
    ways = {"as they are": ["Drücken Sie.", "Datei", "Datei 3 von 8"], "protected": [pair.reference for pair in PAIRS]}
    lines = list(survival_table(PAIRS, ways, "de"))
    assert "| numbers (2) | 50.0 | 100.0 | 100.0 |" in lines and "| placeholders (1) | 0.0 | 100.0 | 100.0 |" in lines
    assert lines[-1].startswith("| BLEU | ") and lines[-1].endswith("| 100.00 | |")


def test_terms_that_are_there_are_counted_by_way_of_asking():
    wanted = [["öffnen", "Datei"], ["öffnen", "Datei"], ["Datei"]]
    ways = {"none": ["Akte öffnen", "Datei öffnen", "Akte"], "required": [pair.reference for pair in PAIRS]}
    lines = list(terms_table(PAIRS, wanted, ways, "de"))
    assert lines[0] == "| of 5 terms in 3 pairs | none | required |"
    assert lines[2] == "| per cent there | 60.0 | 100.0 |" and "| 100.00 ± " in lines[3]


MANY = Languages({"en": ""}, {"de": "<2de>", "ko": "<2ko>"}, source_first="target")


@pytest.mark.parametrize(("languages", "told"), [(MANY, ["ko"]), (NO_LANGUAGES, [])])
def test_a_model_of_several_languages_is_told_that_of_the_pairs(languages, told):
    seen = []

    class Engine:
        def translate(self, lines, target_language=(), **asked):
            seen.append((len(lines), [*target_language]))
            return [Translation(line, -1.0) for line in lines]

    Engine.languages = languages
    assert list(tables(Engine(), PAIRS, {"file": "Datei"}, "en-ko"))
    assert len(seen) == 4 and all(codes == told * count for count, codes in seen)
