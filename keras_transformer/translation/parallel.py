"""Batches that are translated at the same time, one per processor core."""

import concurrent.futures
import logging
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.ground.machine import processor_cores
from keras_transformer.pieces.batching import batches_by_length

log = logging.getLogger("keras_transformer")


def tune_for_translation(threads: int | None = None) -> None:
    """Set what makes searches fast, for the whole process: call it before anything else of TensorFlow.

    Each operation has one thread, so that the cores, or `threads`, serve batches that are searched at once. If
    TensorFlow has computed anything before, its threads stay as they are: then this is logged. Its graph optimizer does
    not fuse products with what follows them: for few rows the fused ones take longer, and fusing delays the first
    search.
    """
    tf.config.optimizer.set_experimental_options({"remapping": False})
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(threads or processor_cores())
    except RuntimeError:
        log.debug("TensorFlow has started its threads already: operations may use several of them")


def map_batches(translate: Callable[[list[int]], None], lengths: dict[int, int], batch_size: int) -> None:
    """Call `translate` for batches of items of similar length, several batches at once: see `searches_at_once`.

    `lengths`: the length of each item by its number. `translate` gets the numbers of a batch, at most `batch_size`.
    Raises what a call raises.
    """
    workers = searches_at_once()
    batch_size = min(batch_size, -(-len(lengths) // workers) or 1)
    batches = list(batches_by_length(lengths, batch_size))[::-1]  # the longest first, so that no worker is last
    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        for _ in executor.map(translate, batches):
            pass


def searches_at_once() -> int:
    """Return how many batches to search at the same time: one per processor core, one alone on an accelerator."""
    return 1 if sees_gpu() else processor_cores()


def sees_gpu() -> bool:
    """Return whether TensorFlow computes on a GPU."""
    return bool(tf.config.list_physical_devices("GPU"))
