"""From the arrays of a file to the weights of a Transformer: each is taken by name, checked, and put in our order."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import NO_CLASS
from keras_transformer.models.imported.arrays import StoredArrays
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.names import Weight, as_ours, weights_of_side, weights_of_tokens
from keras_transformer.models.imported.vocabulary import NO_ROW, Vocabulary, pieces_here


class Arrays:
    """The arrays of a file, each of which is taken by its name; what nobody took is refused at the end."""

    def __init__(self, arrays: Mapping[str, np.ndarray], path: object):
        self.arrays, self.path, self.rest = arrays, path, set(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self.rest

    def take(self, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
        """Return an array of this shape, in which None is any size; a vector may stand as a matrix of one row.

        Raises ImportedModelError if it is missing, has another shape or type, or a value that is NaN or infinite.
        """
        if name not in self.rest:
            raise ImportedModelError(f"{self.path} has no array {name}, which a model of its options has.")
        self.rest.remove(name)
        return self.array(name, shape)

    def array(self, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
        """Read an array of this shape, whether it was taken or not. Raises ImportedModelError as `take` does."""
        array = self.arrays[name]
        if len(shape) == 1 and array.ndim == 2 and len(array) == 1:
            array = array[0]
        if array.dtype != np.float32:
            raise ImportedModelError(
                f"The array {name} of {self.path} is of type {array.dtype}: only floats can be imported."
            )
        if array.ndim != len(shape) or any(
            size not in (None, actual) for size, actual in zip(shape, array.shape, strict=True)
        ):
            expected = ", ".join("any" if size is None else str(size) for size in shape)
            raise ImportedModelError(
                f"The array {name} of {self.path} has the shape {array.shape}; its options ask for ({expected})."
            )
        if not np.isfinite(array).all():
            raise ImportedModelError(f"The array {name} of {self.path} has values that are NaN or infinite.")
        return array

    def refuse_rest(self) -> None:
        """Raises ImportedModelError, with the first names, if there are arrays that nobody took."""
        if self.rest:
            first = ", ".join(sorted(self.rest)[:3])
            raise ImportedModelError(
                f"{self.path} has {len(self.rest)} arrays that a model of its options has no place for, such as "
                f"{first}: this kind of model cannot be imported."
            )


class Tokens(NamedTuple):
    """The vocabularies of both sides, their embeddings, and the matrix and bias of the logits: (pieces, d_model).

    The three matrices may be one object.
    """

    source: Vocabulary
    target: Vocabulary
    embed_source: np.ndarray
    embed_target: np.ndarray
    logits: np.ndarray
    bias: np.ndarray

    @property
    def is_shared(self) -> bool:
        """Whether one matrix does it all."""
        return self.source == self.target and self.embed_source is self.embed_target is self.logits

    def pieces(self) -> list[str]:
        """Return the pieces by their ids here."""
        return pieces_here(self.source, self.target)

    def values(self, config: TransformerConfig) -> StoredArrays:
        """Return the weights of the embeddings and logits by their path."""
        pieces = self.pieces()
        labels = self.target.labels(pieces)
        rows = {
            "embedding": (self.embed_source, self.source.inputs(pieces)),
            "source_embedding": (self.embed_source, self.source.inputs(pieces)),
            "target_embedding": (self.embed_target, self.target.inputs(pieces)),
            "logits": (self.logits, labels),
        }
        values: dict[str, Callable[[], np.ndarray]] = {}
        for weight in weights_of_tokens(config):
            if weight.ours.endswith("/bias"):
                values[weight.ours] = functools.partial(rows_at, self.bias, labels, NO_CLASS)
            else:
                matrix, numbers = rows[weight.ours.partition("/")[0]]
                values[weight.ours] = functools.partial(embeddings_of, weight, matrix, numbers)
        return StoredArrays(values)


def rows_at(rows: np.ndarray, numbers: np.ndarray, otherwise: float) -> np.ndarray:
    """Return the rows with these numbers, and a constant for NO_ROW."""
    chosen = rows[numbers]
    chosen[numbers == NO_ROW] = otherwise
    return chosen


def embeddings_of(weight: Weight, matrix: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the rows of a matrix of embeddings as Keras has them, zeros for NO_ROW."""
    return rows_at(as_ours(weight, matrix, is_huggingface=False), numbers, 0.0)


def values_of_blocks(
    arrays: Arrays,
    config: TransformerConfig,
    name_of: Callable[[Weight], str],
    is_huggingface: bool,
    weights: Iterable[Weight] = (),
) -> StoredArrays:
    """Take the arrays of all blocks, or of these weights. Returns them by their path.

    Each is read twice: now, so that whatever is wrong is told before anything is written, and when its weight is.
    Raises ImportedModelError as `take` does.
    """
    values: dict[str, Callable[[], np.ndarray]] = {}
    for weight in weights or itertools.chain(weights_of_side("encoder", config), weights_of_side("decoder", config)):
        shape = weight.huggingface_shape(config) if is_huggingface else weight.shape(config)
        arrays.take(name_of(weight), shape)
        values[weight.ours] = functools.partial(array_as_ours, arrays, weight, name_of(weight), shape, is_huggingface)
    return StoredArrays(values)


def array_as_ours(arrays: Arrays, weight: Weight, name: str, shape: tuple[int, ...], is_huggingface: bool):
    """Return the array of a weight as Keras has it, (inputs, outputs) of a kernel."""
    return as_ours(weight, arrays.array(name, shape), is_huggingface)
