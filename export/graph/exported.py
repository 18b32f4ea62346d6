"""An export as a function from text to translations. It needs TensorFlow and tensorflow-text, but no model code."""

import logging
import os
from collections.abc import Iterable

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)

from keras_transformer.batching import BATCH_SIZE, list_of_lines
from keras_transformer.commands.console import quiet_imports
from keras_transformer.errors import first_line_of
from keras_transformer.parallel import map_batches, tune_for_translation
from keras_transformer.translation import Translation, translations_of

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
        self._known: dict[str, tuple[Translation, bool]] = {}  # of the lines that `are_too_long` asked about
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

    def translate(self, lines: Iterable[str], first_line: int = 1) -> list[Translation]:
        """Return the translation of each line, in the order of the lines.

        Of a line that is longer than the export reads, the beginning is translated, with a warning that names the line;
        the first of them is number `first_line`.
        """
        answers = self._answers(list_of_lines(lines))
        self._known = {}
        for number, (_, is_truncated) in enumerate(answers, first_line):
            if is_truncated:
                log.warning("line %d is longer than this export reads; only its beginning is used", number)
        return [translation for translation, _ in answers]

    def are_too_long(self, lines: Iterable[str]) -> list[bool]:
        """Return of each line whether it is longer than the export reads.

        Only the graph tells, with its translation: the next call of `translate` does not search for these again.
        """
        return [is_truncated for _, is_truncated in self._answers(list_of_lines(lines))]

    def _answers(self, lines: list[str]) -> list[tuple[Translation, bool]]:
        """Return the translation of each line, and whether the line was cut."""
        known = self._known  # another thread may take a new one
        new = [line for line in dict.fromkeys(lines) if line not in known]

        def translate_batch(indices: list[int]) -> None:
            texts = [new[index] for index in indices]
            columns = {
                name: values.numpy().tolist() for name, values in self._translate(text=tf.constant(texts)).items()
            }
            columns["translation"] = [text.decode() for text in columns["translation"]]
            of_lines = columns.get("truncated", [False] * len(texts))  # exports of the first versions have none
            known.update(zip(texts, zip(translations_of(columns), of_lines, strict=True), strict=True))

        map_batches(translate_batch, {index: len(line) for index, line in enumerate(new)}, self.batch_size)
        return [known[line] for line in lines]


def open_quietly(folder: str | os.PathLike, batch_size: int = BATCH_SIZE) -> ExportedTranslator:
    """Open an export and hide what its native libraries print: the tokenizer prints at its first use."""
    tune_for_translation()
    logging.getLogger("absl").setLevel(logging.ERROR)  # saving sets it back; an export without gradients is no news
    with quiet_imports():
        translator = ExportedTranslator(folder, batch_size)
        translator.translate([""])
    return translator
