"""Paired tests: sacreBLEU's own p-values, equal translations, and the lines that differ most."""

import json

import pytest
import sacrebleu

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import on_one_line
from keras_transformer.inspection.bleu import CHRF, LOWER_BLEU, RAW_BLEU, tokenised_bleu
from tests.support.processes import python
from tests.support.sentences import OTHERS, REFERENCES, TRANSLATIONS
from train.scoring import significance
from train.scoring.significance import LineDifference, check_paired_test, differences, largest_differences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option", "metrics"),
    [
        ("bootstrap", "--paired-bs", {"bleu": RAW_BLEU}),  # the command fails to write what it finds for chrF as JSON
        ("randomization", "--paired-ar", {"bleu": RAW_BLEU, "chrf": CHRF}),
    ],
)
def test_scores_p_values_and_signatures_are_those_of_the_sacrebleu_command(tmp_path, name, option, metrics):
    files = {"references": REFERENCES, "theirs": OTHERS, "ours": TRANSLATIONS}
    for file, lines in files.items():
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines * 5), encoding="utf-8")
    paths = [tmp_path / file for file in files]
    options = ["-m", *metrics, option, "--format", "json", "--width", 4]
    theirs, ours = json.loads(python("-m", "sacrebleu", paths[0], "-i", *paths[1:], *options).stdout)
    found = differences(TRANSLATIONS * 5, OTHERS * 5, REFERENCES * 5, metrics.values(), name)
    for difference, key in zip(found, [key for key in ours if key != "system"], strict=True):
        assert difference.ours == pytest.approx(ours[key]["score"], abs=1e-4)
        assert difference.theirs == pytest.approx(theirs[key]["score"], abs=1e-4)
        assert difference.p_value == pytest.approx(ours[key]["p_value"], abs=1e-4)
        assert "seed:12345" in difference.signature and (":1000|" in difference.signature) == (name == "bootstrap")


@pytest.mark.slow
@pytest.mark.parametrize(("differing", "least"), [(1, 1.0), (2, 0.5), (3, 0.25)])
@pytest.mark.parametrize("name", ["bootstrap", "randomization"])
def test_few_sentences_that_differ_are_never_significant(name, differing, least):
    better = [*REFERENCES[:differing], *TRANSLATIONS[2:3] * 40]
    worse = [*["nichts"] * differing, *TRANSLATIONS[2:3] * 40]
    references = [*REFERENCES[:differing], *REFERENCES[2:3] * 40]
    (found,) = differences(better, worse, references, [CHRF], name)
    assert found.ours > found.theirs and found.p_value >= least
    assert found.p_value == pytest.approx(least, abs=0.02) or name == "bootstrap"


@pytest.mark.parametrize("name", ["bootstrap", "randomization"])
def test_one_sentence_is_never_significant(name):
    """All of its resamples are the same, and none has a larger difference."""
    (found,) = differences(REFERENCES[:1], ["nichts"], REFERENCES[:1], [CHRF], name)
    assert found.ours > found.theirs and found.p_value == 1


@pytest.fixture
def fewer(monkeypatch):
    """A test that draws a tenth as often."""
    kind = significance.PAIRED_TESTS["randomization"]._replace(resamples=1_000)
    monkeypatch.setitem(significance.PAIRED_TESTS, "randomization", kind)


def test_a_hair_between_two_systems_that_win_equally_often_is_no_difference(fewer):
    """Which randomization, the default, calls one; a one-sided test would say 0.4."""
    worse = [line.replace("e", "x") for line in REFERENCES]
    ours, theirs = [*REFERENCES * 5, *worse * 5], [*worse * 5, *REFERENCES * 5]
    (found,) = differences([*ours, "ab"], [*theirs, "ac"], [*REFERENCES * 10, "abc"], [CHRF])
    assert found.ours != found.theirs and found.p_value > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bootstrap", "randomization"])
def test_equal_translations_differ_by_0_with_a_p_value_of_1(name):
    shouted = [line.upper() for line in TRANSLATIONS]
    raw, lower = differences(shouted, TRANSLATIONS, REFERENCES, [RAW_BLEU, LOWER_BLEU], name)
    assert raw.ours < raw.theirs and raw.p_value < 1
    assert lower.ours == lower.theirs and lower.p_value == 1


def test_the_other_direction_has_the_opposite_difference_and_the_same_p_value(fewer):
    there, back = (
        differences(*pair, REFERENCES, [RAW_BLEU])[0] for pair in ((TRANSLATIONS, OTHERS), (OTHERS, TRANSLATIONS))
    )
    assert (there.ours, there.theirs, there.p_value) == (back.theirs, back.ours, back.p_value)


def test_a_clear_difference_is_significant_and_a_small_one_is_not(fewer):
    good, bad = REFERENCES * 10, ["etwas ganz anderes steht hier jetzt"] * 40
    (clear,) = differences(good, bad, REFERENCES * 10, [CHRF])
    (small,) = differences(good, [*good[:-1], good[-1][:-1]], REFERENCES * 10, [CHRF])
    assert clear.p_value < 0.01 and small.p_value > 0.05


def test_each_measure_gets_its_own_form_of_the_text(fewer):
    raw, tokenised = differences(TRANSLATIONS, OTHERS, REFERENCES, [RAW_BLEU, tokenised_bleu("de")])
    assert "tok:13a" in raw.signature and "tok:none" in tokenised.signature
    assert (raw.name, raw.form, tokenised.form) == ("BLEU", "raw text", "tokenised, lower-cased")
    assert raw.ours != tokenised.ours


def test_an_unknown_test_is_one_sentence():
    check_paired_test("bootstrap")
    with pytest.raises(ConfigError, match="--paired-test is 't'.*bootstrap or randomization"):
        check_paired_test("t")


# the lines that differ most

SAMPLES = [(f"source {line}", *pair) for line, pair in enumerate(zip(REFERENCES, TRANSLATIONS, strict=True))]


def test_the_largest_difference_comes_first_whoever_is_better():
    found = largest_differences(SAMPLES, OTHERS)
    chrf = sacrebleu.metrics.CHRF()
    assert [line.line for line in found] == [3, 2, 4]  # the first line is the same in both
    assert [line.ours for line in found] == [TRANSLATIONS[2], TRANSLATIONS[1], TRANSLATIONS[3]]
    assert [line.theirs for line in found] == [OTHERS[2], OTHERS[1], OTHERS[3]]
    assert found[0].source == "source 2" and found[0].reference == REFERENCES[2]
    assert found[2].our_chrf == chrf.sentence_score(TRANSLATIONS[3], [REFERENCES[3]]).score < found[2].their_chrf == 100
    sizes = [abs(line.our_chrf - line.their_chrf) for line in found]
    assert sizes == sorted(sizes, reverse=True)


def test_a_sentence_is_printed_with_both_translations_on_lines_of_their_own():
    difference = LineDifference(7, "a\nsource", "a\treference", "ours\n", "theirs", 12.34, 100.0)
    assert difference.printed() == [
        "  sentence 7",
        f"    source            {on_one_line(difference.source)}",
        f"    reference         {on_one_line(difference.reference)}",
        f"    this   chrF  12.3 {on_one_line(difference.ours)}",
        "    other  chrF 100.0 theirs",
    ]
