"""The rule `required` of a search: phrases that an output must have, after Post and Vilar 2018.

It is int32 (B, N, W, M): N phrases, each in up to W ways of at most M tokens, then PAD; one of PAD alone asks for
nothing. The first way is that inside a sentence. A tokenizer may divide a text otherwise at its beginning, where no
space is before it: then the second way is BOS and these tokens, and the first one may not begin there.

An output has a phrase if it has the tokens of a way in a row, and if the next one does not go on with their last word.
Which tokens do is the rule `word_edges`, bool (2, V), the same for all sentences: which begin inside a word, and which
end with a letter. The first token of a phrase does not begin inside a word.

An output ends when it has every phrase. A phrase that has begun counts for nothing if another token comes. As soon as
only as many positions are left as the missing phrases need, they come one after the other. Dynamic beam allocation lets
hypotheses of different progress live beside each other.
"""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.layers.gather import rows_at
from keras_transformer.search.rules.opening import Openings
from keras_transformer.search.rules.placeholders import Placeholders
from keras_transformer.search.rules.rule import Rule, of_every_hypothesis
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.state import BeamState

MANY = 1_000_000_000  # more tokens than any output has


def longest_ways(lengths):
    """(..., N, W) -> (..., N), 0 without ways"""
    return ops.max(lengths, axis=-1, initial=0)


class Progress(NamedTuple):
    """What the hypotheses of a search have of the phrases of their sentences. BOS is no token of a way here."""

    lengths: Any  # int32 (B, 1, N, W): tokens of each way, 0 for one that does not exist
    is_begun: Any  # bool (B, K, N, W, M + 1): whether the output ends with the first 0, 1, ... M items of a way
    reached: Any  # int32 (B, K, N, W): tokens with which the output has begun a way, fewer than all
    can_begin: Any  # bool (B, K, N): whether the first token of the first way may come now
    can_go_on: Any  # bool (B, K, N, W): whether the next token of a way may come now
    is_met: Any  # bool (B, K, N): whether the output has the phrase, whatever comes
    is_open: Any  # bool (B, K, N): the output ends with the phrase, and has it if the next token is another word

    def missing(self):
        """Return which phrases the output does not end with and does not have: bool (B, K, N)."""
        return ops.logical_not(ops.logical_or(self.is_met, self.is_open))

    def left(self):
        """Return how many tokens of each way are still to come if it goes on: int32 (B, K, N, W)."""
        return self.lengths - self.reached

    def needed_for(self, phrases):
        """Return how many tokens some of the phrases need inside a sentence: bool (B, K, N) -> int32 (B, K)."""
        return ops.sum(ops.where(phrases, self.lengths[..., 0], 0), axis=2)


class Required(NamedTuple("Required", [("required", Any), ("word_edges", Any)]), Rule):
    @property
    def begins(self):
        """1 for each way that begins with BOS, 0 for others: int32 (B, N, W)."""
        return ops.cast(ops.any(self.required == BOS, axis=3), "int32")

    @property
    def lengths(self):
        """The tokens of each way, without BOS: int32 (B, N, W), 0 for one that does not exist."""
        return ops.sum(ops.cast(self.required != PAD, "int32"), axis=3) - self.begins

    @property
    def edges(self) -> tuple:
        """Which tokens begin inside a word, and which end with a letter: bool (V,), bool (V,)."""
        return self.word_edges[0], self.word_edges[1]

    def is_any(self):
        """Return whether any sentence of the batch must have a phrase: bool ()."""
        return ops.any(self.required != PAD)

    def is_any_of_each(self):
        """Return which sentences must have a phrase: bool (B,)."""
        return ops.any(self.required != PAD, axis=(1, 2, 3))

    def of_rows(self, rows) -> "Required":
        return self._replace(required=rows_at(self.required, rows))

    def tokens(self):
        """Return how many tokens the phrases of each sentence have together, in their longest ways: int32 (B,)."""
        return ops.sum(longest_ways(self.lengths), axis=1)

    def needed(self, source_tokens) -> tuple[Any, Any]:
        return self.tokens(), ops.shape(self.required)[1] * ops.shape(self.required)[3]

    def pieces(self) -> tuple:
        return (self.required,)

    def in_columns(self, columns_of, pieces) -> "Required":
        return Required(columns_of(self.required), ops.take(self.word_edges, pieces, axis=1))

    def is_asked(self, state: BeamState) -> Any:
        return self.is_any()

    def allowed(self, state: BeamState, is_allowed) -> Any:
        is_allowed = of_every_hypothesis(state, is_allowed)
        return ops.cond(self.is_any(), lambda: self.restricted(state, is_allowed), lambda: is_allowed)

    def progress(self, state: BeamState) -> Progress:
        """Compare what the hypotheses have with the phrases of their sentences."""
        required, (goes_on, is_word_end) = self.required, self.edges
        sentences, count, ways, longest = ops.shape(required)
        ids, position = state.ids, state.position
        begins_at = 0
        if state.rules.find(Openings):  # an output begins behind it
            begins_at = 1
            ids = ops.concatenate([ops.full_like(ids[:, :, :1], BOS), ids[:, :, 1:]], axis=2)
        phrases = ops.reshape(required, (sentences, count * ways, longest))  # (B, R, M): R = N W
        items = ops.sum(ops.cast(phrases != PAD, "int32"), axis=2)  # (B, R): tokens, and BOS
        exists = ops.expand_dims(items > 0, 1)  # (B, 1, R)
        places = ops.arange(longest)  # (M,)

        counts = ops.expand_dims(ops.arange(longest + 1), 1)  # (M + 1, 1)
        ends = ops.expand_dims(tokens_at(ids, position - counts + places), 2)  # (B, K, 1, M + 1, M)
        agrees = ends == ops.expand_dims(phrases, (1, 3))  # (B, K, R, M + 1, M)
        is_begun = ops.all(ops.logical_or(agrees, places >= counts), axis=4)
        is_part = ops.logical_and(is_begun, ops.arange(longest + 1) < ops.expand_dims(items, (1, 3)))
        reached = ops.max(ops.where(is_part, ops.arange(longest + 1), 0), axis=3)  # (B, K, R)
        is_all = ops.arange(longest + 1) == ops.expand_dims(items, (1, 3))
        is_at_end = ops.logical_and(ops.any(ops.logical_and(is_begun, is_all), axis=3), exists)  # (B, K, R)

        shift = longest - ops.expand_dims(items, 2)  # (B, R, 1)
        moved = ops.take_along_axis(phrases, ops.maximum(places - shift, 0), axis=2)
        moved = ops.where(places >= shift, moved, PAD)  # (B, R, M): PAD first
        nexts = ops.arange(ops.shape(ids)[2])  # (T,): where the token after a phrase stands
        windows = ops.expand_dims(tokens_at(ids, ops.expand_dims(nexts - longest, 1) + places), 3)  # (B, K, T, 1, M)
        moved = ops.expand_dims(moved, (1, 2))  # (B, 1, 1, R, M)
        is_before = ops.all(ops.logical_or(windows == moved, moved == PAD), axis=4)  # (B, K, T, R)
        ends_in_word = ops.take(is_word_end, moved[..., -1], axis=0)  # (B, 1, 1, R)
        is_longer_word = ops.logical_and(ends_in_word, ops.expand_dims(ops.take(goes_on, ids, axis=0), 3))
        is_before = ops.logical_and(is_before, ops.expand_dims(nexts < position, 1))
        is_whole = ops.any(ops.logical_and(is_before, ops.logical_not(is_longer_word)), axis=2)  # (B, K, R)
        is_closed = ops.logical_and(is_at_end, ops.logical_not(ends_in_word[:, 0]))
        is_met = ops.logical_and(ops.logical_or(is_whole, is_closed), exists)

        def of_ways(rows):
            """(B, K or 1, R, ...) -> (B, K or 1, N, W, ...)"""
            shape = ops.shape(rows)
            return ops.reshape(rows, (sentences, shape[1], count, ways, *shape[3:]))

        is_met = ops.logical_or(ops.any(of_ways(is_met), axis=3), ~ops.any(of_ways(exists), axis=3))
        is_open = ops.logical_and(ops.any(of_ways(is_at_end), axis=3), ~is_met)
        begins = ops.expand_dims(self.begins, 1)  # (B, 1, N, W)
        reached, exists = of_ways(reached), of_ways(exists)
        is_at_beginning = ops.logical_and(
            ops.any(begins > 0, axis=3), position <= begins_at
        )  # (B, 1, N): where it has another way
        can_begin = ops.logical_and(exists[..., 0], ~ops.broadcast_to(is_at_beginning, ops.shape(is_met)))
        can_go_on = ops.where(begins > 0, reached > 0, ops.expand_dims(can_begin, 3))
        return Progress(
            lengths=ops.expand_dims(self.lengths, 1),
            is_begun=of_ways(is_begun),
            reached=ops.maximum(reached - begins, 0),
            can_begin=can_begin,
            can_go_on=ops.logical_and(can_go_on, exists),
            is_met=is_met,
            is_open=is_open,
        )

    def next_tokens(self, progress: Progress):
        """Return the token with which each hypothesis goes on with each way: int32 (B, K, N, W)."""
        items = progress.reached + ops.expand_dims(self.begins, 1)
        ways = ops.expand_dims(self.required, 1)  # (B, 1, N, W, M)
        ways = ops.broadcast_to(ways, (*ops.shape(items), ops.shape(ways)[4]))
        return ops.take_along_axis(ways, ops.expand_dims(items, 4), axis=4)[..., 0]

    def restricted(self, state: BeamState, is_allowed):
        """Return what `allowed` returns if any sentence must have a phrase.

        Any token may come after which there is room for what is then missing. So there is always room to go on with a
        phrase or to begin one; if nothing else may come, one of these tokens does.
        """
        progress, (goes_on, _) = self.progress(state), self.edges
        is_missing = progress.missing()
        missing = progress.needed_for(is_missing)  # (B, K)
        undone = progress.needed_for(progress.is_open)  # what is missing too if the next token goes on with the word
        room = ops.expand_dims(state.rules.limits - 1 - state.position, 1)  # (B, 1): positions before the last EOS
        if placeholders := state.rules.find(Placeholders):
            room = room - ops.sum(placeholders.left(state), axis=2)
        missing, undone, room = (ops.expand_dims(each, 2) for each in (missing, undone, room))  # (B, K, 1)

        vocab_size = ops.shape(is_allowed)[2]
        needed = missing + ops.where(goes_on, undone, 0)  # (B, K, V): after each token that is of no phrase
        is_end = ops.arange(vocab_size) == EOS
        is_free = ops.logical_and(ops.logical_or(needed == 0, needed < room), ops.logical_or(missing == 0, ~is_end))
        begins = ops.expand_dims(self.required[:, :, 0, 0], 1)  # (B, 1, N): with which a phrase may begin anew
        begins = ops.broadcast_to(begins, ops.shape(is_missing))
        can_begin = progress.can_begin
        nexts = self.next_tokens(progress)  # (B, K, N, W)
        tokens = in_row(ops.concatenate([nexts, ops.expand_dims(begins, 3)], axis=3))  # (B, K, N (W + 1))
        shorter = (
            ops.expand_dims(progress.lengths[..., 0], 3) - progress.left()
        )  # by which a phrase needs fewer, going on
        shorter = ops.concatenate([shorter, ops.zeros_like(shorter[..., :1])], axis=3)
        may_come = ops.concatenate([progress.can_go_on, ops.expand_dims(can_begin, 3)], axis=3)
        may_come = in_row(ops.logical_and(may_come, ops.expand_dims(is_missing, 3)))
        needs = missing - in_row(shorter) + ops.where(ops.take(goes_on, tokens, axis=0), undone, 0)
        needs = ops.where(may_come, needs, MANY)
        least = ops.maximum(room, ops.min(needs, axis=2, keepdims=True))  # a model of learned positions may lack room
        is_of_phrase = tokens_among(tokens, ops.logical_and(needs <= least, needs < MANY), vocab_size)
        is_free = ops.logical_and(is_free, ~tokens_among(begins, ops.logical_and(is_missing, ~can_begin), vocab_size))
        is_allowed = ops.logical_and(is_allowed, ops.logical_or(is_free, ops.logical_and(is_of_phrase, ~is_end)))
        is_stuck = ~ops.any(is_allowed, axis=2, keepdims=True)
        last_way = ops.where(missing > 0, is_of_phrase, is_end)
        return ops.where(is_stuck, last_way, is_allowed)


def tokens_at(ids, places):
    """Return the tokens of outputs at places: int32 (B, K, T), (...) -> int32 (B, K, ...).

    Before their beginning stands BOS, and before it -1.
    """
    sentences, hypotheses, room = ops.shape(ids)
    flat = ops.reshape(places, (-1,))
    tokens = ops.take(ids, ops.clip(flat, 0, room - 1), axis=2)
    tokens = ops.where(flat >= 0, tokens, ops.where(flat == -1, BOS, -1))
    return ops.reshape(tokens, (sentences, hypotheses, *ops.shape(places)))


def in_row(ways):
    """(B, K, N, W) -> (B, K, N W)"""
    sentences, hypotheses, *shape = ops.shape(ways)
    return ops.reshape(ways, (sentences, hypotheses, math.prod(shape)))
