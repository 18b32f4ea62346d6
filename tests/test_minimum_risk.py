"""Minimum risk training, from pairs with candidates to a run folder: batches of blocks, the step, the commands."""

import functools
import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

import train.__main__
import train.distil
from keras_transformer.config import ConfigError
from keras_transformer.model import Transformer
from keras_transformer.risk import risk_sums
from keras_transformer.tokens import EOS
from tests.support.candidates import ROWS, pairs_with_candidates, scored_corpus
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import metrics_of, write_config
from tests.support.training import TINY, TRAINING, tensors, training_model
from tests.support.training import train as train_steps
from train.config import TrainingConfig, load_config
from train.data.batches import COSTS, FIELDS, PackedBatches, training_dataset
from train.data.candidates import read_candidates
from train.data.encoding import NO_CANDIDATE
from train.data.prepare import check_blocks, load_corpus
from train.loop.idle_keys import check_idle_keys
from train.run import compiled
from train.workers.tf_config import ONLY_WORKER, Worker


@pytest.fixture(scope="module")
def corpus():
    return scored_corpus()


@pytest.fixture(scope="module")
def pairs():
    return pairs_with_candidates()


# batches


def packed(pairs, rows=16, **how):
    return PackedBatches(pairs, rows * 16, ROWS, seed=1, **how)


def pairs_of(batch, rows):
    """From each pair of a batch, as (source, reference), to its candidates as [(candidate, cost)]."""
    found = {}
    for first in range(0, len(batch["labels"]), rows):
        for segment in range(1, batch["target_segments"][first].max() + 1):
            texts = []
            for row in range(first, first + rows):
                here = batch["target_segments"][row] == segment
                (cost,) = set(batch[COSTS][row][here].tolist())
                texts.append((" ".join(map(str, batch["labels"][row][here][:-1])), cost))
                assert batch["labels"][row][here][-1] == EOS
                np.testing.assert_array_equal(batch["source_ids"][row], batch["source_ids"][first])
            source = batch["source_ids"][first][batch["source_segments"][first] == segment]
            (reference, no_cost), *candidates = texts
            assert no_cost == NO_CANDIDATE
            found[" ".join(map(str, source[:-1])), reference] = [one for one in candidates if one[1] != NO_CANDIDATE]
    return found


def test_a_block_has_the_references_in_its_first_row_and_one_candidate_of_each_in_every_other(corpus, pairs):
    batches = packed(pairs)
    assert batches.rows_per_block == 4
    found = {}
    for step in range(batches.steps_per_epoch):
        found |= pairs_of(batches.batch(step), 4)
    expected = {
        pair: [(text, pytest.approx(1 - score / 100, abs=1e-6)) for text, score in scored]
        for pair, scored in zip(*corpus, strict=True)
    }
    assert found == expected


def test_padding_costs_nothing_and_all_batches_have_one_shape(pairs):
    batches = packed(pairs)
    for step in range(batches.steps_per_epoch):
        batch = batches.batch(step)
        assert list(batch) == [*FIELDS, COSTS]
        assert {values.shape for values in batch.values()} == {(16, 16)}
        assert batch[COSTS].dtype == np.float32 and {batch[field].dtype.name for field in FIELDS} == {"int32"}
        assert (batch[COSTS][batch["target_segments"] == 0] == NO_CANDIDATE).all()


def test_padding_is_the_share_of_positions_in_segment_0(pairs):
    batches = packed(pairs, rows=4)
    steps = [batches.batch(step) for step in range(batches.steps_per_epoch)]
    assert batches.rows_per_epoch == 4 * len(steps)
    for side in ("source", "target"):
        empty = np.mean([step[f"{side}_segments"] == 0 for step in steps])
        assert getattr(batches.padding, side) == pytest.approx(empty)


def test_the_rows_of_all_workers_are_the_batch_of_a_single_one(pairs):
    workers = [packed(pairs, worker=Worker(index, 2)) for index in range(2)]
    for step in (0, 3):
        parts, whole = [worker.batch(step) for worker in workers], packed(pairs).batch(step)
        for field in whole:
            np.testing.assert_array_equal(np.concatenate([part[field] for part in parts]), whole[field])


def test_the_dataset_has_the_costs(pairs):
    batches = packed(pairs)
    (found,) = training_dataset(batches, 2, 3).as_numpy_iterator()
    for field, values in batches.batch(2).items():
        np.testing.assert_array_equal(found[field], values)


@pytest.mark.parametrize(
    ("rows", "shards", "replicas", "micro_batches", "worker", "multiple"),
    [
        (8, 1, 1, 1, ONLY_WORKER, None),
        (8, 1, 2, 1, ONLY_WORKER, None),
        (8, 1, 1, 2, ONLY_WORKER, None),
        (24, 1, 3, 2, ONLY_WORKER, None),
        (6, 1, 1, 1, ONLY_WORKER, 64),
        (8, 1, 2, 2, ONLY_WORKER, 256),
        (8, 4, 1, 1, ONLY_WORKER, 256),
        (8, 1, 1, 1, Worker(0, 4), 256),
    ],
)
def test_a_block_is_never_divided(pairs, rows, shards, replicas, micro_batches, worker, multiple):
    training = TrainingConfig(row_length=16, tokens_per_batch=rows * 16, micro_batches=micro_batches)
    arguments = packed(pairs, rows), training, shards, replicas, worker
    if multiple is None:
        check_blocks(*arguments)
        return
    with pytest.raises(ConfigError, match=f"blocks of 4, a reference and 3 candidates.* a multiple of {multiple}"):
        check_blocks(*arguments)


# keys


@pytest.mark.parametrize(
    ("override", "data", "problem"),
    [
        ("training.risk_sharpness=1.0", "", "training.risk_sharpness is 1.0, .* and there is no data.candidates"),
        ("training.bpe_dropout=0.1", 'candidates = "a"', "training.bpe_dropout is 0.1, but with data.candidates"),
        ("training.risk_sharpness=1.0", 'candidates = "a"', None),
        ("training.bpe_dropout=0.1", "", None),
    ],
)
def test_keys_of_another_kind_of_training_are_refused(tmp_path, override, data, problem):
    path = tmp_path / "run.toml"
    files = 'source = "files"\ntrain = ["a.tsv"]\nvalidation = ["a.tsv"]'
    path.write_text(f'run_folder = "run"\n[data]\n{files}\n{data}\n', encoding="utf-8")
    config = load_config(path, [override])
    if problem is None:
        check_idle_keys(config)
        return
    with pytest.raises(ConfigError, match=problem):
        check_idle_keys(config)


# training


def risk_model(**training):
    return training_model(candidates=3, **training)


@pytest.mark.slow
def test_a_step_minimises_the_risk_with_the_sharpness_of_the_configuration(pairs):
    batch = packed(pairs).batch(0)
    training = TRAINING.model_copy(update={"risk_sharpness": 2.0})
    model = compiled(Transformer(TINY.replace(dropout=0.0)), training, tf.distribute.get_strategy(), candidates=3)
    logits = model({name: batch[name] for name in model.input}, training=False)
    of_batch = batch["labels"], batch["target_segments"], batch[COSTS]
    sums, _ = model.sums_and_gradients(tensors(batch), tf.constant(0), tf.constant(0))
    np.testing.assert_allclose(sums, risk_sums(logits, *of_batch, 3, 2.0), rtol=1e-5)
    assert float(sums.loss) != pytest.approx(float(risk_sums(logits, *of_batch, 3, 0.5).loss), rel=1e-3)


@pytest.mark.slow
def test_a_step_sums_over_micro_batches_and_its_parts_add_up(pairs):
    model, batch = risk_model(), packed(pairs).batch(0)
    whole, *parts = (
        model.sums_and_gradients(
            tensors({name: values[rows] for name, values in batch.items()}), tf.constant(0), tf.constant(0)
        )
        for rows in (slice(None), slice(0, 4), slice(4, None))
    )
    for one, other, both in zip(*map(tf.nest.flatten, parts), tf.nest.flatten(whole), strict=True):
        np.testing.assert_allclose(one + other, both, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_training_lowers_the_expected_cost_and_two_micro_batches_do_the_same(pairs):
    batches, logs = packed(pairs, rows=32), []
    for micro_batches in (1, 2):
        model = risk_model(schedule="constant", learning_rate=3e-3, micro_batches=micro_batches)
        logs.append(train_steps(model, 0, 40, batches))
    losses = [step["loss"] for step in logs[0]]
    assert 0 < losses[0] < 1 and np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    np.testing.assert_allclose([step["loss"] for step in logs[1]], losses, rtol=1e-3)


@pytest.fixture
def command():
    return functools.partial(invoke, train.__main__.app)


@pytest.mark.slow
def test_a_run_goes_on_from_another_with_what_that_one_translated(tmp_path, command):
    """The commands of docs/training.md, on numbers."""
    base, output = write_config(tmp_path, "base"), tmp_path / "candidates.jsonl"
    pairs = list(itertools.islice(load_corpus(load_config(base).data).train, 40))
    for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    assert command(base).exit_code == 0
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "target", "--output", output]
    result = invoke(train.distil.app, tmp_path / "base", *files, "--every-candidate", "--beam-size", 3)
    assert result.exit_code == 0, result.output
    assert [(source, reference) for source, reference, _ in read_candidates(output)] == pairs

    both = [str(tmp_path / name) for name in ("source", "target")]
    data = f'source = "files"\ntrain = [{both}]\nvalidation = [{both}]\ncandidates = "{output}"'
    text = re.sub(r"(?s)\[data\].*?(?=\[model\])", f"[data]\n{data}\n\n", base.read_text(encoding="utf-8"))
    text = text.replace("[training]", f'[training]\nstart_from = "{tmp_path / "base"}"')
    config = tmp_path / "risk.toml"
    config.write_text(text.replace('base"\n', 'risk"\n', 1).replace("batch = 256", "batch = 512"), encoding="utf-8")
    refused = command(config, "--set", "training.tokens_per_batch=320", "--dry-run")
    assert_one_sentence(refused, "blocks of 4", "a multiple of 256")
    assert command(config, "--dry-run").exit_code == 0
    result = command(config)
    assert result.exit_code == 0, result.output
    losses = [one["train/loss"] for one in metrics_of(tmp_path / "risk") if "train/loss" in one]
    assert len(losses) == 5 and all(0 <= loss <= 1 for loss in losses)
    other = re.sub(r'"score": [\d.]+', '"score": 12.5', output.read_text(encoding="utf-8"))
    output.write_text(other, encoding="utf-8")
    assert_one_sentence(command(config), "which is another one", "candidates.jsonl has changed")
