"""report.md line by line, from fixed inputs."""

import collections
import types

import numpy as np
import pytest

from keras_transformer.config import SearchOptions, preset
from keras_transformer.run_folder import RunFolder
from tests.support.runs import CONFIG
from train.config import FilesData, NumbersData, RowLengths, TrainingConfig, load_config
from train.data.batches import Padding
from train.data.corpus import Corpus, Split
from train.data.encoding import EncodedPairs, Sentences
from train.evaluation import report
from train.evaluation.bleu import Scores
from train.evaluation.cost import parameter_count, training_flops
from train.evaluation.selection import Candidate, Selection
from train.evaluation.validation import Sample, Validation
from train.loop.progress import Progress

TINY = preset("tiny").replace(vocab_size=300)
SCORES = Scores(12.345, "tok:13a", 45.678, "nc:6", exact=25.0, sentences=1_234)
PROGRESS = Progress(step=2_600, seconds=3_725.0, target_tokens=1_234_567.0, skipped=[7, 900])


def encoded(count, source_length, target_length, **skipped):
    sides = (Sentences.of([[7] * length] * count, np.uint16) for length in (source_length, target_length))
    return EncodedPairs(*sides, collections.Counter(skipped))


def candidate(name, bleu, loss, perplexity):
    return Candidate(name, {}, Validation(loss, perplexity, 0.5, types.SimpleNamespace(bleu=bleu), []))


SELECTION = Selection(candidate("the last checkpoint", 33.333, 2.5, 7.0), [candidate("the average", 33.1, 2.4, 6.0)])
DATA = types.SimpleNamespace(
    corpus=Corpus(None, Split("data.validation", None), None, "en", "de"),
    tokenizer=types.SimpleNamespace(vocab_size=8_000),
    train=encoded(2_000, 10, 20, duplicate=3),
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
    assert report.score_lines("data.test", SCORES, SearchOptions(5, 0.75), SELECTION).splitlines() == [
        "data.test, beam 5, length penalty 0.75, raw text:",
        "",
        "- BLEU 12.35  tok:13a",
        "- chrF 45.68  nc:6",
        "- exact 25.00 per cent of 1,234 sentences",
        "- validation perplexity 7.000 per token; kept the last checkpoint: validation BLEU 33.33, loss 2.5000; "
        "the average: validation BLEU 33.10, loss 2.4000",
    ]


def test_training_is_counted_in_updates_epochs_tokens_time_and_flops():
    training = TrainingConfig(xla=False, precision="mixed_bfloat16")
    table = cells(report.training_table(training, DATA, TINY, PROGRESS, "2 GPU replicas"))
    flops = training_flops(TINY, 10, 20) / 20 * 1_234_567
    assert (table.pop("machine"), table.pop("packages")) > ("", "")
    assert table == {
        "parameters": f"{parameter_count(TINY):,}",
        "updates": "2,600, of 32 rows of 128 positions",
        "epochs": "6.5",  # 2,600 / 400
        "left out after divergence": "2 batches: 7, 900",
        "target tokens": "1,234,567",
        "time": "1 h 02 min, validation included",
        "training FLOPs": f"{flops:.2e}, estimated from the shapes of the matrix products at mean sentence length",
        "devices": "2 GPU replicas, mixed_bfloat16, XLA off",
    }


def test_the_corpus_is_counted_in_pairs_and_tokens_of_each_side():
    assert cells(report.corpus_table(DATA)) == {
        "vocabulary": "8,000 pieces, joint",
        "training pairs": "2,000; 20,000 source and 40,000 target tokens; skipped: 3 duplicate",
        "validation pairs": "50; 550 source and 600 target tokens; skipped: none",
        "padding": "1.23 per cent of the positions of packed rows",
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
    assert report.languages(data) == expected


@pytest.mark.parametrize(("total", "chosen"), [(3, [0, 1, 2]), (10, [0, 2, 4, 6]), (11, [0, 2, 4, 6])])
def test_samples_are_taken_from_beginning_to_end(total, chosen):
    assert report.evenly_spaced(list(range(total)), 4) == chosen


def test_the_page_is_written_with_the_options_of_the_configuration(tmp_path, monkeypatch):
    path = tmp_path / "run.toml"
    path.write_text(f'run_folder = "{tmp_path / "run"}"\n{CONFIG}', encoding="utf-8")
    options = ("beam_size=7", "length_penalty=0.3", "batch_size=5")
    config = load_config(path, [f"translation.{option}" for option in options])
    pairs, made = [("five", "fünf"), ("six", "sechs")], []
    transformer = types.SimpleNamespace(transformer_config=TINY)
    monkeypatch.setattr(report, "load_run", lambda path: (transformer, "tokenizer"))
    monkeypatch.setattr(report, "Translator", lambda *arguments, **named: made.append((arguments, named)))
    monkeypatch.setattr(report, "translate_and_score", lambda translator, pairs: (SCORES, [Sample("a", "b", "c")]))
    corpus = Corpus(None, Split("data.validation", None), Split("data.test", lambda: iter(pairs)), "en", "de")
    data = types.SimpleNamespace(**vars(DATA) | {"corpus": corpus})
    (tmp_path / "run").mkdir()
    report.write_report(config, RunFolder(tmp_path / "run"), data, PROGRESS, SELECTION, "one CPU")
    assert made == [((transformer, "tokenizer", SearchOptions(7, 0.3), 5), {})]
    text = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# run\n\nen to de.\n\n## Scores\n\ndata.test, beam 7, length penalty 0.3, raw text:\n")
    assert (
        "## Sample translations (data.test)\n\n| source | reference | translation |\n|---|---|---|\n| a | b | c |"
        in text
    )
    assert text.endswith(f"## Configuration\n\n```toml\n{config.to_toml()}```\n")
