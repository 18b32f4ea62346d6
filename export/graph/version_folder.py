"""Write a version folder: the SavedModel, and requests that warm up a server before its first client."""

import contextlib
import gc
import json
import pathlib
from collections.abc import Iterator
from typing import TypeVar

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.eager import context  # without it, no way to say what a call that is written says
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import write_atomically
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.versions import LANGUAGES, WARM_UP_REQUESTS

from ..versions import ExportError
from .served_graph import ServedGraph

T = TypeVar("T")
WARM_UP_TOKENS = (8, 32, 128)  # lengths of the sentences in the requests
WARM_UP_ROWS = 32  # sentences of a full batch
QUICK = RewriterConfig(
    meta_optimizer_iterations=RewriterConfig.ONE,
    memory_optimization=RewriterConfig.NO_MEM_OPT,
    constant_folding=RewriterConfig.OFF,
    layout_optimizer=RewriterConfig.OFF,
    loop_optimization=RewriterConfig.OFF,
    remapping=RewriterConfig.OFF,
    shape_optimization=RewriterConfig.OFF,
)
FIRST_MERGE = 260  # 4 special ids and 256 bytes come first, then the most frequent pieces


def write_saved_model(served: ServedGraph, tokenizer: Tokenizer, folder: pathlib.Path, names: tuple[str, ...]) -> None:
    """Write a ServedGraph with all signatures, or with those of `names` alone, and warm-up requests into `folder`.

    Raises ExportError if a name is unknown, if `serving_default` is not among them, and if the folder cannot be
    written, for example because the disk is full.
    """
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    signatures = selected(served.signatures(), names)
    try:
        with without_garbage_collection(), quick_to_prepare():
            tf.saved_model.save(served, str(folder), signatures, options)
        write_warm_up_requests(folder, warm_up_batches(tokenizer, served.max_source_tokens), set(signatures))
        if served.languages != NO_LANGUAGES:
            write_atomically(folder / LANGUAGES, json.dumps(served.languages.as_json(), indent=1) + "\n")
    except tf.errors.OpError as error:
        raise ExportError(f"{folder} cannot be written: {first_line_of(error)}") from None


@contextlib.contextmanager
def quick_to_prepare() -> Iterator[None]:
    """Within, calls of functions that are written tell TensorFlow to optimize those functions in less time.

    A server optimizes each signature before its first run, which takes far longer than to answer. What is left out
    gains nothing here: folding of constants, layouts of images, fused operations, a second round. The answers take as
    long as with everything (docs/experiments.md).
    """
    now = context.context()
    before = now.function_call_options
    config = config_pb2.ConfigProto.FromString(before.config_proto_serialized)
    config.graph_options.rewrite_options.MergeFrom(QUICK)
    now.function_call_options = context.FunctionCallOptions(before.executor_type, config)
    try:
        yield
    finally:
        now.function_call_options = before


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Within, Python does not look for garbage, again and again, among the objects of a graph, all of which stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def selected(signatures: dict[str, T], names: tuple[str, ...]) -> dict[str, T]:
    """Return the signatures of these names, all of them for (). Raises ExportError for names that cannot be."""
    if unknown := sorted(set(names) - set(signatures)):
        raise ExportError(f"There is no signature {unknown[0]}: --signature can be {', '.join(signatures)}.")
    if names and "serving_default" not in names:
        raise ExportError(
            f"--signature {' --signature '.join(names)} leaves out serving_default, with which every version "
            "translates: add --signature serving_default."
        )
    return {name: signatures[name] for name in names or signatures}


def warm_up_batches(tokenizer: Tokenizer, max_source_tokens: int) -> list[list[str]]:
    """Return sentences of a few lengths: a batch of each, a batch of all, and a full batch of the shortest one."""
    lengths = sorted({min(length, max_source_tokens) for length in WARM_UP_TOKENS})
    pieces = range(min(FIRST_MERGE, tokenizer.vocab_size - 1), tokenizer.vocab_size)
    sentences = [tokenizer.decode([pieces[index % len(pieces)] for index in range(length)]) for length in lengths]
    return [[sentence] for sentence in sentences] + [sentences, sentences[:1] * WARM_UP_ROWS]


def write_warm_up_requests(folder: pathlib.Path, batches: list[list[str]], names: set[str]) -> None:
    """Write a TFRecord file with one PredictionLog per batch of sentences, and one per other signature in `names`.

    TensorFlow Serving answers these requests when it loads the version, before those of clients.
    """
    path = folder / WARM_UP_REQUESTS
    path.parent.mkdir()
    requests = [("serving_default", {"text": batch}) for batch in batches]
    further_inputs = {"translate": {}, "score": {"translation": batches[0]}, "tokenize": {}, "explain": {}}
    requests += [(name, {"text": batches[0], **inputs}) for name, inputs in further_inputs.items()]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name, inputs in requests:
            if name in names:
                writer.write(prediction_log(name, **inputs).SerializeToString())


def prediction_log(signature_name: str, **inputs) -> PredictionLog:
    """Return a request to a signature as TensorFlow Serving records it; `inputs` are values or tensors."""
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature_name
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return log
