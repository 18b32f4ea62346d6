"""What is logged before the first step: duplicates, overlap, lengths, and the time and memory of the run."""

import logging
import math
from collections.abc import Iterator

import numpy as np
import psutil

from keras_transformer.ground.durations import duration
from keras_transformer.ground.machine import gigabytes, has_bfloat16_products
from keras_transformer.model_config import BaseModelConfig

from ..config.training import OF_SCHEDULE, RowLengths, TrainingConfig
from ..data.cleaning import dropped_lines
from ..data.encoding import pair_keys, row_holding
from ..data.prepare import PreparedData
from ..data.statistics import length_sentence
from ..workers.hardware import WORTH_ROUNDING, bfloat16_gain, has_gpu, product_flops
from .cost import corpus_flops, parameter_count, passes_of, trained_count, training_memory
from .memory import free_memory

log = logging.getLogger("train")

WORTH_A_HINT = 0.02  # padding, and the difference between the padding of the two sides
FEW_TOO_LONG = 1_000  # one pair in so many may be left out
MANY_DUPLICATES = 0.25  # of all training pairs
MANY_IDENTICAL = 0.1  # of all training pairs; of text from the web, a few in a hundred are
HIGH_RATE = 0.01  # of Adam; the highest of configs/ is 0.0063
SMALL_BATCH = 1_000  # target tokens; the smallest of configs/ has 2,048
SUSTAINED = 0.6  # part of the speed of a large matrix product that training usually reaches


def report_preflight(training: TrainingConfig, data: PreparedData, transformer_config: BaseModelConfig, replicas: int):
    """Log all lines, which takes seconds. Lines about training text describe this worker's shards.

    Reads the text of the validation and test sets, but no training text. replicas: the number of devices of all
    workers.
    """
    rows, free = rows_at_once(training, data, replicas), free_memory()
    needed = training_memory(training, transformer_config, rows, data.batches.row_lengths, has_gpu())
    for line in (
        *corpus_lines(data),
        *identical_lines(data),
        *dropped_lines(data.train.shards),
        *length_lines(data),
        *row_lines(data),
        *lora_lines(training, transformer_config),
        *cost_lines(training, data, transformer_config, replicas),
        *memory_lines(needed, free, psutil.Process().memory_info().rss),
        *precision_lines(training),
        *warmup_lines(training),
        *batch_lines(training),
        *rate_lines(training, transformer_config.d_model),
    ):
        log.info(line)
    for line in (*too_long_lines(training, data), *memory_warnings(training, rows, needed, free)):
        log.warning(line)


def corpus_lines(data: PreparedData) -> Iterator[str]:
    """Duplicates in the training text, and pairs of the validation and test sets that it has too."""
    keys = np.sort(np.concatenate([shard.keys for shard in data.train.shards]))  # np.unique takes ten times as long
    duplicates = np.count_nonzero(keys[1:] == keys[:-1])
    many = duplicates > MANY_DUPLICATES * len(keys)
    warning = ": they are learned by heart; set data.clean.duplicates = true" if many else ""
    yield f"duplicates: {duplicates:,} of {len(keys):,} training pairs occur before in the same text{warning}"
    for name, split in (("validation", data.corpus.validation), ("test", data.corpus.test)):
        if split is not None:
            held_out = pair_keys(split)
            shared = np.count_nonzero(keys[np.searchsorted(keys, held_out).clip(max=len(keys) - 1)] == held_out)
            warning = ": scores will be too high; remove these pairs from the training text" if shared else ""
            yield f"overlap: {shared:,} of {len(held_out):,} {name} pairs are training pairs too{warning}"


def identical_lines(data: PreparedData) -> Iterator[str]:
    """Training pairs whose target is their source, which teach a model to copy."""
    identical, pairs = sum(shard.identical(data.languages) for shard in data.train.shards), len(data.train)
    warning = ": check that each side is of its own language" if identical > MANY_IDENTICAL * pairs else ""
    yield f"identical: {identical:,} of {pairs:,} training pairs have a target that is their source{warning}"


def length_lines(data: PreparedData) -> Iterator[str]:
    """Mean and percentiles of the lengths of training sentences, in tokens."""
    for side in ("source", "target"):
        yield f"{side} tokens per sentence: {length_sentence(data.train, side)}"


def too_long_lines(training: TrainingConfig, data: PreparedData) -> Iterator[str]:
    """A warning if training pairs are longer than a row and therefore left out, with rows that hold them."""
    lengths, too_long = training.row_lengths, data.train.too_long
    if not too_long:
        return
    pairs = len(data.train) + too_long.total()
    few = pairs // FEW_TOO_LONG
    holding = f"{rows_holding(training, row_holding(too_long))} would hold all pairs"
    if too_long.total() > few > 0:
        rows = rows_holding(training, row_holding(too_long, few))
        holding = f"{rows} would hold {1 - 1 / FEW_TOO_LONG:.1%} of all pairs, and {holding}"
    yield (
        f"too long: {too_long.total():,} of {pairs:,} training pairs do not fit into rows of {lengths.source} source "
        f"and {lengths.target} target tokens and are not trained on, so that such sentences will be translated badly; "
        f"{holding}"
    )


def rows_holding(training: TrainingConfig, row_length: int) -> str:
    """The settings of rows of this length; source_row_length, if it is set, in its ratio to row_length."""
    if training.source_row_length is None:
        return f"training.row_length = {row_length}"
    source = math.ceil(row_length * training.source_row_length / training.row_length)
    return f"training.row_length = {row_length} with training.source_row_length = {source}"


def row_lines(data: PreparedData) -> Iterator[str]:
    """A hint at better row lengths, if one side has much more padding because its sentences are shorter.

    The longer row length stays. The other one is shorter in proportion to the tokens, rounded up to a multiple of 4.
    """
    batches, tokens = data.batches, (data.train.source_tokens, data.train.target_tokens)
    longest = max(batches.row_lengths)
    fitting = RowLengths(*(4 * math.ceil(longest * count / max(tokens) / 4) for count in tokens))
    difference = abs(batches.padding.source - batches.padding.target)
    if fitting != batches.row_lengths and min(batches.padding.total, difference) > WORTH_A_HINT:
        yield (
            f"padding: {batches.padding.source:.1%} of the source side and {batches.padding.target:.1%} of the target "
            f"side, because there are {tokens[0] / tokens[1]:.2f} source tokens per target token; "
            f"training.source_row_length = {fitting.source} with training.row_length = {fitting.target} would leave "
            "less"
        )


def cost_lines(
    training: TrainingConfig, data: PreparedData, transformer_config: BaseModelConfig, replicas: int
) -> Iterator[str]:
    """Tokens and FLOPs of a step, and an estimate of the run's time."""
    batches = data.batches
    tokens = batches.rows_per_batch * batches.row_lengths.target * (1 - batches.padding.target)
    flops = corpus_flops(transformer_config, data.train, tokens, passes_of(training))
    seconds = flops / (SUSTAINED * product_flops(training) * replicas) * training.steps
    yield (
        f"a step: about {tokens:,.0f} target tokens, {flops:.2e} FLOPs; {training.steps:,} steps take about "
        f"{duration(seconds)} at {SUSTAINED:.0%} of the speed of a matrix product, devices: {replicas}; "
        "compilation, validations and checkpoints come on top"
    )


def lora_lines(training: TrainingConfig, transformer_config: BaseModelConfig) -> Iterator[str]:
    """With LoRA, how many parameters are trained beside those of the model."""
    if training.lora_rank:
        trained, whole = trained_count(training, transformer_config), parameter_count(transformer_config)
        yield (
            f"LoRA of rank {training.lora_rank}: {trained:,} parameters are trained, {trained / whole:.2%} of the "
            f"{whole:,} of the model"
        )


def memory_lines(needed: int, free: int | None, held: int) -> Iterator[str]:
    """The estimate of what training takes of a device; on a CPU what this process holds already, and what is free."""
    beside = "" if free is None else f" beside the {gigabytes(held)} of this process; free: {gigabytes(free)}"
    yield f"memory of one device: about {gigabytes(needed)}{beside}"


def memory_warnings(training: TrainingConfig, rows: int, needed: int, free: int | None) -> Iterator[str]:
    """A warning, with the keys that lower it, if a device has less memory than `rows` rows at once need."""
    if free is None or needed <= free:
        return
    shortage = f"memory: a step of {rows} rows at once takes about {gigabytes(needed)}, and {gigabytes(free)} are free"
    if training.find_micro_batches:
        yield f"{shortage}: training.find_micro_batches looks for fewer rows that fit"
        return
    halves = 'training.precision = "mixed_bfloat16" with ' if training.precision == "float32" else ""
    in_half = f", or set {halves}training.xla = false" if training.xla or halves else ""  # XLA widens halves on a CPU
    yield (
        f"{shortage}, so that it may end this process: raise training.micro_batches from {training.micro_batches}, let "
        "training.find_micro_batches = true find what fits, lower training.tokens_per_batch from "
        f"{training.tokens_per_batch:,}{in_half}"
    )


def rows_at_once(training: TrainingConfig, data: PreparedData, replicas: int) -> int:
    """Rows that a device processes together."""
    return data.batches.rows_per_batch // (replicas * training.micro_batches)


def precision_lines(training: TrainingConfig) -> Iterator[str]:
    """On a processor, how much faster it multiplies in `training.precision` than in float32, as measured now."""
    if training.precision == "float32" or has_gpu():
        return
    if training.precision == "mixed_float16":
        yield 'a CPU multiplies in float16 no faster than in float32: set training.precision = "float32"'
    elif not has_bfloat16_products():
        yield 'this processor has no instructions for bfloat16 products: set training.precision = "float32"'
    else:
        times = bfloat16_gain(training.xla)
        advice = "" if times >= WORTH_ROUNDING else ': set training.precision = "float32"'
        yield f"precision: bfloat16, in which this processor multiplies {times:.1f} times as fast as in float32{advice}"


def warmup_lines(training: TrainingConfig) -> Iterator[str]:
    """A warning if training ends before the learning rate has reached its peak."""
    if training.schedule in OF_SCHEDULE["warmup_steps"] and training.warmup_steps > training.steps:
        yield (
            f"training.warmup_steps {training.warmup_steps:,} is more than training.steps {training.steps:,}: the "
            "learning rate never reaches its peak; lower warmup_steps or raise steps"
        )


def batch_lines(training: TrainingConfig) -> Iterator[str]:
    """A warning if a batch has so few tokens that its gradient is mostly noise."""
    if training.tokens_per_batch < SMALL_BATCH:
        yield (
            f"training.tokens_per_batch {training.tokens_per_batch:,} is small, so that gradients are mostly noise: "
            "the recipes of this project have 2,048 and more; training.micro_batches lets as many fit in memory"
        )


def rate_lines(training: TrainingConfig, d_model: int) -> Iterator[str]:
    """A warning if the highest learning rate is one with which Adam does not learn, or diverges."""
    rate, lower = training.learning_rate, "lower training.learning_rate"
    if training.schedule == "paper":
        reached = min(training.steps, training.warmup_steps)
        rate = training.learning_rate_factor * d_model**-0.5 * reached * training.warmup_steps**-1.5
        lower = "raise training.warmup_steps or lower training.learning_rate_factor"
    if rate > HIGH_RATE and training.optimizer.startswith("adam"):
        yield (
            f"the learning rate rises to {rate:.3g}; above {HIGH_RATE} a Transformer rarely learns, and may diverge: "
            f"{lower}"
        )
