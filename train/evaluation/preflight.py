"""What is worth knowing before the first step: duplicates, overlap, lengths, and what the run will take."""

import logging
import time

import numpy as np

from train.data.encoding import pair_keys
from train.evaluation.cost import corpus_flops, memory_bytes
from train.loop.progress import duration

log = logging.getLogger("train")

PERCENTILES = (50, 90, 99, 100)
WORTH_A_WORD = 0.02  # padding, and the difference between the two sides'
SUSTAINED = 0.6  # share of a large matrix product's speed that training reaches, as a rule


def report_preflight(config, data, settings, replicas):
    """Log it all, in seconds. `settings` is the TransformerConfig. Reads the text of validation and test, not training.

    What is said of training text is about this worker's shards.
    """
    lines = (*corpus_lines(data), *length_lines(data), *row_lines(data), *cost_lines(config, data, settings, replicas))
    for line in lines:
        log.info(line)


def corpus_lines(data):
    """Duplicates in training, and pairs of validation and test that are in training as well."""
    keys = np.sort(np.concatenate([shard.keys for shard in data.train.shards]))  # np.unique takes ten times as long
    duplicates = np.count_nonzero(keys[1:] == keys[:-1])
    yield f"duplicates: {duplicates:,} of {len(keys):,} training pairs occur before in the same text"
    for name, split in (("validation", data.corpus.validation), ("test", data.corpus.test)):
        if split is not None:
            held_out = pair_keys(split)
            shared = np.count_nonzero(keys[np.searchsorted(keys, held_out).clip(max=len(keys) - 1)] == held_out)
            warning = ": its scores will flatter; take these pairs out of training" if shared else ""
            yield f"overlap: {shared:,} of {len(held_out):,} {name} pairs are training pairs too{warning}"


def length_lines(data):
    """How long the sentences are that are trained on."""
    for side in ("source", "target"):
        lengths = np.concatenate([getattr(shard, side).lengths for shard in data.train.shards])
        found = ", ".join(f"{int(value)}" for value in np.percentile(lengths, PERCENTILES))
        yield f"{side} tokens a sentence: mean {lengths.mean():.1f}; percentiles {PERCENTILES}: {found}"


def row_lines(data):
    """Row lengths that would fit the two sides' tokens, where much of one side stays empty because they differ."""
    source, target, batches = data.train.source_tokens, data.train.target_tokens, data.batches
    longest = max(batches.row_lengths)
    fitting = [-(-longest * tokens // max(source, target) // 4) * 4 for tokens in (source, target)]
    if min(batches.padding.total, abs(batches.padding.source - batches.padding.target)) > WORTH_A_WORD:
        yield (
            f"padding: {batches.padding.source:.1%} of the source side and {batches.padding.target:.1%} of the target "
            f"side, for there are {source / target:.2f} source tokens to a target token; "
            f"training.source_row_length = {fitting[0]} with training.row_length = {fitting[1]} would leave less"
        )


def cost_lines(config, data, settings, replicas):
    """Tokens and FLOPs of a step; time and memory, estimated."""
    batches = data.batches
    tokens = batches.rows_per_batch * batches.row_lengths.target * (1 - batches.padding.target)
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
