"""A decoder that writes only trees, around a decoder that knows nothing of trees.

A search sees a decoder as a function of (state, token). This one adds to the state which brackets are open, and gives
every symbol after which the output could not become a tree (see linear.py) a logit at which it is never chosen. The
other symbols do not become more probable: a score stays the model's own log-probability.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.parsing.linear import is_closing, is_leaf, is_opening
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.search.options import ON, SearchOptions, check_reads_no_text
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import PerSentence

DEEPEST = 100  # brackets that may be open at once; the deepest tree of the Penn Treebank's sample has 32


def check_rules(options: SearchOptions) -> None:
    """Raises ConfigError for a rule that may forbid the only token that continues a tree, or allow a forbidden one."""
    check_reads_no_text(options, "a search that writes only trees (--constrained)")
    contradicts = {
        "min_length": options.min_length > 1,
        "no_repeat_ngram_size": options.no_repeat_ngram_size > 0,
        "shortlist": options.shortlist == ON,  # it may lack a piece that the tree needs
        "repetition_penalty": options.repetition_penalty < 1,  # below 1 it raises the score of forbidden tokens
    }
    for name in filter(contradicts.get, contradicts):
        raise ConfigError(
            f"{name} is {getattr(options, name)} (--{name.replace('_', '-')}), which contradicts a search that writes "
            "only trees (--constrained): give one of them."
        )


def check_pieces(pieces: Sequence[str]) -> None:
    """Raises ConfigError unless some pieces open and close a bracket at the beginning of a line, and one is a leaf."""
    after_space = {piece[1:] for piece in pieces if piece.startswith(SPACE)}
    roots = {piece[1:] for piece in pieces if is_opening(piece)}
    if not roots & {symbol[1:] for symbol in after_space if is_closing(symbol)} or not any(map(is_leaf, after_space)):
        raise ConfigError(
            "A search that writes only trees (--constrained) needs a tokenizer with a piece for each bracket, such as "
            "'(S' and ')S', and for a word, such as 'XX', but this one lacks them: take a run trained on a treebank."
        )


class TreeState(NamedTuple):
    """The state of the inner decoder, and the tree so far of each of K hypotheses."""

    decoder: Any
    words: PerSentence  # of int32 (B,)
    room: PerSentence  # of int32 (B,): tokens of the longest output, EOS included
    leaves: Any  # int32 (B, K)
    depth: Any  # int32 (B, K): brackets that are open
    labels: Any  # int32 (B, K, DEEPEST): their labels, the outermost first
    is_empty: Any  # bool (B, K): True if the last symbol opened a bracket


class TreeDecoder:
    """The decoder of a run on a treebank. Every hypothesis that ends with its logits is a tree over its sentence.

    A tree must fit into the longest output. A sentence is not constrained if even its flat tree would not fit.

    pieces: the written form of every token. options: of the search. Raises ConfigError for options that may forbid the
    only token with which a tree can go on, and if no tree can be written with the pieces.
    """

    def __init__(self, decoder: Any, pieces: Sequence[str], options: SearchOptions):
        check_rules(options)
        check_pieces(pieces)
        self.decoder, self.config, self.options = decoder, decoder.config, options
        symbols = [piece.removeprefix(SPACE) for piece in pieces]
        numbers = {label: number for number, label in enumerate(sorted({symbol[1:] for symbol in symbols}), 1)}

        def table(values: Any):
            return ops.convert_to_tensor(np.array(list(values), np.int32))

        self.opens = table(numbers[symbol[1:]] if is_opening(symbol) else 0 for symbol in symbols)  # (V,)
        # a closing bracket or a leaf without a space before it would be part of the symbol before
        after_space = [piece[1:] if piece.startswith(SPACE) else "" for piece in pieces]
        self.closes = table(numbers[symbol[1:]] if is_closing(symbol) else 0 for symbol in after_space)
        self.is_leaf = table(map(is_leaf, after_space)) > 0
        self.begins_word = table(piece.startswith(SPACE) for piece in pieces) > 0

    def step_weights(self) -> Any:
        return self.decoder.step_weights()

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> TreeState:
        """Run the encoder. The words of a sentence are counted by the spaces before its pieces."""
        source_ids = ops.convert_to_tensor(source_ids, dtype="int32")
        tokens = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
        words = ops.sum(ops.cast(ops.take(self.begins_word, source_ids), "int32"), axis=1) + 1
        words = ops.where(tokens > 1, words, 0)  # a source of EOS alone has none
        room = tokens + self.options.extra_length
        for most in (self.options.max_length, self.config.position_limit):
            room = room if most is None else ops.minimum(room, most)
        nothing = ops.zeros((ops.shape(source_ids)[0], hypotheses), dtype="int32")
        labels = ops.zeros((ops.shape(source_ids)[0], hypotheses, DEEPEST), dtype="int32")
        decoder = self.decoder.start(source_ids, hypotheses, counts_attention)
        return TreeState(decoder, PerSentence(words), PerSentence(room), nothing, nothing, labels, nothing > 0)

    def step(self, weights: Any, state: TreeState, tokens, position, has_room: bool = False):
        """Feed one token per hypothesis: tokens int (B, K) at `position` int (). Return logits and the new state.

        Shapes: logits float32 (B * K, vocab_size).
        """
        logits, decoder = self.decoder.step(weights, state.decoder, tokens, position, has_room)
        state = self.read(state._replace(decoder=decoder), tokens)
        is_allowed = ops.reshape(self.allowed(state, position + 1), (-1, logits.shape[-1]))
        forbidden = ops.logsumexp(ops.where(is_allowed, NEVER, logits), axis=1, keepdims=True)
        logits = ops.where(is_allowed, logits, NEVER)
        # PAD is never chosen; with the sum of all forbidden tokens, it leaves the other probabilities as they are
        return ops.where(ops.arange(logits.shape[-1]) == PAD, forbidden, logits), state

    def read(self, state: TreeState, tokens) -> TreeState:
        """Return the state after tokens int (B, K); BOS changes nothing."""
        opened, closed = ops.take(self.opens, tokens), ops.cast(ops.take(self.closes, tokens) > 0, "int32")
        is_opened = opened > 0
        is_next = ops.arange(DEEPEST) == ops.expand_dims(state.depth, 2)
        is_next = ops.logical_and(is_next, ops.expand_dims(is_opened, 2))
        return state._replace(
            leaves=state.leaves + ops.cast(ops.take(self.is_leaf, tokens), "int32"),
            depth=state.depth + ops.cast(is_opened, "int32") - closed,
            labels=ops.where(is_next, ops.expand_dims(opened, 2), state.labels),
            is_empty=is_opened,
        )

    def allowed(self, state: TreeState, length):
        """Return which tokens may come next, as token number `length` of their outputs: bool (B, K, V).

        A bracket may open only if all words, all closing brackets and EOS still fit behind it.
        """
        words, room = (ops.expand_dims(each.shared, 1) for each in (state.words, state.room))
        left = words - state.leaves  # (B, K)
        is_begun, is_inside = state.leaves + state.depth > 0, state.depth > 0
        fits = length + left + state.depth + 2 <= room
        may_open = ops.logical_and(ops.logical_and(left > 0, fits), state.depth < DEEPEST)
        may_close = ops.logical_and(ops.logical_not(state.is_empty), ops.logical_or(state.depth > 1, left == 0))
        last = ops.expand_dims(ops.maximum(state.depth - 1, 0), 2)
        label = ops.where(
            ops.logical_and(may_close, is_inside), ops.take_along_axis(state.labels, last, axis=2)[..., 0], -1
        )
        may_end = ops.logical_and(ops.logical_not(is_inside), left == 0)

        def both(of_hypotheses, of_tokens):  # (B, K), (V,) -> (B, K, V)
            return ops.logical_and(ops.expand_dims(of_hypotheses, 2), of_tokens)

        opens = self.opens > 0
        may_come = (
            both(
                ops.logical_and(may_open, ops.logical_not(is_begun)),
                ops.logical_and(opens, ops.logical_not(self.begins_word)),
            ),
            both(ops.logical_and(may_open, is_inside), ops.logical_and(opens, self.begins_word)),
            both(ops.logical_and(left > 0, is_inside), self.is_leaf),
            ops.expand_dims(label, 2) == self.closes,
            both(may_end, ops.arange(self.opens.shape[0]) == EOS),
            ops.expand_dims(ops.broadcast_to(words + 3 > room, ops.shape(left)), 2),  # not constrained
        )
        return functools.reduce(ops.logical_or, may_come)
