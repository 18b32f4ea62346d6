"""An export as a function from text to translations. Needs TensorFlow and tensorflow-text; no Keras, no model code."""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)

from export.versions import ExportError, find_version


class Translation(NamedTuple):
    """score: natural log-probability of the output over the length penalty; 0 or less, higher is better."""

    text: str
    score: float


class ExportedTranslator:
    """Translates with a SavedModel that `python -m export` wrote.

    `ExportedTranslator(folder)` takes the newest version in `folder`, or `folder` itself if it is a version.
    Sentences are translated in batches of similar length, and returned in their order.
    Raises ExportError where there is no such SavedModel.
    """

    def __init__(self, folder, batch_size=32):
        self.path, self.batch_size = find_version(folder), batch_size
        try:
            self._loaded = tf.saved_model.load(str(self.path))  # kept: it owns the weights
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise ExportError(f"{self.path} cannot be loaded: {first_line(error)}") from None
        self._translate = self._loaded.signatures.get("serving_default")
        if self._translate is None or set(self._translate.structured_outputs) != {"translation", "score"}:
            raise ExportError(f"{self.path} is a SavedModel, but not one that translates text.")

    def translate(self, lines):
        """The translation of each line, in their order: a list of Translation."""
        lines = list(lines)
        by_length = sorted(range(len(lines)), key=lambda number: len(lines[number]))
        results = [None] * len(lines)
        for first in range(0, len(lines), self.batch_size):
            numbers = by_length[first : first + self.batch_size]
            output = self._translate(text=tf.constant([lines[number] for number in numbers]))
            for number, text, score in zip(
                numbers, output["translation"].numpy(), output["score"].numpy(), strict=True
            ):  # fmt: skip
                results[number] = Translation(text.decode(), float(score))
        return results


def first_line(error):
    return str(error).strip().partition("\n")[0]
