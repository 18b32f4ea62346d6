"""An export on a worker: loaded once per process, called with batches. TensorFlow is imported when one is opened."""

import contextlib
import functools
import gc
import logging
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from keras_transformer.ground.errors import first_line_of
from keras_transformer.text.road import Engine
from keras_transformer.text.signatures import Columns, SignatureEngine, as_texts, first_values

from .errors import ClusterError

EXPORT = "export"  # the folder among Spark's files on a worker
Outputs = list[dict[str, Any]]  # of each row, by name


class Refused(Exception):
    """A batch that the export cannot compute, because of one of its rows or because memory ran out."""


class GraphEngine(SignatureEngine):
    """A SavedModel. Needs TensorFlow and tensorflow-text alone.

    Raises ClusterError if it cannot be loaded.
    """

    def __init__(self, folder: str, threads: int):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)

        tf.config.optimizer.set_experimental_options(
            {"remapping": False}
        )  # keras_transformer/translation/parallel.py says why
        with contextlib.suppress(RuntimeError):  # a process that has computed before, as in tests, keeps its threads
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
        try:
            self._loaded = tf.saved_model.load(folder)  # owns the weights, so it must stay alive
        except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
            raise ClusterError(f"The export cannot be loaded: {first_line_of(error)}") from None
        self._defaults = defaults_in(folder)
        self._failures = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError

    def tells(self, name: str, output: str) -> bool:
        return name in self._loaded.signatures and output in self._loaded.signatures[name].structured_outputs

    def defaults(self, name: str) -> Mapping[str, Any]:
        return self._defaults.get(name, {})

    def call(self, name: str, columns: Columns) -> Columns:
        """Raises Refused if the outputs cannot be computed, and ClusterError if there is no such signature."""
        import tensorflow as tf

        function = self._loaded.signatures.get(name)
        if function is None:
            raise ClusterError(
                f"The export has no signature {name}; it has {', '.join(sorted(self._loaded.signatures)) or 'none'}. "
                "Export the run again with all of them."
            )
        types = {spec.name: spec.dtype for spec in function.structured_input_signature[1].values()}
        values = {key: [value] for key, value in self.defaults(name).items()} | columns
        try:
            outputs = function(**{key: tf.constant(value, types[key]) for key, value in values.items()})
        except self._failures as error:
            raise Refused(reason_in(error.message)) from None
        return {key: as_texts(value.numpy().tolist()) for key, value in outputs.items()}


def reason_in(message: str) -> str:
    """Return why a graph refuses a batch, of the message of TensorFlow: the sentence of its assertion, else a line."""
    if failed := re.search(r"assertion failed: \[(.*?)\]", message, re.DOTALL):
        return " ".join(failed[1].split())
    before_node = message.partition("[[{{node ")[0].removeprefix("Graph execution error:")
    lines = [line.strip() for line in before_node.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(("Detected at node", "<stack"))), "The graph failed.")


def defaults_in(folder: str) -> dict[str, dict[str, Any]]:
    """Return the default of each optional input of each signature: TensorFlow's own loading leaves them out."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    content = (pathlib.Path(folder) / "saved_model.pb").read_bytes()
    signatures = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].signature_def
    return {
        name: first_values({key: tf.make_ndarray(value).tolist() for key, value in signature.defaults.items()})
        for name, signature in signatures.items()
    }


def lite_engine(folder: str, threads: int) -> Engine:
    """Return a LiteRT model. Needs ai-edge-litert, sentencepiece and numpy alone. Raises UserError if damaged."""
    from keras_transformer.lite.translator import LiteTranslator

    return LiteTranslator(folder, threads=threads)


ENGINES: dict[str, Callable[[str, int], Engine]] = {"graph": GraphEngine, "lite": lite_engine}


@functools.cache
def opened(engine: str, threads: int) -> Engine | None:
    """Return the export that Spark sent to this process, which opens it once, by a key of ENGINES; None for ""."""
    from pyspark import SparkFiles

    logging.getLogger("keras_transformer").setLevel(logging.ERROR)  # warnings name lines of a batch
    export = ENGINES[engine](SparkFiles.get(EXPORT), threads) if engine else None
    gc.freeze()  # Spark collects garbage after each part: a third of a second with all objects of TensorFlow
    return export
