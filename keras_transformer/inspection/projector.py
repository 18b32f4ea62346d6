"""The embeddings of the pieces in TensorBoard's embedding projector, each with its piece as label."""

import pathlib
from collections.abc import Sequence
from typing import BinaryIO

import keras
import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

from keras_transformer.ground.files import write_atomically
from keras_transformer.layers.embedding import TokenEmbedding

CONFIG = "projector_config.pbtxt"  # the name that TensorBoard looks for
FOLDER = "projector"
LABELS = "pieces.tsv"


def write_projector(tensorboard: pathlib.Path, model: keras.Model, pieces: Sequence[str]) -> list[str]:
    """Write every embedding table of a model to the folder of its event files. Returns the names of the tables.

    pieces: the written form of every id, in order. The tables are those of `embedding_names`. A reader always
    finds complete files: each is replaced atomically, and the one that names the others comes last.
    """
    folder, config, tables = tensorboard / FOLDER, ProjectorConfig(), {}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / LABELS, "".join(f"{label_of(piece)}\n" for piece in pieces))
    for layer in model.layers:
        if isinstance(layer, TokenEmbedding):
            tables[layer.name] = np.asarray(layer.matrix.value)
    for name, table in tables.items():
        write_table(folder / f"{name}.tsv", table)
        config.embeddings.add(
            tensor_name=name,
            tensor_shape=table.shape,
            tensor_path=f"{FOLDER}/{name}.tsv",
            metadata_path=f"{FOLDER}/{LABELS}",
        )
    write_atomically(tensorboard / CONFIG, text_format.MessageToString(config))
    return list(tables)


def write_table(path: pathlib.Path, table: np.ndarray) -> None:
    """Write a table (V, d_model) as text, one line per row: four digits of each number, with tabs between them."""

    def write(file: BinaryIO) -> None:
        np.savetxt(file, table, fmt="%.4g", delimiter="\t")

    write_atomically(path, write)


def label_of(piece: str) -> str:
    """Return a piece as one word that can be seen: " " is "␣", a tab "\\t", and what has no sign is its code."""
    shown = "".join(visible(character) for character in piece)
    return shown or "(empty)"


def visible(character: str) -> str:
    if character == " ":
        return "␣"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
