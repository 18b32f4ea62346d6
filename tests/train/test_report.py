"""report.md line by line, from fixed inputs."""

import collections
import json

import pytest

from keras_transformer.search.options import SearchOptions
from tests.support.training import scores_of
from train.config.sources.files import FilesData
from train.config.sources.numbers import NumbersData
from train.report import report
from train.scoring.breakdown import WordCounts
from train.scoring.card import TimedTranslations
from train.scoring.scorecard import Evaluator
from train.validation.selection import Candidate, Selection
from train.validation.validation import Sample, Validation

TIMED = TimedTranslations([Sample("five", "fünf", "fünf"), Sample("six", "sechs", "sex")], seconds=4.0)


def candidate(name, bleu, loss, perplexity):
    interval = (perplexity - 0.5, perplexity + 0.5)
    return Candidate(name, {}, Validation(loss, perplexity, 0.5, scores_of(bleu), [], perplexity_interval=interval))


SELECTION = Selection(candidate("the last checkpoint", 33.333, 2.5, 7.0), [candidate("the average", 33.1, 2.4, 6.0)])


def test_programs_find_the_scores_perplexity_and_parameters():
    card = Evaluator("de", WordCounts(collections.Counter(fünf=3), "the training text (3 pairs)")).scorecard(TIMED)
    options, training = SearchOptions(5, 0.75, coverage_penalty=0.25), {"seed": 1}
    found = json.loads(report.scores_json("data.test", card, options, SELECTION, 1_234, 900, training))
    search = [found[name] for name in ("split", "beam_size", "length_penalty", "coverage_penalty")]
    assert search == ["data.test", 5, 0.75, 0.25]
    assert [found[name] for name in ("validation_loss", "validation_perplexity", "parameters")] == [2.5, 7.0, 1_234]
    assert (found["validation_perplexity_interval"], found["step"]) == ([6.5, 7.5], 900)
    assert found["training"] == training
    assert found.items() >= card.as_json().items()


@pytest.mark.parametrize(
    ("interval", "perplexity"), [((6.5, 7.5), "7.000 (6.500 to 7.500, 95 per cent interval)"), (None, "7.000")]
)
def test_the_perplexity_stands_with_its_interval_if_it_has_one(interval, perplexity):
    kept = SELECTION.kept
    kept = kept._replace(validation=kept.validation._replace(perplexity_interval=interval))
    card = Evaluator("de", WordCounts(collections.Counter(), "no text")).scorecard(TIMED)
    text = report.scores_text("data.test", card, SearchOptions(), Selection(kept, []))
    assert f"- validation perplexity {perplexity} per token; " in text


FILES = {"source": "files", "train": [["a/train.en", "a/train.de"]], "validation": [["val.en", "val.de"]]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (NumbersData(source="numbers", target_language="fr"), "en to fr"),
        (FilesData(**FILES, source_language="en", target_language="de"), "en to de"),
        (FilesData(**FILES), "a/train.en to a/train.de"),  # the README's example
        (FilesData(**FILES | {"train": ["a.tsv", "b.tsv", "c.tsv"]}), "a.tsv, source to target, and 2 more"),
    ],
)
def test_the_languages_are_the_given_ones_or_the_training_files(data, expected):
    assert data.languages == expected
