"""Minimum Bayes risk: expected chrF, beside sacreBLEU and exhaustive sums; and the decision on a real search."""

import dataclasses
import itertools
import logging
import math
import random
import time

import pytest
import sacrebleu

from keras_transformer.commands.translate import app
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import OPTIONS, SearchOptions
from keras_transformer.text.road import Candidates
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.minimum_bayes_risk import (
    MinimumBayesRisk,
    chrf,
    counts_of_draws,
    decided,
    expected_count,
    mean_ngrams,
    ngrams_of,
)
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.engines import Writer

TEXTS = ["Ein Hund rennt.", "Ein Hund rennt über die Wiese.", "Der Hund läuft", "ab", "zwei zwei zwei", "한국어 문장"]


def drawn(**log_probabilities):
    return [Translation(text, score) for text, score in log_probabilities.items()]


@pytest.mark.parametrize("text, reference", list(itertools.product(TEXTS, TEXTS)))
def test_chrf_of_one_reference_is_sacrebleus(text, reference):
    expected = sacrebleu.sentence_chrf(text, [reference]).score / 100
    assert chrf(ngrams_of(text), mean_ngrams({reference: 1.0})) == pytest.approx(expected, abs=1e-6)


def test_a_reference_that_counts_twice_is_there_twice():
    text = ngrams_of(TEXTS[0])
    assert chrf(text, mean_ngrams({TEXTS[1]: 2.0, TEXTS[2]: 1.0})) == pytest.approx(
        chrf(text, mean_ngrams({TEXTS[1]: 1.0, TEXTS[2]: 0.5}))
    )


def test_the_time_grows_with_the_candidates_and_not_with_their_pairs():
    def seconds(count):
        samples = [Translation(f"{number} dogs run over the meadow behind the house", -9.0) for number in range(count)]
        began = time.process_time()
        decided(Candidates([]), [(count, samples)])
        return time.process_time() - began

    seconds(10)
    assert min(seconds(1600) / seconds(200) for _ in range(3)) < 24  # 8 if it grows with them, 64 with their pairs


@pytest.mark.parametrize("probability, draws", [(0.5, 1), (0.3, 4), (0.01, 32), (0.999, 8), (1.0, 5), (0.0, 5)])
def test_the_expected_count_is_that_of_a_binomial_distribution_without_zero(probability, draws):
    weights = [math.comb(draws, n) * probability**n * (1 - probability) ** (draws - n) for n in range(draws + 1)]
    some = sum(weights[1:])
    expected = sum(n * weight for n, weight in enumerate(weights)) / some if some else 1.0
    log_probability = math.log(probability) if probability else -math.inf
    assert expected_count(log_probability, draws) == pytest.approx(expected)


@pytest.mark.parametrize("lacking", [0.0, 5.0, 400.0])
def test_expected_counts_are_those_of_the_draws_whatever_all_probabilities_lack(lacking):
    """As they lack that of a prefix, which all draws have."""
    counts = counts_of_draws([math.log(each) - lacking for each in (0.6, 0.3, 0.1)], 30)
    assert sum(counts) == pytest.approx(30) and counts == pytest.approx([18, 9, 3], abs=0.4)
    assert counts_of_draws([-lacking - 3], 8) == pytest.approx([8])
    assert counts_of_draws([-lacking - 3, -lacking - 9], 2) == pytest.approx([1, 1])


def test_the_chosen_one_is_nearest_to_all_that_was_drawn():
    """The search found a short text that is the most probable one; most of what was drawn is longer, and alike."""
    likely = Candidates([Translation("Ja.", -1.0)])
    samples = drawn(**{"Ein Hund rennt.": -3.0, "Ein Hund rannte.": -4.0, "Ein Hund lief.": -4.0})
    [chosen] = decided(likely, [(64, samples)]).translations
    assert chosen.text == "Ein Hund rennt."
    counts = counts_of_draws([each.score for each in samples], 64)
    mean = mean_ngrams({each.text: count for each, count in zip(samples, counts, strict=True)})
    assert chosen.score == max(chrf(ngrams_of(each.text), mean) for each in samples)
    often = [(64, [*samples, Translation("Ja.", math.log(0.9))])]
    assert decided(likely, often).translations[0].text == "Ja."  # nine of ten draws are that


def test_the_same_round_again_changes_nothing():
    samples = drawn(**{"ab": -2.0, "abc": -3.0, "xyz": -3.0})
    one, two = (decided(Candidates([]), [(8, samples)] * rounds, shown=3).translations for rounds in (1, 2))
    assert [(each.text, round(each.score, 9)) for each in one] == [(each.text, round(each.score, 9)) for each in two]


@pytest.fixture(scope="module")
def translator(random_folder):
    return Translator.load(random_folder, SearchOptions(beam_size=3, n_best=2), max_source_tokens=20)


def test_it_decides_on_what_the_engine_finds_and_draws(translator):
    lines = ["one two", "three", "", "seven"]
    engine = MinimumBayesRisk(translator, samples=5, seed=3)
    sampler = translator.with_options(
        {"temperature": 0.7, "beam_size": 5, "n_best": 5, "length_penalty": 0.0, "seed": 3}
    )
    found = translator.with_options({"n_best": 3}).translate_n_best(lines)
    samples = sampler.translate_n_best(lines)
    for chosen, beam, draws in zip(engine.translate_n_best(lines), found, samples, strict=True):
        expected = decided(Candidates(beam), [(5, draws)], shown=2).translations
        assert [(each.text, each.score) for each in chosen] == [(each.text, each.score) for each in expected]
        assert 1 <= len(chosen) <= 2 and chosen[0].text in {each.text for each in [*beam, *draws]}


class Drawer(Writer):
    """It finds as many words as it has hypotheses, and draws them by seed and temperature, without a model."""

    name, abilities = "This drawer", frozenset(OPTIONS)

    def __init__(self, **options):
        super().__init__(str, options=SearchOptions(**{"n_best": 2, **options}))

    def with_options(self, options):
        return Drawer(**dataclasses.asdict(self.options) | options)

    def search(self, lines, asks, first_line):
        how, numbers = self.options, random.Random(f"{self.options.seed} {self.options.temperature}")
        words = [f"{'abcdefg'[number]}{number}{'cab'[number % 3]}" for number in range(7)]
        drawn = numbers.sample(words, how.n_best) if how.temperature else words[-how.n_best :]
        found = [Translation(text, -0.3 * number - 5 * how.coverage_penalty) for number, text in enumerate(drawn)]
        return [Candidates(found) for _ in lines]


def decisions(engine):
    return [(each.text, each.score) for each in engine.translate_n_best(["one two"])[0]]


def test_an_engine_that_draws_tells_with_what_and_searches_without():
    """So `--mbr 5 --temperature 1.5 --seed 3` draws by both."""
    drawing, expected = Drawer(temperature=1.5, seed=3), decisions(MinimumBayesRisk(Drawer(), 5, 1.5, 3))
    assert decisions(MinimumBayesRisk(drawing, 5)) == expected != decisions(MinimumBayesRisk(Drawer(), 5))
    assert decisions(MinimumBayesRisk(drawing, 5, 0.7, 0)) == decisions(MinimumBayesRisk(Drawer(), 5))


@pytest.mark.parametrize("name, value", [("top_k", 2), ("top_p", 0.5)])
def test_draws_among_some_tokens_alone_are_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value}; minimum Bayes risk draws among all tokens: leave it"):
        MinimumBayesRisk(Drawer(temperature=1.5, **{name: value}), 5)


@pytest.mark.parametrize("options", [{"n_best": 3}, {"beam_size": 6}, {"temperature": 1.5, "seed": 4}])
def test_other_options_are_those_of_its_engine(options):
    """They reach it through `with_options`, which a pipeline calls."""
    engine = MinimumBayesRisk(Drawer(), 5)
    assert decisions(engine.with_options(options)) == decisions(MinimumBayesRisk(Drawer(**options), 5))
    assert engine.with_options(options).own_option(next(iter(options))) == next(iter(options.values()))


def test_how_often_a_text_was_drawn_is_told_without_a_coverage_penalty():
    """It is in the scores of a search, which are then no log-probabilities."""
    assert decisions(MinimumBayesRisk(Drawer(coverage_penalty=1.0), 6)) == decisions(MinimumBayesRisk(Drawer(), 6))


def test_a_line_is_decided_the_same_alone_and_among_others(translator):
    engine = MinimumBayesRisk(translator, samples=4)
    lines = ["one two", "three four", "seven"]
    assert [each.text for each in engine.translate(lines)] == [engine.translate([line])[0].text for line in lines]


def test_what_is_asked_holds(translator):
    engine = MinimumBayesRisk(translator, samples=4)
    [translation] = engine.translate(["one https://example.org/ two"], protect="urls", prefixes=["zwei"])
    assert "https://example.org/" in translation.text + " ".join(translation.unplaced)
    assert translation.text.startswith("zwei")


def test_a_warning_comes_once(translator, caplog):
    with caplog.at_level(logging.WARNING, "keras_transformer"):
        MinimumBayesRisk(translator, samples=2).translate(["one two " * 30])
    assert sum("only the first" in record.message for record in caplog.records) == 1
    logging.getLogger("keras_transformer").warning("and later ones come")
    assert "and later ones come" in caplog.text


def test_the_command_writes_what_the_engine_decides(random_folder):
    lines = ["one two", "seven"]
    outcome = invoke(app, random_folder, "--mbr", 3, "--beam-size", 2, stdin="\n".join(lines).encode())
    engine = MinimumBayesRisk(Translator.load(random_folder, SearchOptions(beam_size=2)), samples=3)
    assert outcome.stdout == "".join(f"{each.text}\n" for each in engine.translate(lines))
    refused = invoke(app, random_folder, "--mbr", 3, "--confidence", stdin=b"one\n")
    assert refused.exit_code == 1 and "--mbr decides by another" in refused.stderr


@pytest.mark.nightly
def test_an_export_draws_in_rounds_as_wide_as_its_beam(whole_version):
    """Its beam has four hypotheses, so ten draws are three rounds with three seeds."""
    export, lines = ExportedTranslator(whole_version), ["one two", "seven"]
    engine = MinimumBayesRisk(export, samples=10, seed=5)
    draws = {"temperature": 0.7, "beam_size": 4, "n_best": 4, "length_penalty": 0.0}
    rounds = [export.with_options({**draws, "seed": seed}).translate_n_best(lines) for seed in (5, 6, 7)]
    found = export.with_options({"n_best": 4}).translate_n_best(lines)
    for chosen, beam, *drawn in zip(engine.translate(lines), found, *rounds, strict=True):
        assert chosen == decided(Candidates(beam), [(4, of_round) for of_round in drawn]).translations[0]


def test_an_engine_that_does_not_draw_is_refused_by_name():
    with pytest.raises(ConfigError, match="This writer does not draw translations.*take a run"):
        MinimumBayesRisk(Writer(str.upper))


@pytest.mark.parametrize("wrong", [{"samples": 0}, {"samples": 2000}, {"samples": 2.5}, {"temperature": 0}])
def test_a_number_beyond_its_limits_is_one_sentence(translator, wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(ConfigError, match=f"{name} is {value}.* must be"):
        MinimumBayesRisk(translator, **wrong)
