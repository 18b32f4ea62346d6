"""An export as a function from text to translations. It needs TensorFlow and tensorflow-text, but no model code."""

import functools
import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer inside the graph)
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from keras_transformer.ground.errors import UserError, first_line_of, message_of_the_graph
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.run_folder import SAVED_MODEL
from keras_transformer.runs.versions import CERTIFICATE, ExportError, find_version, languages_in
from keras_transformer.text.signatures import BEST, Columns, SignatureEngine, as_texts, first_values
from keras_transformer.translation.parallel import map_batches, tune_for_translation


class ExportedTranslator(SignatureEngine):
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
            self._loaded = tf.saved_model.load(str(self.path))
        except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
            raise ExportError(f"{self.path} cannot be loaded: {first_line_of(error)}") from None
        if not self.tells(BEST, "translation") or not self.tells(BEST, "score"):
            raise ExportError(
                f"{self.path} is a SavedModel that does not translate text: it has no signature serving_default with "
                "the outputs translation and score."
            )

    @functools.cached_property
    def languages(self) -> Languages:  # type: ignore[override]
        return languages_in(self.path)

    def tells(self, name: str, output: str) -> bool:
        return name in self._loaded.signatures and output in self._loaded.signatures[name].structured_outputs

    def defaults(self, name: str) -> Mapping[str, Any]:
        return self._defaults.get(name, {})

    @functools.cached_property
    def _defaults(self) -> dict[str, dict[str, Any]]:
        return defaults_in(self.path)

    def own_option(self, name: str) -> Any:
        """Its certificate, if it has one, tells the options of its run that are no inputs of the graph."""
        value = super().own_option(name)
        return self._of_run.get(name) if value is None else value

    @functools.cached_property
    def _of_run(self) -> Mapping[str, Any]:
        try:
            return json_of((self.path / CERTIFICATE).read_text("utf-8"))["search"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def call(self, name: str, columns: Columns) -> Columns:
        """Rows that are the same are computed once, in batches of similar length.

        Raises UserError with the sentence of the graph if it refuses an input, such as a language that it lacks.
        """
        signature, defaults = self._loaded.signatures[name], self.defaults(name)
        rows = list(zip(*columns.values(), strict=True))
        different, answers = list(dict.fromkeys(rows)), {}

        def run_batch(indices: list[int]) -> None:
            batch = [different[index] for index in indices]
            asked = dict(zip(columns, map(list, zip(*batch, strict=True)), strict=True))
            outputs = outputs_of_signature(signature, asked, defaults)
            for row, answer in zip(batch, zip(*outputs.values(), strict=True), strict=True):
                answers[row] = dict(zip(outputs, answer, strict=True))

        place = list(columns).index("text")
        try:
            map_batches(run_batch, {index: len(row[place]) for index, row in enumerate(different)}, self.batch_size)
        except tf.errors.InvalidArgumentError as error:
            raise UserError(message_of_the_graph(error.message)) from None
        return {key: [answers[row][key] for row in rows] for key in answers[rows[0]]}


def outputs_of_signature(signature: Any, columns: Columns, defaults: Mapping[str, Any]) -> Columns:
    """Return the outputs of a signature of a SavedModel, whose inputs that are left out have these defaults."""
    types = {spec.name: spec.dtype for spec in signature.structured_input_signature[1].values()}
    values = {name: [value] for name, value in defaults.items()} | columns
    outputs = signature(**{name: tf.constant(value, types[name]) for name, value in values.items()})
    return {name: as_texts(value.numpy().tolist()) for name, value in outputs.items()}


def defaults_in(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the default of each optional input of each signature: TensorFlow's own loading leaves them out."""
    return {
        name: first_values({key: tf.make_ndarray(value).tolist() for key, value in signature.defaults.items()})
        for name, signature in meta_graph(folder).signature_def.items()
    }


def meta_graph(version: pathlib.Path) -> meta_graph_pb2.MetaGraphDef:
    """Return the graph, function library and signatures of a version folder."""
    saved = saved_model_pb2.SavedModel.FromString((version / SAVED_MODEL).read_bytes())
    return saved.meta_graphs[0]


def open_quietly(folder: str | os.PathLike, batch_size: int = BATCH_SIZE) -> ExportedTranslator:
    """Open an export and hide what its native libraries print: the tokenizer prints at its first use."""
    tune_for_translation()
    logging.getLogger("absl").setLevel(logging.ERROR)  # saving sets it back; an export without gradients is no news
    with quiet_imports():
        translator = ExportedTranslator(folder, batch_size)
        translator.translate([""])
    return translator
