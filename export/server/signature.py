"""A signature of a SavedModel: its inputs, its outputs, and the defaults of inputs that a request may leave out."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef, TensorInfo

from keras_transformer.text.road import refusal

from .errors import Code, RequestError, invalid, shown

SERVING_DEFAULT = "serving_default"  # the signature of requests that name none
MOST_DIMENSIONS = 64  # of an array of numpy

Arrays = dict[str, np.ndarray]


class Tensor(NamedTuple):
    """An input or an output. shape: None if its rank is unknown, with None in place of an unknown dimension."""

    graph_name: str
    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @classmethod
    def of(cls, info: TensorInfo) -> "Tensor":
        """Return the tensor that a SavedModel describes."""
        sizes = (dimension.size for dimension in info.tensor_shape.dim)
        shape = None if info.tensor_shape.unknown_rank else tuple(None if size < 0 else size for size in sizes)
        return cls(info.name, tf.as_dtype(info.dtype), shape)


class Signature(NamedTuple):
    """defaults: values of the inputs that a request may leave out (`SignatureDef.defaults`)."""

    name: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    defaults: Arrays

    def complete(self, inputs: Arrays) -> Arrays:
        """Return every input: that of the request, else its default.

        Raises RequestError if an input is missing, unknown, or of another type or shape than the signature's.
        """
        self.check_names(inputs)
        if missing := sorted(set(self.inputs) - set(inputs) - set(self.defaults)):
            raise invalid(f"The signature {self.name!r} needs the input {missing[0]!r}, which is missing.")
        for name, array in inputs.items():
            dtype = self.inputs[name].dtype
            if array.dtype != dtype.as_numpy_dtype:
                raise invalid(f"The input {name!r} must be {dtype.name}; it is {array.dtype}.")
            check_shape(name, self.inputs[name], array.shape)
        return {name: inputs[name] if name in inputs else self.defaults[name] for name in self.inputs}

    def check_names(self, names: Iterable[str]) -> None:
        """Raise RequestError if the signature has no input of such a name."""
        if sentence := refusal(f"The signature {self.name!r}", map(shown, names), self.inputs):
            raise invalid(sentence)

    def output_names(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the outputs to compute: the wanted ones, or all of them if none is named.

        Raises RequestError if the signature has no output of such a name, or if a name comes twice.
        """
        if unknown := sorted(set(wanted) - set(self.outputs)):
            known = ", ".join(sorted(self.outputs))
            raise invalid(f"The signature {self.name!r} has no output {shown(unknown[0])!r}; it has {known}.")
        if len(set(wanted)) < len(wanted):
            raise invalid(f"The outputs {shown(', '.join(wanted))} name one of them twice.")
        return tuple(sorted(wanted or self.outputs))

    def can_join(self, outputs: tuple[str, ...]) -> bool:
        """Return whether requests for these outputs may be computed in one batch.

        Each input must have one dimension, the batch, so that inputs can be concatenated. Each output must have the
        batch first and then known dimensions: an unknown one is padded to the longest row of the batch, so that an
        answer would show how long the other requests were.
        """
        inputs = [tensor.shape for tensor in self.inputs.values()]
        return all(shape == (None,) for shape in inputs) and all(
            shape is not None and shape[:1] == (None,) and None not in shape[1:]
            for shape in (self.outputs[name].shape for name in outputs)
        )

    def rows(self, inputs: Arrays) -> int:
        """Return the number of rows of a request; an input of one row holds for all rows of the others.

        An input without a dimension counts as one row. Raises RequestError if the numbers differ in any other way, or
        if only inputs with a default have no row.
        """
        counts = {name: array.shape[0] if array.ndim else 1 for name, array in inputs.items()}
        different = sorted({count for count in counts.values() if count != 1})
        is_emptied = 0 in different and all(count for name, count in counts.items() if name not in self.defaults)
        if (len(different) > 1 or is_emptied) and self.can_join(()):
            named = ", ".join(
                f"{name} has {count}" for name, count in sorted(counts.items()) if is_emptied or count != 1
            )
            raise invalid(
                f"The inputs have different numbers of rows: {named}. An input has one row, or as many as the others."
            )
        return max(different, default=1)


def size_of(arrays: Arrays) -> int:
    """Return the bytes of arrays, with those of their texts."""
    return sum(
        np.asarray(array).nbytes + (sum(map(len, array.ravel().tolist())) if array.dtype == object else 0)
        for array in arrays.values()
    )


def check_dimensions(name: str, count: int) -> None:
    """Raise RequestError if an input has more dimensions than an array can have."""
    if count > MOST_DIMENSIONS:
        raise invalid(f"The input {name!r} has {count} dimensions; at most {MOST_DIMENSIONS} are possible.")


def check_shape(name: str, tensor: Tensor, shape: Sequence[int]) -> None:
    """Raise RequestError if the input `name` cannot have this shape, before its values are read."""
    if tensor.shape is None:
        return
    fits = len(tensor.shape) == len(shape) and all(
        expected in (None, size) for expected, size in zip(tensor.shape, shape, strict=True)
    )
    if not fits:
        raise invalid(f"The input {name!r} must have the shape {sizes(tensor.shape)}; it has {sizes(shape)}.")


def too_many_rows(rows: int, most: int) -> RequestError:
    """Return the error of a request that is longer than this server takes."""
    return invalid(f"The request has {rows} rows; this server takes at most {most}.")


def too_many_sentences(sentences: int, most: int) -> RequestError:
    """Return the error of a request of more sentences, those of texts and messages included, than this server takes."""
    return invalid(f"The request has {sentences} sentences; this server takes at most {most}.")


def sizes(shape: Sequence[int | None]) -> str:
    """Return a shape in the notation of signatures: (-1, 4)."""
    return "(" + ", ".join("-1" if size is None else str(size) for size in shape) + ")"


def read_signature(name: str, definition: SignatureDef) -> Signature:
    """Return the Signature that a SavedModel defines."""
    inputs, outputs = (
        {alias: Tensor.of(info) for alias, info in infos.items()} for infos in (definition.inputs, definition.outputs)
    )
    defaults = {alias: tf.make_ndarray(value) for alias, value in definition.defaults.items()}
    return Signature(name, inputs, outputs, defaults)


def signature_named(signatures: dict[str, Signature], name: str) -> Signature:
    """Return a signature; the empty name means `serving_default`. Raises RequestError if there is none."""
    if signature := signatures.get(name or SERVING_DEFAULT):
        return signature
    raise RequestError(Code.FAILED_PRECONDITION, f"Serving signature name: {shown(name)!r} not found in signature def")
