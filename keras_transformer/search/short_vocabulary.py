"""A search over the few pieces that may translate a batch, in place of the whole vocabulary.

The logits of a step are those of the pieces in the lists of the batch (shortlist/shortlist.py), its columns. The search
knows nothing of it: its tokens are numbers of columns, and become pieces where a decoder embeds them and where the
search ends. In each sentence only the pieces of its own lists are possible, so that a translation and its score are the
same in any batch.

If shapes are static, a sentence has columns of its own, as many as it may need. If that is much of the vocabulary, all
pieces are columns, and those that are not listed only become impossible: a product with chosen columns takes longer
than one with as many that are always the same.
"""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.layers.gather import at_columns, rows_at
from keras_transformer.search.ensemble import EnsembleDecoder
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import PerSentence
from keras_transformer.search.top_k import BLOCK_WIDTHS

WIDTH = BLOCK_WIDTHS[0]  # of which the number of columns is a multiple, for `top_k`
USUAL = 1.5  # see `usual_columns`


class ShortlistTable(NamedTuple):
    """A Shortlist as tensors or arrays."""

    lists: Any  # int32 (V, N): the target pieces of each source piece, then PAD
    always: Any  # int32 (any number,): pieces of every sentence, in order, the special ones first
    most: float = 0.25  # of the vocabulary; if static shapes need more columns, all pieces are columns


class ShortVocabulary(NamedTuple):
    """The C columns of a batch of B sentences, or of each of them. Special pieces are columns of the same numbers."""

    pieces: Any  # int32 (C,) or (B, C): of each column, rising; others where no column is used; None: all pieces
    columns: Any  # int32 (V,) or (B, V): of each piece that has one; None: every piece is the column of its number
    bias: Any  # float32 (B, C): 0 in the columns that a sentence may use, NEVER in the others
    fits: Any = None  # bool (B,): whether a sentence has all columns that it needs; None: all have

    def in_columns(self, rules: Rules) -> Rules:
        """Return the rules of a search with columns in place of pieces."""
        if self.columns is None:
            return rules

        def columns_of(pieces):
            return ops.where(pieces > PAD, numbers_in(self.columns, ops.maximum(pieces, PAD)), pieces)

        return rules._replace(table=tuple(rule.in_columns(columns_of, self.pieces) for rule in rules.table))

    def in_pieces(self, columns):
        """Return the pieces of columns: int (B, ...) -> int32 (B, ...)."""
        return columns if self.pieces is None else numbers_in(self.pieces, columns)


def numbers_in(table, places):
    """Return what stands at these places: int32 (any number,) or (B, any number), int32 (B, ...) -> int32 (B, ...)."""
    if len(table.shape) == 1:
        return rows_at(table, places)
    sentences, *shape = ops.shape(places)
    return ops.reshape(at_columns(table, ops.reshape(places, (sentences, math.prod(shape)))), (sentences, *shape))


def short_vocabulary(
    table: ShortlistTable, source_ids, rules: Rules, least: int, static_shapes: bool, usual: bool = False
) -> ShortVocabulary:
    """Return the columns of a batch: the pieces in the lists of its source pieces, in `always`, and in its rules.

    The pieces that a sentence must have by its rules are possible in it, and so are all placeholders.

    Shapes: source_ids int32 (B, S). C is a multiple of WIDTH and at least `least`. If shapes are static, it is as many
    as B sentences of S tokens could need. With `usual`, each sentence has columns of its own, as many as are usually
    enough. If shapes are not static, there are no more than are needed.
    """
    vocab_size = table.lists.shape[0]
    possible = possible_pieces(table, source_ids, rules)  # (B, M), with PAD in between
    if not static_shapes:
        return columns_needed(possible, vocab_size, least)
    most = usual_columns(table, source_ids.shape[1]) if usual else most_columns(table, possible.shape)
    size = multiple_of_width(max(most, least))
    if size > table.most * vocab_size:
        return ShortVocabulary(None, None, bias_of(is_in_rows(possible, vocab_size)))
    if usual:
        return columns_of_each(possible, vocab_size, size)
    columns_of_all = columns_of_each(ops.reshape(possible, (1, -1)), vocab_size, size)
    pieces, columns = columns_of_all.pieces[0], columns_of_all.columns[0]
    return ShortVocabulary(pieces, columns, bias_of(is_in_rows(rows_at(columns, possible), size)))


def columns_needed(possible, vocab_size: int, least: int) -> ShortVocabulary:
    """Return as many columns as the possible pieces of a batch need: int32 (B, M)."""
    is_in = counted(possible, vocab_size) > 0
    columns = ops.cumsum(ops.cast(is_in, "int32")) - 1
    pieces = ops.cast(ops.nonzero(is_in)[0], "int32")
    needed = ops.shape(pieces)[0]
    size = multiple_of_width(ops.maximum(needed, least))
    pieces = ops.concatenate([pieces, ops.full((size - needed,), PAD, dtype="int32")])
    return ShortVocabulary(pieces, columns, bias_of(is_in_rows(rows_at(columns, possible), size)))


def columns_of_each(possible, vocab_size: int, size: int) -> ShortVocabulary:
    """Return `size` columns for each sentence, the first of its possible pieces: int32 (B, M)."""
    sentences = ops.shape(possible)[0]
    is_in = is_in_rows(possible, vocab_size)
    columns = ops.cumsum(ops.cast(is_in, "int32"), axis=1) - 1
    needed = columns[:, -1:] + 1
    first_places = ops.expand_dims(ops.arange(sentences, dtype="int32") * (size + 1), 1)
    places = ops.where(is_in, ops.minimum(columns, size), size) + first_places
    numbers = ops.broadcast_to(ops.arange(vocab_size, dtype="int32"), (sentences, vocab_size))
    pieces = ops.segment_sum(ops.reshape(numbers, (-1,)), ops.reshape(places, (-1,)), sentences * (size + 1))
    pieces = ops.reshape(pieces, (sentences, size + 1))[:, :size]
    is_used = ops.arange(size, dtype="int32") < needed
    return ShortVocabulary(pieces, ops.minimum(columns, size - 1), bias_of(is_used), needed[:, 0] <= size)


def is_in_rows(numbers, size):
    """Return which numbers from 0 to size - 1 each row has: int32 (B, M) -> bool (B, size)."""
    sentences = ops.shape(numbers)[0]
    first_places = ops.expand_dims(ops.arange(sentences, dtype="int32") * size, 1)
    return ops.reshape(counted(numbers + first_places, sentences * size) > 0, (sentences, size))


def bias_of(is_listed):
    """Return what is added to logits so that others are impossible: bool (...) -> float32 (...)."""
    return ops.where(is_listed, 0.0, NEVER)


def usual_columns(table: ShortlistTable, tokens: int) -> int:
    """Return how many columns are enough for nearly all sentences of so many tokens.

        always + USUAL N sqrt(tokens)        N: pieces of the longest list

    Of Multi30k's validation set, with lists of 101 pieces, no sentence of up to 16, 24 and 32 tokens needs more than
    685, 866 and 895; the next multiples of WIDTH are 768, 896 and 1,024.
    """
    return table.always.shape[0] + math.ceil(USUAL * table.lists.shape[1] * math.sqrt(tokens))


def most_columns(table: ShortlistTable, shape: tuple) -> int:
    """Return how many pieces may be possible in a batch, from the shape of `possible_pieces`."""
    vocab_size, of_all = table.lists.shape[0], table.always.shape[0]
    if None in shape:
        return vocab_size
    sentences, most = shape
    return min(vocab_size, sentences * (most - of_all) + of_all)


def possible_pieces(table: ShortlistTable, source_ids, rules: Rules):
    """Return every piece that each sentence may use, some several times, with PAD in between: int32 (B, M)."""
    sentences = ops.shape(source_ids)[0]
    always = ops.convert_to_tensor(table.always)
    parts = [
        ops.reshape(ops.take(table.lists, source_ids, axis=0), (sentences, -1)),
        ops.broadcast_to(ops.expand_dims(always, 0), (sentences, always.shape[0])),
    ]
    forced = (pieces for rule in rules.table for pieces in rule.pieces())
    parts += [ops.reshape(ops.maximum(ops.cast(pieces, "int32"), PAD), (sentences, -1)) for pieces in forced]
    return ops.concatenate(parts, axis=1)


def counted(numbers, size):
    """Return how often each number from 0 to size - 1 occurs: int32 of any shape -> int32 (size,)."""
    numbers = ops.reshape(numbers, (-1,))
    # Of 20,000 numbers a scatter takes three times as long
    return ops.segment_sum(ops.ones_like(numbers), numbers, size)


def multiple_of_width(size):
    """Return the next multiple of WIDTH."""
    return -(-size // WIDTH) * WIDTH


class ShortState(NamedTuple):
    """The state of the inner decoder, and the columns of each sentence."""

    decoder: Any
    bias: PerSentence  # of float32 (B, C)


class ShortDecoder:
    """A decoder whose tokens are the columns of a ShortVocabulary, and whose probabilities are over them alone."""

    def __init__(self, decoder: Any, vocabulary: ShortVocabulary):
        self.decoder, self.config, self.vocabulary = decoder, decoder.config, vocabulary

    def step_weights(self) -> Any:
        """Return the weights of a step, with the columns of the batch in place of the vocabulary."""
        return self.decoder.step_weights(self.vocabulary.pieces)

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> ShortState:
        """Run the encoder. Arguments and shapes: as of IncrementalDecoder."""
        decoder = self.decoder.start(source_ids, hypotheses, counts_attention)
        return ShortState(decoder, PerSentence(self.vocabulary.bias))

    def step(self, weights: Any, state: ShortState, tokens, position, has_room: bool = False):
        """Feed one column per hypothesis: tokens int (B, K) at `position` int (). Return logits and the new state.

        Shapes: logits float32 (B * K, C), about NEVER for what a sentence may not use.
        """
        pieces = self.vocabulary.in_pieces(tokens)
        logits, decoder = self.decoder.step(weights, state.decoder, pieces, position, has_room)
        bias = state.bias.shared
        sentences, size = ops.shape(bias)
        if bias.shape[0] == 1:  # of static shapes
            return logits + bias, state._replace(decoder=decoder)
        by_sentence = ops.reshape(logits, (sentences, tokens.shape[1], size)) + ops.expand_dims(bias, 1)
        return ops.reshape(by_sentence, (-1, size)), state._replace(decoder=decoder)


def over_columns(decoder: Any, vocabulary: ShortVocabulary) -> Any:
    """Return the decoder over the columns of a batch. Of an ensemble, each member is, and so is their mean."""
    if isinstance(decoder, EnsembleDecoder):
        return EnsembleDecoder([over_columns(member, vocabulary) for member in decoder.decoders])
    return ShortDecoder(decoder, vocabulary)
