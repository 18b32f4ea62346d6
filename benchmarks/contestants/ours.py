"""This project's training step, built as `python -m train` builds it."""

import numpy as np
import tensorflow as tf

from benchmarks.contestants import Contestant, Lane
from benchmarks.contestants.workload import FIRST_PIECE, blocks
from keras_transformer.losses import token_sums
from keras_transformer.tokens import EOS
from train.config import RowLengths, TrainingConfig
from train.data.batches import PackedBatches, training_dataset
from train.data.encoding import EncodedPairs, Sentences
from train.run import build
from train.workers.strategy import choose_strategy

PAIRS = 29_000  # as many as Multi30k has
LENGTHS = {
    "mean": 14.0,
    "deviation": 4.5,
    "shortest": 5,
}  # about those of its sentences in tokens, normally distributed
ENDLESS = 10**9  # steps


def prepare(workload):
    """Three lanes: the batch of all contestants; one packed batch, again and again; packed batches made on the way."""
    transformer, model = trained_model(workload)
    packed = packed_batches(workload)
    first = packed.batch(0)
    some = [packed.batch(step) for step in range(8)]
    packed_tokens = np.mean([np.count_nonzero(batch["target_segments"]) for batch in some])
    lanes = {
        "ours": Lane(trainer(model, repeated(workload.batch())), workload.tokens),
        "ours_packed_constant": Lane(trainer(model, repeated(first)), packed_tokens),
        "ours_packed_real": Lane(trainer(model, training_dataset(packed, 0, ENDLESS)), packed_tokens),
    }
    return Contestant(lanes, transformer.count_params(), loss_of(transformer, workload))


def trained_model(workload):
    """The Transformer at the starting weights, and the TrainingModel around it."""
    training = TrainingConfig(
        tokens_per_batch=workload.tokens, row_length=workload.length, warmup_steps=workload.warmup_steps
    )
    transformer, model = build(training, workload.config, choose_strategy())
    load(transformer, workload)
    return transformer, model


def load(transformer, workload):
    weights = workload.weights()
    transformer.get_layer("embedding").matrix.assign(weights["embedding"])
    for name, attentions in blocks(workload.config):
        block = transformer.get_layer(name)
        for attention in attentions:
            for projection in ("query", "key", "value", "output"):
                dense = getattr(getattr(block, attention), f"{projection}_projection")
                dense.kernel.assign(weights[f"{name}.{attention}.{projection}"])
        block.feed_forward.inner.kernel.assign(weights[f"{name}.inner"])
        block.feed_forward.outer.kernel.assign(weights[f"{name}.outer"])


def trainer(model, dataset):
    """A function that trains for so many more steps on a dataset, and returns the loss of the last one."""
    train_function, batches = model.make_train_function(), iter(dataset)

    def run(steps):
        for _ in range(steps):
            logs = train_function(batches)
        return float(logs["loss"])

    return run


def repeated(batch):
    return tf.data.Dataset.from_tensors(batch).repeat()


def packed_batches(workload):
    """Synthetic sentence pairs with lengths like Multi30k's, packed as for training; each epoch anew."""
    rng = np.random.default_rng(1)
    row_length = workload.packed_length
    longest = np.clip(rng.normal(LENGTHS["mean"], LENGTHS["deviation"], PAIRS), LENGTHS["shortest"], row_length)
    source_lengths = longest.astype(int)
    target_lengths = np.clip(source_lengths + rng.integers(-2, 3, PAIRS), LENGTHS["shortest"], row_length)
    pairs = EncodedPairs(*(sentences(rng, lengths, workload) for lengths in (source_lengths, target_lengths)), {})
    return PackedBatches(pairs, max(workload.tokens, row_length), RowLengths(row_length, row_length), seed=1)


def sentences(rng, lengths, workload):
    ids = rng.integers(FIRST_PIECE, workload.config.vocab_size, lengths.sum()).astype(np.uint16)
    ends = np.cumsum(lengths)
    ids[ends - 1] = EOS
    return Sentences(ids, np.concatenate([[0], ends]))


def loss_of(transformer, workload):
    batch = workload.batch()
    labels = batch.pop("labels")
    logits = transformer(batch, training=False)
    sums = token_sums(logits, labels, batch["target_segments"], workload.config.label_smoothing)
    return float(sums.loss / sums.tokens)
