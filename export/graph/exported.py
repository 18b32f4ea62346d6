"""An export as a function from text to translations. It needs TensorFlow and tensorflow-text, but no model code."""

import logging
import os
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE, list_of_lines
from keras_transformer.pieces.translation import OUTPUTS, Translation, translations_of
from keras_transformer.translation.parallel import map_batches, tune_for_translation

from ..versions import ExportError, find_version

log = logging.getLogger("keras_transformer")


class ExportedTranslator:
    """Translates with a SavedModel that `keras-transformer export` wrote.

    `ExportedTranslator(folder)` opens the newest version in `folder`, or `folder` itself if it is a version.
    Sentences are translated in batches of similar length; the translations are in the order of the sentences.
    Raises ExportError if there is no such SavedModel, or if it is damaged.
    """

    def __init__(self, folder: str | os.PathLike, batch_size: int = BATCH_SIZE):
        if batch_size < 1:
            raise ExportError(f"batch_size is {batch_size}; it must be at least 1.")
        self.path, self.batch_size = find_version(folder), batch_size
        try:
            self._loaded = tf.saved_model.load(str(self.path))  # owns the weights, so it must stay alive
        except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
            raise ExportError(f"{self.path} cannot be loaded: {first_line_of(error)}") from None
        self._translate = self._loaded.signatures.get("serving_default")
        if self._translate is None or not {"translation", "score"} <= set(self._translate.structured_outputs):
            raise ExportError(
                f"{self.path} is a SavedModel that does not translate text: it has no signature serving_default with "
                "the outputs translation and score."
            )
        tokenize = self._loaded.signatures.get("tokenize")
        tells = tokenize is not None and "truncated" in tokenize.structured_outputs  # which older exports do not
        self._tokenize = tokenize if tells else None

    def translate(self, lines: Iterable[str], first_line: int = 1) -> list[Translation]:
        """Return the translation of each line, in the order of the lines.

        Of a line that is longer than the export reads, the beginning is translated, with a warning that names the line;
        the first of them is number `first_line`.
        """
        rows = self._rows_of(self._translate, lines)
        for number, row in enumerate(rows, first_line):
            if row.get("truncated", False):  # exports of the first versions have none
                log.warning("line %d is longer than this export reads; only its beginning is used", number)
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else OUTPUTS)}
        return translations_of(columns | {"translation": [text.decode() for text in columns["translation"]]})

    def are_too_long(self, lines: Iterable[str]) -> list[bool]:
        """Return of each line whether it is longer than the export reads.

        The tokenizer tells; of an older export only the translation does, so that it is searched for this.
        """
        rows = self._rows_of(self._tokenize or self._translate, lines)
        return [row.get("truncated", False) for row in rows]

    def _rows_of(self, signature: Callable[..., dict[str, tf.Tensor]], lines: Iterable[str]) -> list[dict[str, Any]]:
        """Return the outputs of a signature for each line, by name; lines that are the same are computed once."""
        lines = list_of_lines(lines)
        different, rows = list(dict.fromkeys(lines)), {}

        def run_batch(indices: list[int]) -> None:
            texts = [different[index] for index in indices]
            outputs = {name: values.numpy().tolist() for name, values in signature(text=tf.constant(texts)).items()}
            of_texts = zip(*outputs.values(), strict=True)
            rows.update((text, dict(zip(outputs, row, strict=True))) for text, row in zip(texts, of_texts, strict=True))

        map_batches(run_batch, {index: len(line) for index, line in enumerate(different)}, self.batch_size)
        return [rows[line] for line in lines]


def open_quietly(folder: str | os.PathLike, batch_size: int = BATCH_SIZE) -> ExportedTranslator:
    """Open an export and hide what its native libraries print: the tokenizer prints at its first use."""
    tune_for_translation()
    logging.getLogger("absl").setLevel(logging.ERROR)  # saving sets it back; an export without gradients is no news
    with quiet_imports():
        translator = ExportedTranslator(folder, batch_size)
        translator.translate([""])
    return translator
