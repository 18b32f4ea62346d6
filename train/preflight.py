"""What is worth knowing before the first step: duplicates, overlap, lengths, and what the run will take."""

import hashlib
import logging
import time

import numpy as np

from train.callbacks import duration
from train.flops import corpus_flops

log = logging.getLogger("train")

PERCENTILES = (50, 90, 99, 100)
SUSTAINED = 0.6  # share of a large matrix product's speed that training reaches, as a rule


def report_preflight(config, data, settings, replicas):
    """Log it all. `settings` is the TransformerConfig; takes seconds, and reads each split once more."""
    for line in (*corpus_lines(data.corpus), *length_lines(data), *cost_lines(config, data, settings, replicas)):
        log.info(line)


def corpus_lines(corpus):
    """Duplicates in training, and pairs of validation and test that are in training as well."""
    keys = pair_keys(corpus.train)
    distinct = np.unique(keys)
    yield f"duplicates: {len(keys) - len(distinct):,} of {len(keys):,} training pairs occur before in the same text"
    for name, split in (("validation", corpus.validation), ("test", corpus.test)):
        if split is not None:
            held_out = pair_keys(split)
            shared = int(np.isin(held_out, distinct).sum())
            warning = ": its scores will flatter; take these pairs out of training" if shared else ""
            yield f"overlap: {shared:,} of {len(held_out):,} {name} pairs are training pairs too{warning}"


def pair_keys(split):
    """uint64 (pairs,): equal for equal pairs. Two different ones agree once in 2^64, so that millions may be kept."""
    digests = (
        hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()  # no sentence holds a line feed
        for source, target in split
    )
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def length_lines(data):
    """How long the sentences are that are trained on."""
    for side in ("source", "target"):
        lengths = getattr(data.train, side).lengths
        found = ", ".join(f"{int(value)}" for value in np.percentile(lengths, PERCENTILES))
        yield f"{side} tokens a sentence: mean {lengths.mean():.1f}; percentiles {PERCENTILES}: {found}"


def cost_lines(config, data, settings, replicas):
    """Tokens and FLOPs of a step; time and memory, estimated."""
    batches = data.batches
    tokens = batches.rows_per_batch * batches.row_length * (1 - batches.target_padding)
    flops = corpus_flops(settings, data.train, tokens)
    seconds = flops / (SUSTAINED * matrix_flops() * replicas) * config.training.steps
    yield (
        f"a step: about {tokens:,.0f} target tokens, {flops:.2e} FLOPs; {config.training.steps:,} steps take about "
        f"{duration(seconds)} at {SUSTAINED:.0%} of the speed of a matrix product, devices: {replicas}"
    )
    parts = replicas * config.training.micro_batches
    yield f"memory of one device: about {memory_bytes(settings, batches, parts) / 2**30:.1f} GiB"


def matrix_flops(size=1024, seconds=0.5):
    """Float32 FLOPs a second of a matrix product on this device, the best of what fits into half a second."""
    import tensorflow as tf

    matrix = tf.random.normal((size, size))
    product = tf.function(lambda a: tf.reduce_sum(tf.matmul(a, a)))
    product(matrix).numpy()
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        product(matrix).numpy()
        best = min(best, time.perf_counter() - before)
    return 2 * size**3 / best


def memory_bytes(settings, batches, parts):
    """Weights, gradients and Adam's two moments; logits and their gradient; what the backward pass keeps of each block.

    An estimate from shapes in float32, for a batch done in `parts`, by devices or one after the other: a block keeps
    about 8 arrays of d_model, 2 of d_ff and one of scores a head.
    """
    from keras_transformer.model import parameter_count

    rows, length = batches.rows_per_batch // parts, batches.row_length
    blocks = settings.encoder_layers + 2 * settings.decoder_layers
    a_position = blocks * (8 * settings.d_model + 2 * settings.d_ff + 2 * settings.num_heads * length)
    return 4 * (4 * parameter_count(settings) + rows * length * (2 * settings.vocab_size + a_position))
