"""Weights in the form that a search reads, made when a server opens an export: no file holds them, no request waits."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.runs.kinds import incremental_decoder
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.search.step import IncrementalDecoder


class Prepared(tf.saved_model.experimental.TrackableResource):
    """One tensor that is computed from weights once, after they have been restored.

    Whoever opens a SavedModel runs its initializers after it has restored the variables: TensorFlow's C++ loader, with
    it TensorFlow Serving, and `tf.saved_model.load`. The value is in a variable that no checkpoint has. Signatures own
    their variables, so that one that is all that is left of an export computes on.

    Args:
        compute: function of nothing -> a tensor of variables alone.
    """

    def __init__(self, compute: Callable[[], Any]):
        super().__init__()
        self._compute = compute
        self.value = self._track_trackable(unsaved(tf.Variable(compute(), trainable=False)), "value")

    def _create_resource(self):
        """Return something in place of the handle that every resource has: the variable has its own."""
        return tf.constant(0)

    def _initialize(self):
        self.value.assign(self._compute())

    def read(self):
        return self.value.read_value()


def unsaved(variable: tf.Variable) -> tf.Variable:
    """Leave a variable out of every checkpoint: of the one that is written, and of what a SavedModel restores."""
    export = variable._export_to_saved_model_graph

    def export_unsaved(object_map, **kwargs):
        handles = export(object_map=object_map, **kwargs)
        object_map[variable]._serialize_to_tensors = dict  # no tensors
        return handles

    variable._serialize_to_tensors, variable._export_to_saved_model_graph = dict, export_unsaved
    return variable


def prepared_decoder(transformer: keras.Model, shortlist: ShortlistTable | None) -> tuple[Any, list[Prepared]]:
    """Return the decoder of a model, which reads prepared weights, and these, for a SavedModel to own.

    With a shortlist the weights of the vocabulary are not prepared, since each request reads other rows of them.
    """
    decoder = incremental_decoder(transformer)
    prepared: list[Prepared] = []

    def kept(compute: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function with the same results, tensors in any structure, that reads them."""
        structure = compute()
        parts = [
            None if leaf is None else Prepared(functools.partial(leaf_of, compute, place))
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
