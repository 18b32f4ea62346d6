"""The rule `required` of a search: phrases that an output must have, after Post and Vilar 2018.

It is int32 (B, N, M): N phrases of at most M tokens, then PAD; one of PAD alone asks for nothing. An output has a
phrase if it has its tokens in a row, and if the next one does not go on with their last word. Which tokens do is the
rule `word_edges`, bool (2, V), the same for all sentences: which begin inside a word, and which end with a letter. The
first token of a phrase does not begin inside a word.

An output ends when it has every phrase. A phrase that has begun counts for nothing if another token comes. As soon as
only as many positions are left as the missing phrases need, they come one after the other. decoding/banks.py lets
hypotheses of different progress live beside each other.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.decoding.placeholders import left
from keras_transformer.decoding.state import BeamState, Rules
from keras_transformer.tokens import EOS, PAD

MANY = 1_000_000_000  # more tokens than any output has


def tokens_of_phrases(rules: Rules):
    """Return how many tokens the phrases of each sentence have together: int32 (B,)."""
    return ops.sum(ops.cast(rules["required"] != PAD, "int32"), axis=(1, 2))


def is_any_required(rules: Rules):
    """Return whether any sentence of the batch must have a phrase: bool ()."""
    return ops.any(rules["required"] != PAD)


class Progress(NamedTuple):
    """What the hypotheses of a search have of the phrases of their sentences."""

    lengths: Any  # int32 (B, 1, N): tokens of each phrase
    is_begun: Any  # bool (B, K, N, M + 1): whether the output ends with the first 0, 1, ... M tokens of a phrase
    is_met: Any  # bool (B, K, N): whether the output has the phrase, whatever comes
    is_open: Any  # bool (B, K, N): the output ends with the phrase, and has it if the next token is another word

    def missing(self):
        """Return which phrases the output does not end with and does not have: bool (B, K, N)."""
        return ops.logical_not(ops.logical_or(self.is_met, self.is_open))

    def reached(self):
        """Return the tokens with which the output has begun each phrase, fewer than all: int32 (B, K, N)."""
        counts = ops.arange(ops.shape(self.is_begun)[3])
        is_part = ops.logical_and(self.is_begun, counts < ops.expand_dims(self.lengths, 3))
        return ops.max(ops.where(is_part, counts, 0), axis=3)

    def tokens_in(self, phrases):
        """Return how many tokens some of the phrases have: bool (..., N) -> int32 (...)."""
        lengths = ops.broadcast_to(ops.reshape(self.lengths, self._shape(phrases)), ops.shape(phrases))
        return ops.sum(ops.where(phrases, lengths, 0), axis=-1)

    def _shape(self, phrases) -> tuple:
        sentences, _, count = ops.shape(self.lengths)
        return (sentences, *[1] * (len(phrases.shape) - 2), count)


def progress_of(state: BeamState) -> Progress:
    """Compare what the hypotheses have with the phrases of their sentences."""
    phrases, (goes_on, is_word_end) = state.rules["required"], word_edges_of(state.rules)
    longest, position = ops.shape(phrases)[2], state.position
    lengths = ops.sum(ops.cast(phrases != PAD, "int32"), axis=2)  # (B, N)
    places = ops.arange(longest)  # (M,)

    counts = ops.expand_dims(ops.arange(longest + 1), 1)  # (M + 1, 1)
    ends = ops.expand_dims(tokens_at(state.ids, position - counts + places), 2)  # (B, K, 1, M + 1, M)
    agrees = ends == ops.expand_dims(phrases, (1, 3))  # (B, K, N, M + 1, M)
    is_begun = ops.all(ops.logical_or(agrees, places >= counts), axis=4)
    is_all = ops.arange(longest + 1) == ops.expand_dims(lengths, (1, 3))
    is_at_end = ops.any(ops.logical_and(is_begun, is_all), axis=3)  # (B, K, N)

    shift = longest - ops.expand_dims(lengths, 2)  # (B, N, 1)
    moved = ops.take_along_axis(phrases, ops.maximum(places - shift, 0), axis=2)
    moved = ops.where(places >= shift, moved, PAD)  # (B, N, M): PAD first
    nexts = ops.arange(ops.shape(state.ids)[2])  # (T,): where the token after a phrase stands
    windows = ops.expand_dims(tokens_at(state.ids, ops.expand_dims(nexts - longest, 1) + places), 3)  # (B, K, T, 1, M)
    moved = ops.expand_dims(moved, (1, 2))  # (B, 1, 1, N, M)
    is_before = ops.all(ops.logical_or(windows == moved, moved == PAD), axis=4)  # (B, K, T, N)
    ends_in_word = ops.take(is_word_end, moved[..., -1], axis=0)  # (B, 1, 1, N)
    is_longer_word = ops.logical_and(ends_in_word, ops.expand_dims(ops.take(goes_on, state.ids, axis=0), 3))
    is_before = ops.logical_and(is_before, ops.expand_dims(nexts < position, 1))
    is_whole = ops.any(ops.logical_and(is_before, ops.logical_not(is_longer_word)), axis=2)  # (B, K, N)

    is_closed = ops.logical_and(is_at_end, ops.logical_not(ends_in_word[:, 0]))
    lengths = ops.expand_dims(lengths, 1)
    is_met = ops.logical_or(ops.logical_or(is_whole, is_closed), lengths == 0)
    return Progress(lengths, is_begun, is_met, ops.logical_and(is_at_end, ops.logical_not(is_met)))


def word_edges_of(rules: Rules) -> tuple:
    """Return which tokens begin inside a word, and which end with a letter: bool (V,), bool (V,)."""
    return rules["word_edges"][0], rules["word_edges"][1]


def tokens_at(ids, places):
    """Return the tokens of outputs at places, -1 before their beginning: (B, K, T), (...) -> int32 (B, K, ...)."""
    sentences, hypotheses, room = ops.shape(ids)
    flat = ops.reshape(places, (-1,))
    tokens = ops.take(ids, ops.clip(flat, 0, room - 1), axis=2)
    tokens = ops.where(flat >= 0, tokens, -1)
    return ops.reshape(tokens, (sentences, hypotheses, *ops.shape(places)))


def next_tokens(state: BeamState, progress: Progress):
    """Return the token with which each hypothesis goes on with each phrase: int32 (B, K, N)."""
    phrases = ops.broadcast_to(
        ops.expand_dims(state.rules["required"], 1), (*ops.shape(progress.is_met), ops.shape(progress.is_begun)[3] - 1)
    )
    return ops.take_along_axis(phrases, ops.expand_dims(progress.reached(), 3), axis=3)[..., 0]


def allowed_by_required(state: BeamState, is_allowed):
    """Return which tokens may come if, without the rule, these may: bool (B, K, V), the same is returned.

    Any token may come after which there is room for what is then missing. So there is always room to go on with a
    phrase or to begin one; if nothing else may come, one of these tokens does.
    """
    progress, (goes_on, _) = progress_of(state), word_edges_of(state.rules)
    is_missing = progress.missing()
    missing = progress.tokens_in(is_missing)  # (B, K)
    undone = progress.tokens_in(progress.is_open)  # what is missing too if the next token goes on with the word
    room = ops.expand_dims(state.rules["limits"] - 1 - state.position, 1)  # (B, 1): positions before the last EOS
    if "placeholders" in state.rules:
        room = room - ops.sum(left(state).counts, axis=2)
    missing, undone, room = (ops.expand_dims(each, 2) for each in (missing, undone, room))  # (B, K, 1)

    def of_tokens(tokens, is_possible):
        """Return which tokens are among some: int32 (B, K, N), bool (B, K, N) -> bool (B, K, V)."""
        sentences, hypotheses, vocab_size = ops.shape(is_allowed)
        rows = ops.reshape(ops.arange(sentences * hypotheses) * vocab_size, (sentences, hypotheses, 1))
        counts = ops.segment_sum(
            ops.reshape(ops.cast(is_possible, "int32"), (-1,)),
            ops.reshape(rows + tokens, (-1,)),
            sentences * hypotheses * vocab_size,
        )
        return ops.reshape(counts, (sentences, hypotheses, vocab_size)) > 0

    needed = missing + ops.where(goes_on, undone, 0)  # (B, K, V): after each token that is of no phrase
    is_end = ops.arange(ops.shape(is_allowed)[2]) == EOS
    is_free = ops.logical_and(ops.logical_or(needed == 0, needed < room), ops.logical_or(missing == 0, ~is_end))
    nexts = next_tokens(state, progress)
    firsts = ops.broadcast_to(ops.expand_dims(state.rules["required"][:, :, 0], 1), ops.shape(nexts))
    tokens = ops.concatenate([nexts, firsts], axis=2)  # (B, K, 2 N)
    reached = ops.concatenate([progress.reached(), ops.zeros_like(nexts)], axis=2)
    needs = missing - reached + ops.where(ops.take(goes_on, tokens, axis=0), undone, 0)
    needs = ops.where(ops.concatenate([is_missing, is_missing], axis=2), needs, MANY)
    least = ops.maximum(room, ops.min(needs, axis=2, keepdims=True))  # a model of learned positions may lack room
    is_of_phrase = of_tokens(tokens, ops.logical_and(needs <= least, needs < MANY))
    is_allowed = ops.logical_and(is_allowed, ops.logical_or(is_free, ops.logical_and(is_of_phrase, ~is_end)))
    is_stuck = ~ops.any(is_allowed, axis=2, keepdims=True)
    last_way = ops.where(missing > 0, is_of_phrase, is_end)
    return ops.where(is_stuck, last_way, is_allowed)
