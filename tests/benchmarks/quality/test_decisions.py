"""The table of decisions: what is counted as wrong, and that each way chooses among what was found."""

import pytest

from benchmarks.quality.decisions import Wrong, chosen, decisions, has_loop, row, score_per_token, wrong_in
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.minimum_bayes_risk import MinimumBayesRisk
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator

LINES = ["one two", "three", "seven hundred"]


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("a dog runs", False),
        ("sehr sehr gut", False),
        ("sehr sehr sehr gut", True),
        ("er sah er sah er sah", True),
        ("er sah sie er sah ihn er sah", False),
        ("a b c d a b c d a b c d", True),
        ("", False),
    ],
)
def test_a_loop_is_words_that_come_three_times_in_a_row(text, is_loop):
    assert has_loop(text) is is_loop


def test_what_the_reference_has_too_is_not_wrong():
    pairs = [("No no no", "Nein nein nein"), ("Linux", "Linux"), ("OK", ""), ("A dog", "Ein Hund"), ("Go", "Los")]
    assert wrong_in(pairs, ["ja ja ja", "Linux", "", "A dog", ""]) == Wrong(empty=1, repeated=0, copied=1)
    assert wrong_in(pairs, ["Nein", "Linux", "", "ein ein ein", "Los"]) == Wrong(empty=0, repeated=1, copied=0)


@pytest.fixture(scope="module")
def translator(random_folder):
    return Translator.load(random_folder, SearchOptions(beam_size=3), max_source_tokens=20)


@pytest.mark.nightly
def test_the_chosen_one_has_the_highest_score_of_all(translator):
    engine = MinimumBayesRisk(translator, samples=4)
    plain = {"length_penalty": 0.0, "n_best": 3}
    of_beam = translator.with_options(plain).translate_n_best(LINES)
    drawn = engine.samplers[0][1].translate_n_best(LINES)
    for line, text, *found in zip(LINES, chosen(LINES, engine, score_per_token), of_beam, drawn, strict=True):
        candidates = [each for some in found for each in some]
        best = max(score_per_token(line, candidates))
        assert best in score_per_token(line, [each for each in candidates if each.text == text])


@pytest.mark.nightly
def test_every_way_writes_a_line_per_line(translator, random_folder):
    reverse = Scorer.load(random_folder)
    names = []
    for name, decide in decisions(translator, [2, 3], [1.0], reverse):
        names.append(name)
        written = decide(LINES)
        assert len(written) == len(LINES)
        assert row(name, [(line, "eins zwei drei") for line in LINES], written, "de", 1.0).count("|") == 8
    assert len(set(names)) == 6
