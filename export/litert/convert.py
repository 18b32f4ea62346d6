"""A model and its beam search as one LiteRT file of builtin operations."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.embedding import OutputWeights, TokenEmbedding
from keras_transformer.layers.gather import rows_at
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.kinds import joint_decoder
from keras_transformer.runs.lite_folder import (
    ALIGN,
    ENDING_TOKENS,
    PHRASE_TOKENS,
    PHRASES,
    PREFIX_TOKENS,
    SEQUENCE_TOKENS,
    WAYS,
    Room,
)
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop, SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NEVER, UNFINISHED
from keras_transformer.search.search import search_with_phrases
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.translation.aligner import attention_by

from .merge import merged
from .stand_ins import StandIns, rounded_matrix

LENGTHS = (16, 24, 32, 48, 64, 96, 128, 256, 512)  # tokens of a source for which a search of fixed shapes is made
LENGTHS_OF_ANY = (32, 128)  # the same if the output may be of any length, beside the longest source
LENGTHS_CONSTRAINED = (128,)  # the same under constraints: such a signature is as large as many others
MANY = 8  # sentences that are searched together: more take longer per sentence
LONGEST_OF_MANY = 64
# The largest share of the vocabulary with which chosen columns take less time than all of them, by the weights, for
# one sentence and for MANY: the product with all of them is of constants, and for 8-bit integers three times as fast.
# Fitted at 6,000 and 10,000 pieces (docs/experiments.md).
CHOSEN = {None: (0.25, 0.13), "int8": (0.1, 0.06)}


def rooms_up_to(max_source_tokens: int, extra_length: int, constraints: bool = False) -> tuple[Room, ...]:
    """Return the rooms for sources of at most so many tokens: for one sentence, and for MANY that are not long.

    The first ones find outputs of any length. Of the others each has the room that nearly all its sentences need.
    constraints: whether there are rooms, beside these, for translations of given beginnings and phrases.
    """

    def up_to_longest(lengths: Iterable[int]) -> list[int]:
        return [length for length in lengths if length < max_source_tokens] + [max_source_tokens]

    lengths = up_to_longest(LENGTHS)
    usual = {length: length + min(extra_length, length // 4 + 4) for length in lengths}
    constrained = up_to_longest(LENGTHS_CONSTRAINED) if constraints else []
    return (
        *(Room(1, length) for length in up_to_longest(LENGTHS_OF_ANY)),
        *(Room(1, length, usual[length]) for length in lengths),
        *(Room(MANY, length, usual[length]) for length in lengths if length <= LONGEST_OF_MANY),
        *(Room(1, length, None, is_constrained=True) for length in constrained),
    )


class LiteHow(NamedTuple):
    """What all signatures of a file have in common.

    placeholders: the ids that are placeholders. word_edges: of the vocabulary (text/required.py), if a room is
    constrained. has_openings: whether outputs begin with the piece of a language.
    """

    options: SearchOptions
    placeholders: Sequence[int] = ()
    word_edges: np.ndarray | None = None
    has_openings: bool = False


def lite_model(
    model: keras.Model,
    how: LiteHow,
    rooms: Iterable[Room],
    quantization: str | None,
    shortlist: ShortlistTable | None = None,
    alignment: AlignedBy | None = None,
) -> bytes:
    """Return the file: one signature per room, and ALIGN if there is an `alignment`, which share the weights.

    That of a room takes source_ids int32 (rows, tokens), pieces and EOS, then PAD, and n_best int32 (rows,), how many
    of the best hypotheses of each sentence must be right. It gives ids int32 (rows, K, L), scores
    float32 (rows, K), -inf for what no hypothesis filled, is_cut bool (rows, K), and is_done bool (rows,): False if the
    search has not ended within the outputs of the room, and so has found nothing yet. One that is constrained has rules
    of the search as inputs too, `constraints_of`, and gives lost float32 (rows, K): see WithPhrases. It is a signature
    of its own, since its search takes longer. If outputs begin with the piece of a language, openings int32 (rows,) is
    an input of every signature of a room.

    ALIGN takes source_ids int32 (1, S) and target_ids int32 (1, T), an output and EOS, of any length, and gives
    attention float32 (1, T, S), that of `alignment`, whose block the model has.

    `quantization`: "int8" keeps the weights of products as 8-bit integers, and rounds what they are multiplied with
    when it comes. None keeps them as float32.
    """
    decoder = joint_decoder([model])
    tables = [shortlist and shortlist._replace(most=most) for most in CHOSEN[quantization]]
    outputs = functools.partial(search_outputs, decoder, how)
    searches = ((room, functools.partial(outputs, tables[room.rows > 1])) for room in rooms)

    def files(in_graph: Callable) -> Iterator[bytes]:
        for room, each in searches:
            search = search_function(in_graph(each), room, how.has_openings)
            yield converted(room.signature, search, quantization)
        if alignment is not None:
            attention = attention_function(in_graph(attention_by([alignment], model)))
            yield converted(ALIGN, attention, quantization)

    if quantization is None:
        return merged(files(lambda outputs: outputs))
    stand_ins = StandIns(model, decoder)
    with read_as_integers(model, stand_ins.table):
        return merged(files(stand_ins.in_graph), stand_ins.replace)


def converted(signature: str, function: Any, quantization: str | None) -> bytes:
    """Return the file whose one signature a function is."""
    no_gradients = tf.saved_model.SaveOptions(experimental_custom_gradients=False)  # those of swish cannot be saved
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(tf.Module(), folder, {signature: function}, no_gradients)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[signature])
        if quantization is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()


def search_function(outputs: Callable, room: Room, has_openings: bool = False) -> Any:
    """Return the search of a room as a function whose weights are constants."""
    specs = {
        "source_ids": tf.TensorSpec([room.rows, room.tokens], tf.int32),
        "n_best": tf.TensorSpec([room.rows], tf.int32),
    }
    if has_openings:
        specs["openings"] = tf.TensorSpec([room.rows], tf.int32)
    if room.is_constrained:
        specs |= constraints_of(room.rows)
    loops = loops_of(room)

    def searched(*values):
        return outputs(loops, **dict(zip(specs, values, strict=True)))

    return constant_function(searched, specs)


def takes_any_length(config: BaseModelConfig) -> bool:
    """Return whether the attention of a model can be converted for ids of any length.

    That of a RecurrentModel cannot: its decoder's loop keeps an attention of the length of the source.
    """
    return isinstance(config, TransformerConfig)


def attention_function(attention: Callable) -> Any:
    """Return an attention of ids, (1, S) and (1, T) -> (1, 1, T, S), as a function whose weights are constants."""
    ids = tf.TensorSpec([1, None], tf.int32)
    return constant_function(
        lambda *of_sides: {"attention": attention(*of_sides)[:, 0]}, {"source_ids": ids, "target_ids": ids}
    )


def constant_function(outputs: Callable, specs: dict[str, tf.TensorSpec]) -> Any:
    """Return a function of inputs by name, in the order of `specs`, to a dict, whose weights are constants.

    Of a function with variables, the converter keeps the weights apart from the file if there are several signatures.
    """
    of_graph = tf.function(outputs, list(specs.values()), autograph=False).get_concrete_function()
    constant = convert_variables_to_constants_v2(of_graph, lower_control_flow=False)
    names = sorted(of_graph.structured_outputs)  # in which TensorFlow returns the values of a dict

    def named(**inputs):
        return dict(zip(names, constant(*(inputs[name] for name in specs)), strict=True))

    return tf.function(named, autograph=False).get_concrete_function(**specs)


def constraints_of(rows: int) -> dict[str, tf.TensorSpec]:
    """Return the inputs that only a constrained signature has, which are rules of its search by name."""
    shapes = {
        "prefixes": (PREFIX_TOKENS,),
        "endings": (None, ENDING_TOKENS),
        "forbidden": (None, SEQUENCE_TOKENS),
        "required": (PHRASES, WAYS, PHRASE_TOKENS),
    }
    return {name: tf.TensorSpec([rows, *shape], tf.int32) for name, shape in shapes.items()}


def loops_of(room: Room) -> tuple[SearchLoop, ...]:
    """Return the loops of the search: see SearchPlan.

    A step copies and reads all room that there is. For one sentence, a second loop takes longer than that. Of several,
    the last ones to end would pay for all.
    """
    if room.outputs is None:
        return ()
    if room.rows == 1:
        return (SearchLoop(room.outputs, 1),)
    half = -(-room.outputs // 2)
    return (
        SearchLoop(half, room.rows),
        SearchLoop(room.outputs, room.rows),
        SearchLoop(room.outputs, room.rows // 2),
    )


def search_outputs(
    decoder: Any,
    how: LiteHow,
    shortlist: ShortlistTable | None,
    loops: tuple[SearchLoop, ...],
    source_ids,
    **rules,
) -> dict[str, Any]:
    """Return the outputs of a signature: see `lite_model`."""
    is_constrained = "required" in rules
    rules |= rule_of_placeholders(how.placeholders, source_ids)
    rules |= {"word_edges": how.word_edges} if is_constrained else {}
    plan = SearchPlan(how.options, Rules.of(rules), shortlist, loops, True)
    found = search_with_phrases(decoder, source_ids, plan)
    outputs = {
        "ids": found.ids,
        "scores": ops.where(found.scores > NEVER / 2, found.scores, -float("inf")),
        "is_cut": found.is_cut,
        "is_done": found.scores[:, 0] != UNFINISHED,
    }
    return outputs | ({"lost": found.lost} if is_constrained else {})


@contextlib.contextmanager
def read_as_integers(model: keras.Model, table: Callable[[np.ndarray], Callable[[], Any]]) -> Iterator[None]:
    """Let the embeddings of a model read rounded rows: q (V, d_model) int8 and s (V, 1), so that E is about s q.

    table: called with q; what it returns is called in a graph that reads q.
    """
    layers = [layer for layer in model.layers if isinstance(layer, TokenEmbedding)]
    for layer in layers:
        integers, scales = rounded(layer)
        read = table(integers)
        layer.__dict__["embed"] = functools.partial(rounded_rows, read, scales * np.float32(layer.d_model**0.5))
        layer.__dict__["output_weights"] = functools.partial(weights_of_rounded, layer, read, scales)
    try:
        yield
    finally:
        for layer in layers:
            del layer.__dict__["embed"], layer.__dict__["output_weights"]


def rounded(layer: TokenEmbedding) -> tuple[np.ndarray, np.ndarray]:
    """Return the embeddings as int8 (V, d_model), and float32 (V, 1), by which a row is to be multiplied.

    The weights of logits, if they are the same matrix, are the same integers, which a file holds once.
    """
    return rounded_matrix(ops.convert_to_numpy(layer.matrix).astype(np.float32, copy=False))


def rounded_rows(table: Callable[[], Any], scales: np.ndarray, ids) -> Any:
    """Return the rows with these numbers as floats: ids (...) -> float32 (..., d_model)."""
    return ops.cast(rows_at(table(), ids), "float32") * rows_at(scales, ids)


def weights_of_rounded(
    layer: TokenEmbedding, table: Callable[[], Any], scales: np.ndarray, tokens=None
) -> OutputWeights:
    """Return what `TokenEmbedding.output_weights` returns; those of chosen tokens are made of rounded rows."""
    weights = TokenEmbedding.output_weights(layer, tokens)
    if tokens is None:
        return weights
    return weights._replace(kernel=ops.swapaxes(rounded_rows(table, scales, tokens), -1, -2))
