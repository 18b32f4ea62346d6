"""Guided alignment: links by a dictionary of the corpus, their cross-entropy, and what it adds to an update."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS
from keras_transformer.losses import alignment_sums
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.kinds import build_model, with_attention
from keras_transformer.translation.alignment_choice import Rate
from tests.support.models import as_numpy, assert_close
from tests.support.training import PAIRS, TINY, TRAINING, tensors, train, training_model, weights_of
from train.config.run import check_config
from train.config.training import RowLengths
from train.data.batches import PackedBatches, lay_out
from train.data.encoding import EncodedPairs, EncodedShards, Sentences
from train.data.links import NO_LINK, Linker
from train.data.packing import Packing
from train.data.prepare import packed_batches
from train.report.alignment import eligible
from train.step.training_model import compiled
from train.workers.tf_config import ONLY_WORKER

WEIGHT = 0.5


def turned_pairs(count, seed=0, longest=6):
    """Sentences of different tokens and EOS; token n is translated by 26 - n, from the last one to the first."""
    rng = np.random.default_rng(seed)
    sources = [rng.permutation(np.arange(4, 23))[: rng.integers(2, longest + 1)].tolist() for _ in range(count)]
    targets = [[26 - token for token in reversed(source)] for source in sources]
    return EncodedPairs(
        *(Sentences.of([[*ids, EOS] for ids in side], np.uint16) for side in (sources, targets)), collections.Counter()
    )


TURNED = turned_pairs(300)
LINKED = PackedBatches(
    TURNED, TRAINING.tokens_per_batch, TRAINING.row_lengths, 3, linker=Linker(TURNED, TINY.vocab_size)
)


# links


def links_of(batch):
    """(token of the source, token of the target) of each link of a batch, which stay in their segment."""
    rows, targets = np.nonzero(batch["links"] != NO_LINK)
    sources = batch["links"][rows, targets]
    assert (batch["source_segments"][rows, sources] == batch["target_segments"][rows, targets]).all()
    return list(zip(batch["source_ids"][rows, sources].tolist(), batch["labels"][rows, targets].tolist(), strict=True))


def test_every_word_is_linked_with_its_translation_wherever_it_stands_and_no_end_of_a_sentence_is():
    batch = LINKED.batch(0)
    assert batch["target_segments"].max() > 1 and batch["links"].dtype == np.int32
    found = links_of(batch)
    assert all(source + target == 26 for source, target in found)
    assert len(found) == np.sum((batch["target_segments"] > 0) & (batch["labels"] != EOS))


def test_a_word_that_comes_twice_is_linked_with_the_nearer_one_each_time():
    twice = [[7, 9, 7, EOS]]
    same = EncodedPairs(*[Sentences.of(twice, np.uint16)] * 2, {})
    batch = lay_out(same, Packing(np.arange(1), np.arange(2)), RowLengths(5, 5))
    assert Linker(PAIRS, TINY.vocab_size)(batch).tolist() == [[0, 1, 2, NO_LINK, NO_LINK]]


def test_words_that_never_meet_are_not_linked():
    known = EncodedPairs(*(Sentences.of([[token, EOS]] * 9, np.uint16) for token in (5, 6)), {})
    other = EncodedPairs(*(Sentences.of([[token, EOS]], np.uint16) for token in (6, 5)), {})
    for pairs, link in ((known, 0), (other, NO_LINK)):
        batch = lay_out(pairs, Packing(np.arange(1), np.arange(2)), RowLengths(2, 2))
        assert Linker(known, TINY.vocab_size)(batch).tolist() == [[link, NO_LINK]]


def test_each_shard_is_linked_by_a_dictionary_of_its_own_and_none_without_guided_alignment():
    guided = TRAINING.model_copy(update={"guided_alignment": 0.1})
    copied = EncodedPairs(TURNED.source, TURNED.source, collections.Counter())
    batch = packed_batches(EncodedShards([TURNED, copied]), guided, 2, ONLY_WORKER, vocab_size=TINY.vocab_size).batch(0)
    half = len(batch["links"]) // 2
    turned, same = (
        links_of({name: ids[rows] for name, ids in batch.items()}) for rows in np.split(np.arange(2 * half), 2)
    )
    assert turned and all(source + target == 26 for source, target in turned)
    assert same and all(source == target for source, target in same)
    assert "links" not in packed_batches(EncodedShards([TURNED]), TRAINING, 1, ONLY_WORKER).batch(0)


# the loss


def test_the_loss_is_the_cross_entropy_of_the_mean_of_the_heads():
    heads = [[[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]], [[0.6, 0.4], [0.1, 0.9], [0.9, 0.1]]]  # (2, 3, 2)
    loss, links = alignment_sums(np.array([heads], "float32"), np.array([[0, NO_LINK, 1]], "int32"))
    assert (float(loss), float(links)) == (pytest.approx(-np.log(0.4) - np.log(0.2), rel=1e-6), 2)


def test_nothing_is_added_without_a_link():
    loss, links = alignment_sums(np.zeros((1, 2, 3, 4), "float32"), np.full((1, 3), NO_LINK, "int32"))
    assert (float(loss), float(links)) == (0, 0)


# the update


def sums_and_gradients(model, batch):
    return model.sums_and_gradients(tensors(batch), tf.constant(0), tf.constant(0))


def guided_model(**arguments):
    return training_model(**{"guided_alignment": WEIGHT} | arguments)


def alignment_loss(attending, batch):
    """The cross-entropy of the links of a batch, with a model that has its attention among its outputs."""
    weights = attending({name: batch[name] for name in attending.input})["decoder_block_1/memory"]
    rows, targets = np.nonzero(batch["links"] != NO_LINK)
    return -np.log(as_numpy(weights).mean(1)[rows, targets, batch["links"][rows, targets]]).sum()


def test_so_much_of_the_alignment_is_added_to_the_gradient_and_nothing_to_the_loss_that_is_logged():
    """The slope along the gradient that is added, by differences of what the attention says on both sides."""
    keras.utils.set_random_seed(1)
    transformer, batch = build_model(TINY.replace(dropout=0.0)), LINKED.batch(0)
    attending, strategy = with_attention(transformer), tf.distribute.get_strategy()
    guided, plain = (
        compiled(transformer, TRAINING.model_copy(update={"guided_alignment": weight}), strategy)
        for weight in (WEIGHT, 0.0)
    )
    sums, gradients, [of_links] = sums_and_gradients(guided, batch)
    plain_sums, plain_gradients, _ = sums_and_gradients(plain, batch)
    assert_close(sums, plain_sums)
    assert float(of_links.loss) == pytest.approx(alignment_loss(attending, batch), rel=1e-5)
    assert float(of_links.links) == np.sum(batch["links"] != NO_LINK)
    added = [as_numpy(one) - as_numpy(other) for one, other in zip(gradients, plain_gradients, strict=True)]
    square = sum((part**2).sum() for part in added)
    step, start, found = 0.01 / np.sqrt(square), weights_of(plain), []
    for sign in (1, -1):
        for weight, value, part in zip(plain.trainable_variables, start, added, strict=True):
            weight.assign(value + sign * step * part)
        found.append(WEIGHT * alignment_loss(attending, batch))
    assert (found[0] - found[1]) / (2 * step) == pytest.approx(square, rel=0.01)


def test_links_change_nothing_without_a_weight():
    linked, plain = training_model(), training_model()
    logs = train(linked, 0, 3, LINKED)
    without_links = PackedBatches(TURNED, TRAINING.tokens_per_batch, TRAINING.row_lengths, 3)
    assert logs == train(plain, 0, 3, without_links)
    for one, other in zip(weights_of(linked), weights_of(plain), strict=True):
        np.testing.assert_array_equal(one, other)


def flat(found):
    return [as_numpy(value) for value in tf.nest.flatten(found)]


def test_packed_rows_and_one_pair_per_row_have_the_same_sums_and_gradients():
    model, pairs, linker = guided_model(), np.arange(8), LINKED.linker
    found = []
    for offsets, length in ((np.array([0, 2, 5, 8]), 24), (np.arange(9), 7)):
        batch = lay_out(TURNED, Packing(pairs, offsets), RowLengths(length, length))
        found.append(flat(sums_and_gradients(model, batch | {"links": linker(batch)})))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("settings", [{"micro_batches": 2}, {"xla": True}])
def test_micro_batches_and_xla_give_the_same_updates(settings):
    (model, logs), (other, other_logs) = (
        (model, train(model, 0, 3, LINKED)) for model in (guided_model(), guided_model(**settings))
    )
    for step, expected in zip(other_logs, logs, strict=True):
        assert step == pytest.approx(expected, rel=1e-4)
    for one, expected in zip(weights_of(other), weights_of(model), strict=True):
        assert_close(one, expected, atol=1e-4)


def test_attention_that_is_taught_looks_at_links_and_one_that_is_not_elsewhere():
    batches = PackedBatches(PAIRS, 64, RowLengths(16, 16), 3, linker=Linker(PAIRS, TINY.vocab_size))  # to be copied
    judge, losses = guided_model(), []
    for weight in (WEIGHT, 0.0):
        model = training_model(learning_rate_factor=2.0, guided_alignment=weight)
        logs = train(model, 0, 40, batches)
        assert ("alignment_loss" in logs[0]) == (weight > 0)
        for variable, value in zip(judge.weights, weights_of(model), strict=True):
            variable.assign(value)
        losses.append(float(sums_and_gradients(judge, batches.batch(0))[2][0].loss))
    assert losses[0] < 0.5 * losses[1]


# the choice and the refusals


def test_words_are_aligned_by_the_attention_that_was_taught_though_others_miss_fewer_links():
    rates = [Rate(AlignedBy(block, reads), 0.4 - 0.1 * block, 200) for block in (1, 2, 3) for reads in (False, True)]
    assert eligible(rates, attentions=3, is_guided=False) == rates
    assert [rate.aligned_by for rate in eligible(rates, attentions=3, is_guided=True)] == [AlignedBy(2)]
    assert eligible([], attentions=3, is_guided=True) == []


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"model": {"kind": "recurrent", "attention": "none"}}, "attends to no source"),
        ({"data": {"source": "treebank", "files": ["trees"]}}, "trees"),
    ],
)
def test_what_has_no_alignment_is_refused_by_name(sections, sentence):
    values = {"run_folder": "r", "data": {"source": "numbers"}, "training": {"guided_alignment": 0.05}} | sections
    with pytest.raises(ConfigError, match=f"training.guided_alignment is 0.05.*{sentence}"):
        check_config(values, "run.toml")
