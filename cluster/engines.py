"""An export on a worker: loaded once per process, called with batches. TensorFlow is imported when one is opened."""

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
from keras_transformer.text.signatures import Columns, SignatureEngine

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

        from keras_transformer.translation.exported import defaults_in
        from keras_transformer.translation.parallel import tune_for_translation

        tune_for_translation(threads)
        try:
            self._loaded = tf.saved_model.load(folder)  # owns the weights, so it must stay alive
        except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
            raise ClusterError(f"The export cannot be loaded: {first_line_of(error)}") from None
        self._defaults = defaults_in(pathlib.Path(folder))
        self._failures = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError

    def tells(self, name: str, output: str) -> bool:
        return name in self._loaded.signatures and output in self._loaded.signatures[name].structured_outputs

    def defaults(self, name: str) -> Mapping[str, Any]:
        return self._defaults.get(name, {})

    def call(self, name: str, columns: Columns) -> Columns:
        """Raises Refused if the outputs cannot be computed, and ClusterError if there is no such signature."""
        from keras_transformer.translation.exported import outputs_of_signature

        function = self._loaded.signatures.get(name)
        if function is None:
            raise ClusterError(
                f"The export has no signature {name}; it has {', '.join(sorted(self._loaded.signatures)) or 'none'}. "
                "Export the run again with all of them."
            )
        try:
            return outputs_of_signature(function, columns, self.defaults(name))
        except self._failures as error:
            raise Refused(reason_in(error.message)) from None


def reason_in(message: str) -> str:
    """Return why a graph refuses a batch, of the message of TensorFlow: the sentence of its assertion, else a line."""
    if failed := re.search(r"assertion failed: \[(.*?)\]", message, re.DOTALL):
        return " ".join(failed[1].split())
    before_node = message.partition("[[{{node ")[0].removeprefix("Graph execution error:")
    lines = [line.strip() for line in before_node.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(("Detected at node", "<stack"))), "The graph failed.")


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
