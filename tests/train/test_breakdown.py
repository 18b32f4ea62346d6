"""Where a score is won and lost: bins of lengths and of frequencies, counted by hand."""

import collections

import pytest

from keras_transformer.inspection.bleu import RAW_BLEU, raw_bleu, score, tokenised_bleu
from keras_transformer.inspection.samples import Sample
from train.data.corpus import WHOLE_TEXT, Split
from train.scoring import breakdown
from train.scoring.breakdown import (
    Breakdown,
    WordCounts,
    break_down,
    by_frequency,
    by_length,
    words_in_training,
    words_of,
)
from train.scoring.tables import Table

SAMPLES = [
    Sample("one two", "eins zwei", "eins zwei"),
    Sample("a b c d e f", "das ist ein sehr langer Satz", "das ist ein langer Satz"),
    Sample("a b c d e", "das ist ein Satz", "ein Satz das"),
]
COUNTS = collections.Counter({"das": 1_000, "ist": 999, "ein": 9, "Satz": 1, "zwei": 4})


# lengths


def test_bins_are_of_the_source_in_words_and_empty_ones_are_left_out():
    found = by_length([SAMPLES[1], SAMPLES[0], SAMPLES[2]])  # the shortest come first, wherever they are
    assert [(row.name, row.sentences) for row in found] == [("up to 5", 2), ("6 to 10", 1)]
    (last,) = by_length([Sample("w " * 61, "x", "y")])
    assert last.name == "61 and more"


def test_a_bin_has_the_scores_of_its_sentences_alone():
    short, long = by_length(SAMPLES)
    expected = score([SAMPLES[1].translation], [SAMPLES[1].reference])
    assert (long.bleu.value, long.chrf.value) == (expected.bleu, expected.chrf)
    assert 0 < long.bleu.value < 100
    assert long.length_ratio == 5 / 6 and short.length_ratio == 5 / 6
    assert by_length(SAMPLES[:1])[0].bleu.undefined


def test_the_form_of_bleu_is_the_given_one():
    shouted = [sample._replace(translation=sample.translation.upper()) for sample in SAMPLES[1:2]]
    raw, tokenised = (by_length(shouted, measure)[0].bleu for measure in (RAW_BLEU, tokenised_bleu("de")))
    assert raw.value < 1 < tokenised.value and tokenised.form == "tokenised, lower-cased"


def test_no_words_at_all_are_no_error():
    (row,) = by_length([Sample("", "", "")])
    assert row.name == "up to 5" and row.length_ratio is None


# parts


def test_a_part_has_the_scores_of_its_sentences_alone_and_one_part_is_none():
    found = break_down(SAMPLES, WordCounts(COUNTS, "t"), parts=["en to de", "fr to de", "en to de"])
    of_english, of_french = found.parts
    assert (of_english.name, of_english.sentences, of_french.name, of_french.sentences) == (
        "en to de",
        2,
        "fr to de",
        1,
    )
    expected = score([SAMPLES[0].translation, SAMPLES[2].translation], [SAMPLES[0].reference, SAMPLES[2].reference])
    assert (of_english.bleu.value, of_english.chrf.value) == (expected.bleu, expected.chrf)
    assert [bin_["part"] for bin_ in found.as_json()["by_part"]] == ["en to de", "fr to de"]
    first = found.tables(found)[0]
    assert first.title.startswith("By part of the text, BLEU of raw text") and first.heads[-2:] == (
        "other BLEU",
        "other chrF",
    )
    for parts in ((), ["en to de"] * 3):
        of_one = break_down(SAMPLES, WordCounts(COUNTS, "t"), parts=parts)
        assert not of_one.parts and "by_part" not in of_one.as_json() and len(of_one.tables()) == 2


# frequencies


def test_words_are_found_as_often_as_the_reference_has_them():
    """Bins: langer, sehr, eins never; Satz once; zwei 4 times; ein 9; ist 999; das 1,000 times."""
    rows = {row.occurrences: row for row in by_frequency(SAMPLES, COUNTS)}
    assert list(rows) == ["0", "1", "2 to 4", "5 to 9", "100 to 999", "1,000 and more"]
    assert [row.words for row in rows.values()] == [3, 2, 1, 2, 2, 2]
    never, often = rows["0"], rows["100 to 999"]
    assert (never.found, never.right, never.of_missed) == pytest.approx((200 / 3, 100, 50))  # "sehr" is missed
    assert (often.found, often.right, often.of_missed) == (50, 100, 50)  # one of two times "ist"
    assert never.f1 == pytest.approx(2 * 100 * (200 / 3) / (100 + 200 / 3))
    assert rows["1"].found == rows["1"].right == rows["1"].f1 == 100 and rows["1"].of_missed == 0


def test_a_word_too_many_is_not_right():
    (row,) = by_frequency([Sample("", "a", "a a b")], collections.Counter({"a": 1, "b": 1}))
    assert (row.words, row.found, row.right, row.f1) == (1, 100, pytest.approx(100 / 3), 50)


def test_words_are_those_of_bleu_on_raw_text():
    assert words_of(["Das Haus, das rote Haus."]) == {"Das": 1, "das": 1, "Haus": 2, "rote": 1, ",": 1, ".": 1}


# the training text


def split_of(*targets):
    return Split("data.train", lambda: iter([("source", target) for target in targets]))


def counted_in(splits, language=""):
    return words_in_training(splits, language, list, WHOLE_TEXT)


def test_the_target_side_of_every_shard_is_counted():
    counted = counted_in([split_of("a b", "a"), split_of("a c")])
    assert counted == (collections.Counter({"a": 3, "b": 1, "c": 1}), "the training text (3 pairs)", "")


def test_words_of_a_language_without_spaces_are_its_characters():
    counted = counted_in([split_of("我喜欢 TensorFlow。")], "zh")
    assert counted.counts == collections.Counter(["我", "喜", "欢", "TensorFlow", "。"])
    (found,) = break_down([Sample("x", "我喜", "喜我")], counted, raw_bleu("zh")).frequencies
    assert (found.words, found.found) == (2, 100.0)


def test_a_long_training_text_is_counted_from_its_beginning_and_named_so(monkeypatch):
    monkeypatch.setattr(breakdown, "MOST_PAIRS", 2)
    counts, text, _ = counted_in([split_of("a b", "a", "a", "z")])
    assert counts == {"a": 2, "b": 1} and text == "the first 2 pairs of the training text"
    monkeypatch.setattr(breakdown, "MOST_PAIRS", 4)
    assert counted_in([split_of("a b", "a", "a", "z")]).text == "the training text (4 pairs)"


# tables


def test_an_undefined_score_of_a_bin_is_not_a_number():
    found = break_down(SAMPLES[:1], WordCounts(COUNTS, "t"))
    assert found.tables()[0].rows[0][2] == "n/a"
    assert found.tables()[0].title.endswith("raw text (n/a: no reference has four tokens)")
    assert found.as_json()["by_length"][0]["bleu"]["value"] is None
    assert found.as_json()["by_frequency"]["text"] == "t" and isinstance(found, Breakdown)


TABLE = Table("Title", ("words", "n"), [("up to 5", "1,000"), ("6", "2")])


def test_columns_are_aligned_numbers_to_the_right():
    assert TABLE.lines() == ["Title:", "  words        n", "  up to 5  1,000", "  6            2"]
