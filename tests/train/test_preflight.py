"""Before the first step: duplicates, overlap, lengths, and what the run will take."""

import collections
import functools
import logging
import types

import numpy as np
import pytest

import train.__main__
from keras_transformer.config import preset
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import write_config
from train.config.training import RowLengths, TrainingConfig
from train.cost import preflight
from train.cost.cost import arrays_per_weight, memory_bytes, parameter_count
from train.data.batches import PackedBatches, ShardedBatches
from train.data.corpus import Corpus, Split
from train.data.encoding import EncodedPairs, EncodedShards, Sentences, pair_keys

CONFIG = preset("tiny").replace(vocab_size=300)


def found(train, validation, test=None):
    """PreparedData of these texts, as far as the lines on the corpus read them; each list of `train` is a shard."""
    splits = (pairs and Split("x", lambda pairs=pairs: iter(pairs)) for pairs in (validation, test))
    shards = [EncodedPairs(None, None, collections.Counter(), pair_keys(pairs)) for pairs in train]
    return types.SimpleNamespace(corpus=Corpus(None, *splits, "en", "de"), train=types.SimpleNamespace(shards=shards))


@pytest.mark.parametrize("cut", [0, 1, 2, 4])
def test_duplicates_and_overlap_are_counted_by_pair_over_all_shards(cut):
    train = [("a", "b"), ("a", "b"), ("a", "c"), ("d", "e")]
    lines = list(preflight.corpus_lines(found([train[:cut], train[cut:]], [("a", "c"), ("x", "y")], [("d", "e")])))
    assert lines[0].startswith("duplicates: 1 of 4 training pairs")
    assert lines[1].startswith("overlap: 1 of 2 validation pairs") and "remove these pairs" in lines[1]
    assert lines[2].startswith("overlap: 1 of 1 test pairs")


@pytest.mark.parametrize(("copied", "is_warned"), [(1, False), (2, True)])
def test_pairs_whose_target_is_their_source_are_counted(copied, is_warned):
    pairs = [([7, 8, 9], [7, 8, 9])] * copied + [([7, 8], [7, 9]), ([7, 8], [7, 8, 9]), ([6, 8], [7, 8])] * 5
    sides = (Sentences.of(side, np.uint16) for side in zip(*pairs, strict=True))
    train = EncodedShards([EncodedPairs(*sides, collections.Counter())])
    (line,) = preflight.identical_lines(types.SimpleNamespace(train=train, languages=NO_LANGUAGES))
    assert line.startswith(f"identical: {copied} of {len(pairs)} training pairs")
    assert ("its own language" in line) == is_warned


def packed(source_length, target_length, *row_lengths):
    """PreparedData of 100 pairs of these lengths, with as much of it as the lines on rows read."""
    sides = (Sentences.of([[7] * length] * 100, np.uint16) for length in (source_length, target_length))
    train = EncodedShards([EncodedPairs(*sides, collections.Counter(), pair_keys([("a", "b")] * 100))])
    batches = ShardedBatches([PackedBatches(train.shards[0], 400, RowLengths(*row_lengths), seed=1)])
    return types.SimpleNamespace(train=train, batches=batches)


def test_row_lengths_that_do_not_fit_the_sides_get_a_hint_at_those_that_do():
    (line,) = preflight.row_lines(packed(5, 10, 40, 40))
    assert "50.0% of the source side and 0.0% of the target side" in line
    assert "because there are 0.50 source tokens per target token" in line
    assert "training.source_row_length = 20 with training.row_length = 40" in line
    assert not list(preflight.row_lines(packed(5, 10, 20, 40)))
    assert not list(preflight.row_lines(packed(10, 10, 40, 40)))


def test_a_pair_is_its_two_sides_not_their_concatenation():
    keys = pair_keys([("ab", "c"), ("a", "bc"), ("ab", "c")])
    assert keys[0] == keys[2] != keys[1]
    assert keys.dtype == np.uint64


def test_memory_is_weights_four_times_over_and_what_a_batch_needs():
    weights = 16 * parameter_count(CONFIG)
    square = RowLengths(64, 64)
    assert memory_bytes(CONFIG, 0, square) == weights
    assert memory_bytes(CONFIG, 8, square) - weights == 2 * (memory_bytes(CONFIG, 4, square) - weights)


@pytest.mark.parametrize(
    ("training", "arrays"),
    [
        ({}, 6),
        ({"histograms_every": 0}, 4),
        ({"steps": 499}, 4),  # the first histograms would follow step 500
        ({"histograms_every": 0, "ema_decay": 0.999}, 5),
    ],
)
def test_memory_of_the_weights_is_that_of_all_that_training_keeps_of_them(training, arrays):
    assert arrays_per_weight(TrainingConfig(**training)) == arrays
    more = memory_bytes(CONFIG, 8, RowLengths(64, 64), arrays) - memory_bytes(CONFIG, 8, RowLengths(64, 64))
    assert more == 4 * (arrays - 4) * parameter_count(CONFIG)


def test_memory_is_said_with_what_the_process_holds_and_what_is_free_if_the_system_tells():
    assert list(preflight.memory_lines(2**31, None, 2**30)) == ["memory of one device: about 2.0 GiB"]
    assert list(preflight.memory_lines(2**31, 2**32, 2**30)) == [
        "memory of one device: about 2.0 GiB beside the 1.0 GiB of this process; free: 4.0 GiB"
    ]


HALVES = "training.xla = false"


@pytest.mark.parametrize(
    ("training", "remedies"),
    [
        (
            {"precision": "float32"},
            ["training.micro_batches from 3", f'set training.precision = "mixed_bfloat16" with {HALVES}'],
        ),
        ({"precision": "float32", "xla": False}, [f'set training.precision = "mixed_bfloat16" with {HALVES}']),
        ({"precision": "mixed_bfloat16"}, ["training.tokens_per_batch from 25,000", f"or set {HALVES}"]),
        ({"precision": "mixed_bfloat16", "xla": False}, ["training.find_micro_batches = true"]),
        ({"find_micro_batches": True}, ["training.find_micro_batches looks for fewer rows"]),
    ],
)
def test_too_little_free_memory_is_a_warning_with_both_figures_and_the_keys_that_lower_it(training, remedies):
    training = TrainingConfig(micro_batches=3, **training)
    (line,) = preflight.memory_warnings(training, 7, 3 * 2**30, 2**31)
    assert line.startswith("memory: a step of 7 rows at once takes about 3.0 GiB, and 2.0 GiB are free")
    assert all(remedy in line for remedy in remedies)
    assert (HALVES in line) == any(HALVES in remedy for remedy in remedies)
    for free in (3 * 2**30, None):  # enough; not known, as on a GPU
        assert not list(preflight.memory_warnings(training, 7, 3 * 2**30, free))


def test_pairs_that_are_too_long_are_a_warning_with_rows_that_hold_all_or_nearly_all():
    data = packed(10, 10, 40, 60)
    training = TrainingConfig(row_length=60)
    assert not list(preflight.too_long_lines(training, data))
    data.train.too_long = collections.Counter({61: 1, 75: 2})
    (line,) = preflight.too_long_lines(training, data)
    assert line.startswith("too long: 3 of 103 training pairs") and line.endswith(
        "row_length = 75 would hold all pairs"
    )
    data.train.too_long[61] = 1_898  # 2,000 pairs, of which two may be left out
    (line,) = preflight.too_long_lines(training.model_copy(update={"source_row_length": 40}), data)
    assert line.endswith(
        "training.row_length = 61 with training.source_row_length = 41 would hold 99.9% of all pairs, and "
        "training.row_length = 75 with training.source_row_length = 50 would hold all pairs"
    )
    data.train.too_long = collections.Counter({75: 2})
    data.train.shards *= 20
    (line,) = preflight.too_long_lines(training, data)
    assert "99.9%" not in line


def test_a_warm_up_longer_than_the_run_is_a_warning():
    (line,) = preflight.warmup_lines(TrainingConfig(steps=1_000, warmup_steps=1_001))
    assert "training.warmup_steps 1,001" in line and "training.steps 1,000" in line
    assert not list(preflight.warmup_lines(TrainingConfig(steps=1_000, warmup_steps=1_000)))
    assert not list(preflight.warmup_lines(TrainingConfig(steps=1_000, schedule="constant")))


@pytest.mark.slow
def test_a_dry_run_logs_where_it_encoded_or_found_text_and_creates_no_run_folder(tmp_path, caplog):
    config = write_config(tmp_path)
    dry_run = functools.partial(invoke, train.__main__.app, config, "--dry-run")
    with caplog.at_level(logging.INFO, "train"):
        results = [dry_run(), dry_run(), dry_run("--set", f"cache_folder={tmp_path / 'elsewhere'}")]
    assert [result.exit_code for result in results] == [0, 0, 0], results[0].output
    lines = [line for line in caplog.messages if "encoded in" in line]
    assert [" 300 pairs, encoded in " in line for line in lines] == [True, False, True]
    assert [str(tmp_path / "cache") in line for line in lines] == [True, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "elsewhere", "run.toml"]
    refused = dry_run("--set", 'training.frozen=["nothing"]'), dry_run("--set", "training.start_from=nowhere")
    assert_one_sentence(dry_run("--set", f"run_folder={config}"), f"run_folder {config} cannot be created")
    assert_one_sentence(refused[0], "training.frozen names 'nothing'", "embedding")
    assert_one_sentence(refused[1], "training.start_from is nowhere")
