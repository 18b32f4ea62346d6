"""Weights in the form that a search reads, made when a server opens an export: no file holds them, no request waits."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.short_vocabulary import ShortlistTable
from keras_transformer.decoding.step import IncrementalDecoder
from keras_transformer.kinds import incremental_decoder

ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # ResourceHandle::ANONYMOUS_NAME: a variable of its handle's owner


class Prepared(tf.saved_model.experimental.TrackableResource):
    """One tensor that is computed from weights once, after they have been restored.

    Whoever opens a SavedModel runs its initializers after it has restored the variables: TensorFlow's C++ loader, with
    it TensorFlow Serving, and `tf.saved_model.load`.

    Args:
        compute: function of nothing -> a tensor of variables alone.
        name: of its variable in an export, which no other of the export has.
    """

    def __init__(self, compute: Callable[[], Any], name: str):
        super().__init__()
        self._compute, self._name = compute, name
        value = compute()
        self._kind = {"dtype": value.dtype, "shape": value.shape}
        self._initialize()

    def _create_resource(self):
        """Return a handle of its own: here without a name; in an export by one, to which each loading adds a number."""
        return tf.raw_ops.VarHandleOp(**self._kind, shared_name=ANONYMOUS if tf.executing_eagerly() else self._name)

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self._compute())

    def _destroy_resource(self):
        tf.raw_ops.DestroyResourceOp(resource=self.resource_handle, ignore_lookup_error=True)

    def read(self):
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=self._kind["dtype"])
        value.set_shape(self._kind["shape"])  # which the handle of an exported function does not tell
        return value


def prepared_decoder(
    transformer: keras.Model, options: SearchOptions, shortlist: ShortlistTable | None
) -> tuple[Any, list[Prepared]]:
    """Return the decoder of a model, which reads prepared weights, and these, for a SavedModel to own.

    Only what a search with these options reads in every request is prepared.
    """
    decoder = incremental_decoder(transformer)
    prepared: list[Prepared] = []

    def kept(compute: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function with the same results, tensors in any structure, that reads them."""
        structure = compute()
        parts = [
            None
            if leaf is None
            else Prepared(functools.partial(leaf_of, compute, place), f"prepared_{len(prepared) + place}")
            for place, leaf in enumerate(tf.nest.flatten(structure))
        ]
        prepared.extend(filter(None, parts))
        return lambda: tf.nest.pack_sequence_as(structure, [each and each.read() for each in parts])

    if isinstance(decoder, IncrementalDecoder):
        decoder.projections = tuple(map(kept, decoder.projections))
        if shortlist is None:
            decoder.vocabulary = kept(decoder.vocabulary)
    return decoder, prepared


def leaf_of(compute: Callable[[], Any], place: int) -> Any:
    """Return one of the tensors that a function returns in a structure."""
    return tf.nest.flatten(compute())[place]
