"""From the arrays of a file to the weights of a Transformer: each is taken by name, checked, and put in our order."""

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.names import Weight, as_ours, weights_of_side, weights_of_tokens
from keras_transformer.models.imported.vocabulary import NO_ROW, Vocabulary, pieces_here

NEVER = -100.0  # the bias of a piece that is not among the classes: exp(-100) vanishes beside any other in float32


class Arrays:
    """The arrays of a file, each of which is taken by its name; what nobody took is refused at the end."""

    def __init__(self, arrays: Mapping[str, np.ndarray], path: object):
        self.arrays, self.path = dict(arrays), path

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
        """Return an array of this shape, in which None is any size; a vector may stand as a matrix of one row.

        Raises ImportedModelError if it is missing, has another shape or type, or a value that is NaN or infinite.
        """
        if name not in self.arrays:
            raise ImportedModelError(f"{self.path} has no array {name}, which a model of its options has.")
        array = self.arrays.pop(name)
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
        if self.arrays:
            first = ", ".join(sorted(self.arrays)[:3])
            raise ImportedModelError(
                f"{self.path} has {len(self.arrays)} arrays that a model of its options has no place for, such as "
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

    def values(self, config: TransformerConfig) -> dict[str, np.ndarray]:
        """Return the weights of the embeddings and logits by their path."""
        pieces = self.pieces()
        labels = self.target.labels(pieces)
        rows = {
            "embedding": (self.embed_source, self.source.inputs(pieces)),
            "source_embedding": (self.embed_source, self.source.inputs(pieces)),
            "target_embedding": (self.embed_target, self.target.inputs(pieces)),
            "logits": (self.logits, labels),
        }
        values = {}
        for weight in weights_of_tokens(config):
            if weight.ours.endswith("/bias"):
                values[weight.ours] = np.where(labels == NO_ROW, np.float32(NEVER), self.bias[labels])
            else:
                matrix, numbers = rows[weight.ours.partition("/")[0]]
                chosen = np.where((numbers == NO_ROW)[:, np.newaxis], np.float32(0), matrix[numbers])
                values[weight.ours] = as_ours(weight, chosen, is_huggingface=False)
        return values


def values_of_blocks(
    arrays: Arrays, config: TransformerConfig, name_of: Callable[[Weight], str], is_huggingface: bool
) -> dict[str, np.ndarray]:
    """Take the arrays of all blocks. Returns the weights by their path. Raises ImportedModelError as `take` does."""
    values = {}
    for weight in itertools.chain(weights_of_side("encoder", config), weights_of_side("decoder", config)):
        shape = weight.shape(config)
        if is_huggingface and weight.is_kernel:
            shape = shape[::-1]
        values[weight.ours] = as_ours(weight, arrays.take(name_of(weight), shape), is_huggingface)
    return values
