"""All statistics of one set of translations, as text, as JSON and as a picture."""

import json
import time
import types

import pytest

from keras_transformer.inspection.samples import Sample
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.translation import Translation
from tests.support.sentences import OTHERS, REFERENCES, TRANSLATIONS
from train.scoring.breakdown import WordCounts, words_of
from train.scoring.card import TimedTranslations, translate_timed
from train.scoring.scorecard import LOWERCASE_NOTE, Evaluator

SAMPLES = [Sample("one two three", *pair) for pair in zip(REFERENCES, TRANSLATIONS, strict=True)]
COUNTED = WordCounts(words_of(REFERENCES), "the training text (4 pairs)")


@pytest.fixture(scope="module")
def cards():
    """The Scorecard of some translations, and the same compared with others."""
    evaluator = Evaluator("de", COUNTED)
    card = evaluator.scorecard(TimedTranslations(SAMPLES, seconds=2.0))
    return card, evaluator.compared(card, "runs/other", OTHERS, "bootstrap")


def test_a_translation_that_its_limit_ended_counts_as_cut():
    def translate(lines):
        return [Translation(line.upper(), -1.0, is_cut=line == "b") for line in lines]

    timed = translate_timed(
        types.SimpleNamespace(translate=translate, languages=NO_LANGUAGES), [("a", "x"), ("b", "y")]
    )
    assert timed.cut == 1 and timed.samples == [Sample("a", "x", "A"), Sample("b", "y", "B")]


def test_every_form_has_an_interval(cards):
    assert all(found.margin > 0 and "bs:1000" in found.signature for found in cards[0].scores.measured)


def test_the_others_are_broken_down_as_if_they_were_ours(cards):
    theirs = [sample._replace(translation=text) for sample, text in zip(SAMPLES, OTHERS, strict=True)]
    assert cards[1].comparison.breakdown == Evaluator("de", COUNTED).scorecard(TimedTranslations(theirs, 1.0)).breakdown
    assert cards[1].comparison.breakdown != cards[1].breakdown == cards[0].breakdown


def test_a_model_in_lower_case_is_broken_down_in_lower_case_and_scored_as_it_is():
    cased = [Sample("One two three", "Ein Hund läuft hier", "ein hund läuft hier")]
    card = Evaluator("de", WordCounts(words_of(["ein hund"]), "t"), is_lowercase=True).scorecard(
        TimedTranslations(cased, 1.0)
    )
    raw, lowered = card.scores.measured[:2]
    assert raw.value < 50 and lowered.value == pytest.approx(100) == card.breakdown.lengths[0].bleu.value
    assert [(found.occurrences, found.words, found.found) for found in card.breakdown.frequencies] == [
        ("0", 2, 100.0),
        ("1", 2, 100.0),
    ]
    assert card.breakdown.lengths[0].bleu.form == "raw text, lower-cased" and LOWERCASE_NOTE in card.lines()


def test_others_are_compared_with_a_model_in_lower_case_in_lower_case():
    ours = [Sample("One two three", "Ein Hund läuft hier", text) for text in ("ein hund läuft", "ein kind läuft hier")]
    evaluator = Evaluator("de", COUNTED, is_lowercase=True)
    theirs = ["Ein Hund läuft", "Ein Hund läuft hier"]
    comparison = evaluator.compared(
        evaluator.scorecard(TimedTranslations(ours, 1.0)), "other", theirs, "bootstrap"
    ).comparison
    assert [(found.line, found.theirs) for found in comparison.lines] == [(2, "ein hund läuft hier")]
    lowered = [Sample("One two three", "ein hund läuft hier", text.lower()) for text in theirs]
    assert comparison.breakdown == evaluator.break_down(lowered)


def test_json_holds_every_number(cards):
    found = json.loads(json.dumps(cards[1].as_json(), allow_nan=False))
    card = cards[1]
    assert [score["value"] for score in found["scores"]] == [score.value for score in card.scores.measured]
    assert [score["form"] for score in found["scores"]] == [score.form for score in card.scores.measured]
    assert (found["sentences"], found["exact"], found["seconds"]) == (4, 25.0, 2.0)
    assert found["sentences_per_second"] == 2.0
    assert [row["words"] for row in found["by_length"]] == ["up to 5"]
    assert found["by_length"][0]["bleu"]["value"] == card.breakdown.lengths[0].bleu.value
    assert found["by_frequency"]["bins"][0]["of_missed"] == card.breakdown.frequencies[0].of_missed
    against = found["against"]
    assert (against["name"], against["paired_test"]) == ("runs/other", "bootstrap")
    assert [row["p_value"] for row in against["differences"]] == [row.p_value for row in card.comparison.differences]
    assert [row["line"] for row in against["lines"]] == [3, 2, 4] and against["by_length"][0]["sentences"] == 4
    assert cards[0].as_json()["against"] is None


def test_an_undefined_bleu_is_neither_compared_nor_noted():
    evaluator = Evaluator("de", COUNTED)
    card = evaluator.scorecard(TimedTranslations([Sample("two", "zwei", "zwei"), Sample("one", "eins", "ein")], 1.0))
    card = evaluator.compared(card, "other", ["zwei", "eins"], "bootstrap")
    assert [found.name for found in card.comparison.differences] == ["chrF", "TER"]
    assert [line.split()[:2] for line in card.lines()[:3]] == [["BLEU", "n/a"]] * 3
    assert card.as_json()["scores"][0]["value"] is None


# the picture


class Slow:
    """A Translator that takes a moment, and is cut in every line but the first."""

    languages = NO_LANGUAGES

    def translate(self, lines):
        time.sleep(0.02)
        return [Translation(line, -1.0, is_cut=number > 0) for number, line in enumerate(lines)]


def test_a_text_is_timed_from_its_first_line_to_its_last_and_what_was_cut_is_counted():
    before = time.perf_counter()
    timed = translate_timed(Slow(), [("a", "x"), ("b", "y"), ("c", "z")])
    assert 0.02 <= timed.seconds <= time.perf_counter() - before
    assert timed.cut == 2 and [tuple(sample) for sample in timed.samples] == [
        ("a", "x", "a"),
        ("b", "y", "b"),
        ("c", "z", "c"),
    ]
