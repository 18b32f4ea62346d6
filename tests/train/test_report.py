"""report.md line by line, from fixed inputs."""

import collections
import json
import types

import numpy as np
import pytest

from keras_transformer.config import preset
from keras_transformer.search.options import SearchOptions
from tests.support.training import scores_of
from train.config.sources.files import FilesData
from train.config.sources.numbers import NumbersData
from train.config.training import RowLengths, TrainingConfig
from train.cost.cost import training_flops
from train.data.batches import Padding
from train.data.encoding import EncodedPairs, EncodedShards, Sentences
from train.loop.progress import Progress
from train.report import report
from train.scoring.breakdown import WordCounts
from train.scoring.card import TimedTranslations
from train.scoring.scorecard import Evaluator
from train.validation.selection import Candidate, Selection
from train.validation.validation import Sample, Validation

TINY = preset("tiny").replace(vocab_size=300)
PROGRESS = Progress(step=2_600, seconds=3_725.0, core_seconds=3 * 3_725.0, target_tokens=1_234_567.0, skipped=[7, 900])
TIMED = TimedTranslations([Sample("five", "fünf", "fünf"), Sample("six", "sechs", "sex")], seconds=4.0)


def encoded(count, source_length, target_length, **skipped):
    sides = (Sentences.of([[7] * length] * count, np.uint16) for length in (source_length, target_length))
    return EncodedPairs(*sides, collections.Counter(skipped))


def candidate(name, bleu, loss, perplexity):
    interval = (perplexity - 0.5, perplexity + 0.5)
    return Candidate(name, {}, Validation(loss, perplexity, 0.5, scores_of(bleu), [], perplexity_interval=interval))


SELECTION = Selection(candidate("the last checkpoint", 33.333, 2.5, 7.0), [candidate("the average", 33.1, 2.4, 6.0)])
DATA = types.SimpleNamespace(
    tokenizer=types.SimpleNamespace(
        vocab_size=8_000, pieces=lambda: ["piece"] * 8_000, restored=list, is_lowercase=False
    ),
    train=EncodedShards([encoded(2_000, 10, 20, duplicate=3)]),
    validation=encoded(50, 11, 12),
    batches=types.SimpleNamespace(
        rows_per_batch=32,
        row_lengths=RowLengths(124, 128),
        padding=Padding(0.0, 0.0, 0.01234),
        epochs=lambda step: step / 400,
    ),
)


def cells(table):
    """The rows of a table of two columns, as a dict."""
    return dict(line.strip("| ").split(" | ") for line in table.splitlines()[2:])


def test_the_scores_come_with_options_signatures_and_the_weights_that_were_kept():
    card = Evaluator("de", WordCounts(collections.Counter(fünf=3), "the training text (3 pairs)")).scorecard(TIMED)
    text = report.scores_text("data.test", card, SearchOptions(5, 0.75), SELECTION)
    lines = text.splitlines()
    assert lines[:2] == ["data.test, beam 5, length penalty 0.75:", ""]
    assert lines[2:8] == [f"- {line}" for line in card.scores.lines()]
    assert "- speed 0.5 sentences/s: 4.0 s, preparation of the search included" in lines
    assert (
        "- validation perplexity 7.000 (6.500 to 7.500, 95 per cent interval) per token; "
        "kept the last checkpoint: validation BLEU 33.33, loss 2.5000; "
        "the average: validation BLEU 33.10, loss 2.4000"
    ) in lines
    assert all(table.markdown() in text for table in card.tables()) and len(card.tables()) == 2


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


def test_training_is_counted_in_updates_epochs_tokens_time_and_flops():
    training = TrainingConfig(xla=False, precision="mixed_bfloat16")
    table = cells(report.training_table(training, DATA, TINY, PROGRESS, "2 GPU replicas"))
    flops = training_flops(TINY, 10, 20) / 20 * 1_234_567
    assert table.pop("machine") and table.pop("packages").startswith("tensorflow ")
    assert table == {
        "updates": "2,600, of 32 rows of 128 positions",
        "epochs": "6.5",  # 2,600 / 400
        "left out after divergence": "2 batches: 7, 900",
        "target tokens": "1,234,567",
        "time": "1 h 02 min, validation included",
        "training FLOPs": f"{flops:.2e}, estimated from the shapes of the matrix products at mean sentence length",
        "devices": "2 GPU replicas, mixed_bfloat16, XLA off",
    }


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
