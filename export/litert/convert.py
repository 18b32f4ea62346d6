"""A model and its beam search as one LiteRT file of builtin operations."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_transformer.layers.embedding import OutputWeights, TokenEmbedding
from keras_transformer.layers.gather import rows_at
from keras_transformer.runs.kinds import joint_decoder
from keras_transformer.runs.lite_folder import ENDING_TOKENS, PREFIX_TOKENS, Room
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NEVER, UNFINISHED
from keras_transformer.search.search import search
from keras_transformer.search.short_vocabulary import ShortlistTable

from .merge import merged

LARGEST = 127  # of a rounded number, on both sides of 0

LENGTHS = (16, 24, 32, 48, 64, 96, 128, 256, 512)  # tokens of a source for which a search of fixed shapes is made
LENGTHS_OF_ANY = (32, 128)  # the same if the output may be of any length, beside the longest source
LENGTHS_WITH_PREFIX = (128,)  # the same if the beginning is given: such a signature is as large as four others
MANY = 8  # sentences that are searched together: more take longer per sentence
LONGEST_OF_MANY = 64
# The largest share of the vocabulary with which chosen columns take less time than all of them, by the weights, for
# one sentence and for MANY: the product with all of them is of constants, and for 8-bit integers three times as fast.
# Fitted at 6,000 and 10,000 pieces (docs/experiments.md).
CHOSEN = {None: (0.25, 0.13), "int8": (0.1, 0.06)}
OUTPUTS = ("ids", "scores", "is_cut", "is_done")


def rooms_up_to(max_source_tokens: int, extra_length: int, takes_prefixes: bool = False) -> tuple[Room, ...]:
    """Return the rooms for sources of at most so many tokens: for one sentence, and for MANY that are not long.

    The first ones find outputs of any length. Of the others each has the room that nearly all its sentences need.
    takes_prefixes: whether there are rooms, beside these, for translations whose beginning is given.
    """

    def up_to_longest(lengths: Iterable[int]) -> list[int]:
        return [length for length in lengths if length < max_source_tokens] + [max_source_tokens]

    lengths = up_to_longest(LENGTHS)
    usual = {length: length + min(extra_length, length // 4 + 4) for length in lengths}
    with_prefix = up_to_longest(LENGTHS_WITH_PREFIX) if takes_prefixes else []
    return (
        *(Room(1, length) for length in up_to_longest(LENGTHS_OF_ANY)),
        *(Room(1, length, usual[length]) for length in lengths),
        *(Room(MANY, length, usual[length]) for length in lengths if length <= LONGEST_OF_MANY),
        *(Room(1, length, None, takes_prefix=True) for length in with_prefix),
    )


def lite_model(
    model: keras.Model,
    options: SearchOptions,
    rooms: Iterable[Room],
    quantization: str | None,
    placeholders: Sequence[int] = (),
    shortlist: ShortlistTable | None = None,
) -> bytes:
    """Return the file: one signature per room, which share the weights.

    A signature takes source_ids int32 (rows, tokens), pieces and EOS, then PAD, and n_best int32 (rows,), how many of
    the best hypotheses of each sentence must be right. It gives ids int32 (rows, K, L), scores
    float32 (rows, K), -inf for what no hypothesis filled, is_cut bool (rows, K), and is_done bool (rows,): False if the
    search has not ended within the outputs of the room, and so has found nothing yet. One that takes a prefix has the
    rules prefixes int32 (rows, PREFIX_TOKENS) and endings int32 (rows, N, ENDING_TOKENS) as inputs, of any N. They have
    signatures of their own, since their search takes longer.

    `quantization`: "int8" keeps the weights of products as 8-bit integers, and rounds what they are multiplied with
    when it comes. None keeps them as float32. `placeholders`: the ids that are placeholders.
    """
    decoder = joint_decoder([model])
    reading = contextlib.nullcontext() if quantization is None else read_as_integers(model)
    with reading:
        tables = [shortlist and shortlist._replace(most=most) for most in CHOSEN[quantization]]
        outputs = functools.partial(search_outputs, decoder, options, placeholders)
        searches = ((room, functools.partial(outputs, tables[room.rows > 1])) for room in rooms)
        return merged(converted(room, search_function(each, room), quantization) for room, each in searches)


def converted(room: Room, search: Any, quantization: str | None) -> bytes:
    """Return the file whose one signature is that of the room."""
    no_gradients = tf.saved_model.SaveOptions(experimental_custom_gradients=False)  # those of swish cannot be saved
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(tf.Module(), folder, {room.signature: search}, no_gradients)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[room.signature])
        if quantization is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()


def search_function(outputs: Callable, room: Room) -> Any:
    """Return the search of a room as a function whose weights are constants.

    Of a function with variables, the converter keeps the weights apart from the file if there are several signatures.
    """
    source_ids = tf.TensorSpec([room.rows, room.tokens], tf.int32, "source_ids")
    inputs = [source_ids, tf.TensorSpec([room.rows], tf.int32, "n_best")]
    if room.takes_prefix:
        inputs.append(tf.TensorSpec([room.rows, PREFIX_TOKENS], tf.int32, "prefixes"))
        inputs.append(tf.TensorSpec([room.rows, None, ENDING_TOKENS], tf.int32, "endings"))
    outputs = functools.partial(outputs, positions_of_loops(room))
    searched = tf.function(outputs, inputs, autograph=False)
    constant = convert_variables_to_constants_v2(searched.get_concrete_function(), lower_control_flow=False)
    names = sorted(OUTPUTS)  # in which TensorFlow returns the values of a dict

    def named(source_ids, n_best):
        return dict(zip(names, constant(source_ids, n_best), strict=True))

    def named_from(source_ids, n_best, prefixes, endings):
        return dict(zip(names, constant(source_ids, n_best, prefixes, endings), strict=True))

    return tf.function(named_from if room.takes_prefix else named, inputs, autograph=False)


def positions_of_loops(room: Room) -> tuple[int, ...]:
    """Return the room of each loop of the search: see `beam_search`.

    A step copies and reads all room that there is. For one sentence, a second loop takes longer than that.
    """
    if room.outputs is None:
        return ()
    return (room.outputs,) if room.rows == 1 else (-(-room.outputs // 2), room.outputs)


def search_outputs(
    decoder: Any,
    options: SearchOptions,
    placeholders: Sequence[int],
    shortlist: ShortlistTable | None,
    positions: tuple[int, ...],
    source_ids,
    n_best,
    prefixes=None,
    endings=None,
) -> dict[str, Any]:
    """Return the outputs of a signature: see `lite_model`."""
    rules = {"n_best": n_best} | rule_of_placeholders(placeholders, source_ids)
    if prefixes is not None:
        rules |= {"prefixes": prefixes, "endings": endings}
    plan = SearchPlan(options, Rules.of(rules), shortlist, positions, True)
    ids, scores, is_cut = search(decoder, source_ids, plan)
    is_done = scores[:, 0] != UNFINISHED
    return {
        "ids": ids,
        "scores": ops.where(scores > NEVER / 2, scores, -float("inf")),
        "is_cut": is_cut,
        "is_done": is_done,
    }


@contextlib.contextmanager
def read_as_integers(model: keras.Model) -> Iterator[None]:
    """Let the embeddings of a model read rounded rows: q (V, d_model) int8 and s (V, 1), so that E is about s q."""
    layers = [layer for layer in model.layers if isinstance(layer, TokenEmbedding)]
    for layer in layers:
        integers, scales = rounded(layer)
        layer.__dict__["embed"] = functools.partial(rounded_rows, integers, scales * np.float32(layer.d_model**0.5))
        layer.__dict__["output_weights"] = functools.partial(weights_of_rounded, layer, integers, scales)
    try:
        yield
    finally:
        for layer in layers:
            del layer.__dict__["embed"], layer.__dict__["output_weights"]


def rounded(layer: TokenEmbedding) -> tuple[np.ndarray, np.ndarray]:
    """Return the embeddings as int8 (V, d_model), and float32 (V, 1), by which a row is to be multiplied.

    It computes as the converter does, so that the weights of logits, if they are the same matrix, become the same
    integers, which a file holds once.
    """
    matrix = ops.convert_to_numpy(layer.matrix).astype(np.float32)
    scales = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.float32(1e-30)) / np.float32(LARGEST)
    return np.round(matrix * (np.float32(1) / scales)).astype(np.int8), scales


def rounded_rows(integers: np.ndarray, scales: np.ndarray, ids) -> Any:
    """Return the rows with these numbers as floats: ids (...) -> float32 (..., d_model)."""
    return ops.cast(rows_at(integers, ids), "float32") * rows_at(scales, ids)


def weights_of_rounded(layer: TokenEmbedding, integers: np.ndarray, scales: np.ndarray, tokens=None) -> OutputWeights:
    """Return what `TokenEmbedding.output_weights` returns; those of chosen tokens are made of rounded rows."""
    weights = TokenEmbedding.output_weights(layer, tokens)
    if tokens is None:
        return weights
    return weights._replace(kernel=ops.swapaxes(rounded_rows(integers, scales, tokens), -1, -2))
