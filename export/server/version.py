"""One version of a SavedModel in memory: a session that computes its signatures, as in a C++ server."""

import contextlib
import functools
import gc
import logging
import pathlib
import threading
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.memory import return_freed_memory
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.versions import CERTIFICATE, LITERT, MOST_BYTES, WARM_UP_REQUESTS, is_number, languages_in
from keras_transformer.text.placeholders import placeholders_known

from ..graph.operations import meta_graph
from ..versions import ExportError
from .errors import RequestError, from_tensorflow, invalid
from .few_sentences import few_sentences_of
from .messages import run_messages, text_output
from .paragraphs import OF_TEXTS, PARAGRAPHS, SPANS, run_paragraphs, with_paragraphs
from .protection import PROTECT, Traits, run_protected, with_protection
from .protobuf_codec import array_of
from .signature import Arrays, Signature, read_signature, signature_named

IN_THE_CALLING_THREAD = tf.compat.v1.RunOptions(inter_op_thread_pool=-1)  # operations start no other thread

log = logging.getLogger("export.server")


class Version:
    """A loaded version folder: `FOLDER/3` is the version 3.

    It is a session of the graph, as in TensorFlow Serving, so closing it frees its memory. Each `run` computes in the
    thread that calls it; several threads may call it at the same time. If the version holds a LiteRT model too, that
    answers requests of few sentences (few_sentences.py).

    Raises ExportError if the folder holds no SavedModel, or a damaged one.
    """

    def __init__(self, path: pathlib.Path):
        self.path, self.number = path, int(path.name) if is_number(path.name) else 1
        self.model = ""  # the name of the model, which a ModelFolder knows
        self.users = 0  # requests that it is answering
        self.languages = languages_in(path)
        graph = tf.Graph()
        threads = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, use_per_session_threads=True
        )
        # Only of the graph around the functions, which does nothing: a function is optimized at its first call.
        threads.graph_options.rewrite_options.disable_meta_optimizer = True
        self._session = tf.compat.v1.Session(graph=graph, config=threads)
        try:
            definitions = meta_graph(path).signature_def
            with graph.as_default(), without_warnings():
                tf.compat.v1.saved_model.loader.load(self._session, ["serve"], str(path))
            self.signatures = {
                name: with_paragraphs(with_protection(read_signature(name, definition)))
                for name, definition in definitions.items()
                if not name.startswith("__saved_model")
            }
        except Exception as error:  # a damaged file may cause any
            self._session.close()
            raise ExportError(f"{path} cannot be loaded: {first_line_of(error)}") from None
        self._few = few_sentences_of(path / LITERT)
        self.definitions = {name: definitions[name] for name in self.signatures}
        self.example = example_of(path)
        self._aligns = aligns(path)

    def run(self, signature: Signature, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
        """Compute `outputs` from all inputs of the signature. Raises RequestError if the graph fails."""
        if PARAGRAPHS not in inputs:
            return self._run_lines(signature, outputs, inputs)
        if inputs[PARAGRAPHS].any() and len(inputs["text"]):
            return run_paragraphs(functools.partial(self._run_lines, signature), outputs, inputs)
        lines = {name: values for name, values in inputs.items() if name not in OF_TEXTS}
        found = self._run_lines(signature, tuple(name for name in outputs if name != SPANS), lines)
        return found | {name: np.full(len(inputs["text"]), b"", object) for name in outputs if name == SPANS}

    def _run_lines(self, signature: Signature, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
        if self._few is not None and self._few.can_run(signature, inputs):
            with contextlib.suppress(UnicodeError, UserError):  # the graph knows what to answer
                return self._few.run(outputs, inputs)
        text = text_output(signature)
        if text is None:
            return self._compute(signature, outputs, inputs)
        return run_messages(functools.partial(self._run_sentences, signature), outputs, inputs, text)

    def _run_sentences(
        self, signature: Signature, outputs: tuple[str, ...], inputs: Arrays, branches: Collection[int]
    ) -> Arrays:
        if PROTECT.name in inputs:
            compute = functools.partial(self._compute, signature)
            return run_protected(compute, outputs, inputs, self._traits, branches)
        return self._compute(signature, outputs, inputs)

    @functools.cached_property
    def _traits(self) -> Traits:
        tokenize = self.signatures.get("tokenize")
        if tokenize is None:
            return Traits(aligns=self._aligns)

        def pieces_of(text: str) -> list[str]:
            outputs = self._compute(tokenize, ("pieces",), {"text": np.array([text.encode()], object)})
            return outputs["pieces"][0].decode().split(" ")

        return Traits(placeholders_known(pieces_of), self._aligns)

    def _compute(self, signature: Signature, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
        # All outputs: a session prepares the functions of the graph anew for each other set, which takes seconds.
        fetches = {name: output.graph_name for name, output in signature.outputs.items() if output.graph_name}
        feeds = {signature.inputs[name].graph_name: array for name, array in inputs.items()}
        try:
            values = self._session.run(fetches, feeds, options=IN_THE_CALLING_THREAD)
        except tf.errors.OpError as error:
            raise from_tensorflow(error) from None
        except (ValueError, TypeError) as error:  # the session itself refuses an input
            raise invalid(first_line_of(error)) from None
        found = {name: values[name] for name in outputs}
        return {name: np.asarray(value, object if isinstance(value, bytes) else None) for name, value in found.items()}

    def warm_up(self) -> int:
        """Answer the warm-up requests that the version contains. Returns their number."""
        count = 0
        try:
            for request in warm_up_requests(self.path):
                signature = signature_named(self.signatures, request.model_spec.signature_name)
                inputs = {name: array_of(name, tensor) for name, tensor in request.inputs.items()}
                self.run(signature, signature.output_names([]), signature.complete(inputs))
                count += 1
        except (RequestError, tf.errors.OpError, DecodeError) as error:  # then the first requests are slower
            log.warning("%s: warm-up ended after %d requests: %a", self.path, count, first_line_of(error))
        return_freed_memory()
        if gc.get_freeze_count():
            gc.freeze()
        return count

    def close(self) -> None:
        """Free the memory, in a thread of its own. All requests must have ended."""
        self._session.close()
        del self._session  # a session that is closed still holds the graph
        threading.Thread(target=collect_graphs, name="freed memory", daemon=True).start()


def collect_graphs() -> None:
    """Free graphs that nobody uses: they are circles of references, 0.1 GB each, which Python might keep for long.

    In a process that has frozen its objects, it freezes those that stay again.
    """
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:
        gc.unfreeze()
    gc.collect()
    if is_frozen:
        gc.freeze()
    return_freed_memory()


def example_of(path: pathlib.Path) -> str:
    """Return the example sentence of a version's certificate, or an empty string if there is none."""
    return str(certified(path, "example", ""))


def aligns(path: pathlib.Path) -> bool:
    """Return whether the model of a version aligns words, as all but those without attention do."""
    return certified(path, "alignment_layer", 1) != 0


def certified(path: pathlib.Path, key: str, otherwise: Any) -> Any:
    """Return what a version's certificate says, or `otherwise`."""
    try:
        with (path / CERTIFICATE).open("rb") as file:
            return json_of(file.read(MOST_BYTES))[key]
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or it is older or damaged
        return otherwise


def warm_up_requests(path: pathlib.Path) -> Iterator[PredictRequest]:
    """Yield the requests that a version contains for its warm-up."""
    file = path / WARM_UP_REQUESTS
    if not file.exists():
        return
    for record in tf.data.TFRecordDataset(str(file)):
        yield PredictionLog.FromString(record.numpy()).predict_log.request


class without_warnings:
    """Within, TensorFlow does not warn that this loader is deprecated: it is the loader that servers use."""

    _lock = threading.Lock()

    def __enter__(self):
        self._lock.acquire()
        self._level = tf.compat.v1.logging.get_verbosity()
        tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

    def __exit__(self, *exception):
        tf.compat.v1.logging.set_verbosity(self._level)
        self._lock.release()
