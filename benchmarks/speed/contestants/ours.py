"""This project's training step, built as `keras-transformer train` builds it."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from benchmarks.speed.contestants import Contestant, Lane
from benchmarks.speed.contestants.workload import FIRST_PIECE, Workload, blocks
from keras_transformer.ground.tokens import EOS
from keras_transformer.losses import token_sums
from train.config.training import RowLengths, TrainingConfig
from train.data.batches import PackedBatches, training_dataset
from train.data.encoding import EncodedPairs, Sentences
from train.run import build
from train.step.training_model import compiled
from train.workers.strategy import choose_strategy
from train.workers.workers import Workers

PAIRS = 29_000  # as many as Multi30k has
# Tokens per sentence, normally distributed, about as in Multi30k
MEAN_LENGTH, DEVIATION, SHORTEST = 14.0, 4.5, 5
ENDLESS = 10**9  # steps


def prepare(workload: Workload) -> Contestant:
    """Three lanes: the batch of all contestants; one packed batch, repeated; batches packed during training."""
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


def prepare_bfloat16(workload: Workload) -> Contestant:
    """The batch of all contestants in mixed_bfloat16.

    No loss is compared: bfloat16 has another one than float32.
    """
    transformer, model = trained_model(workload, precision="mixed_bfloat16")
    lane = Lane(trainer(model, repeated(workload.batch())), workload.tokens)
    return Contestant({"ours_bfloat16": lane}, transformer.count_params())


def trained_model(workload: Workload, precision: str = "float32") -> tuple[keras.Model, keras.Model]:
    """The Transformer at the starting weights, and the TrainingModel around it."""
    training = TrainingConfig(
        tokens_per_batch=workload.tokens,
        row_length=workload.length,
        warmup_steps=workload.warmup_steps,
        precision=precision,
    )
    strategy = choose_strategy()
    transformer = build(workload.config, training, Workers(strategy))
    load(transformer, workload)
    return transformer, compiled(transformer, training, strategy)


def load(transformer: keras.Model, workload: Workload) -> None:
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


def trainer(model: keras.Model, dataset: tf.data.Dataset) -> Callable[[int], float]:
    """A function that trains for a number of steps and returns the loss of the last one."""
    train_function, batches = model.make_train_function(), iter(dataset)

    def run(steps: int) -> float:
        for _ in range(steps):
            logs = train_function(batches)
        return float(logs["loss"])

    return run


def repeated(batch: dict[str, np.ndarray]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(batch).repeat()


def packed_batches(workload: Workload) -> PackedBatches:
    """Synthetic sentence pairs with lengths like Multi30k's, packed as for training, anew in each epoch."""
    rng = np.random.default_rng(1)
    row_length = workload.packed_length
    longest = np.clip(rng.normal(MEAN_LENGTH, DEVIATION, PAIRS), SHORTEST, row_length)
    source_lengths = longest.astype(int)
    target_lengths = np.clip(source_lengths + rng.integers(-2, 3, PAIRS), SHORTEST, row_length)
    pairs = EncodedPairs(*(sentences(rng, lengths, workload) for lengths in (source_lengths, target_lengths)), {})
    return PackedBatches(pairs, max(workload.tokens, row_length), RowLengths(row_length, row_length), seed=1)


def sentences(rng: np.random.Generator, lengths: np.ndarray, workload: Workload) -> Sentences:
    ids = rng.integers(FIRST_PIECE, workload.config.vocab_size, lengths.sum()).astype(np.uint16)
    ends = np.cumsum(lengths)
    ids[ends - 1] = EOS
    return Sentences(ids, np.concatenate([[0], ends]))


def loss_of(transformer: keras.Model, workload: Workload) -> float:
    batch = workload.batch()
    labels = batch.pop("labels")
    logits = transformer(batch, training=False)
    sums = token_sums(logits, labels, batch["target_segments"], workload.config.label_smoothing)
    return float(sums.loss / sums.tokens)
