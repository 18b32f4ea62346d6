"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.decoding.scores import NEVER, allowed_tokens, length_penalty, log_normaliser
from keras_transformer.tokens import BOS, EOS, PAD


class Hypotheses(NamedTuple):
    """The best outputs of each sentence, best first; places that no hypothesis reached have score NEVER."""

    ids: Any  # int32 (B, K, L): tokens with EOS, then PAD
    scores: Any  # float32 (B, K): natural log-probability of the tokens, EOS included, over the length penalty


class BeamState(NamedTuple):
    """Between two steps; B sentences, K hypotheses each, up to L tokens."""

    position: Any  # int (): how many tokens each live hypothesis has
    ids: Any  # int32 (B, K, L)
    log_probs: Any  # float32 (B, K): of live hypotheses; NEVER where a place is empty
    free: Any  # int32 (B,): places not yet taken by a finished hypothesis
    finished: Hypotheses
    cache: Any  # leaves (B * K, ...)


def beam_search(step, cache, limits, max_length, beam_size=4, alpha=0.6, n_best=1):
    """Find the outputs with the highest score, log P(y | x) / ((5 + |y|) / 6)^alpha, |y| counting EOS.

    A hypothesis that ends keeps its place among the `beam_size`, so the beam narrows by one; a beam of 1 is greedy
    search. A sentence is done when its places are all taken, or when no live hypothesis could still enter the best
    `n_best`: its log-probability only falls, so that over the penalty of the longest output bounds its score.
    At its limit a hypothesis can only end, at the price of EOS there.

    Args:
        step: function (cache, tokens int (B * K,), position int ()) -> logits (B * K, V), cache.
        cache: nest of arrays with leading axis B * K; row b * K + k belongs to hypothesis k of sentence b.
        limits: int32 (B,), longest output of each sentence, EOS included, at least 1; at most `max_length`.
        max_length: L, an int, or an int tensor where shapes may be dynamic.
    Returns Hypotheses of shape (B, K, L) and (B, K).
    """
    sentences = ops.shape(limits)[0]
    penalties = length_penalty(limits, alpha)  # (B,)

    def is_searching(state):
        return ops.logical_and(state.position < max_length, ops.any(state.log_probs > NEVER / 2))

    def advance(state):
        logits, cache = step(state.cache, last_tokens(state), state.position)
        candidates = best_continuations(state, logits, limits)
        rows = candidates.parents + ops.expand_dims(ops.arange(sentences) * beam_size, 1)  # (B, K)
        rows = ops.reshape(rows, (-1,))
        cache = keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0), cache)
        ids = ops.reshape(ops.take(ops.reshape(state.ids, (sentences * beam_size, -1)), rows, axis=0), ids_shape)
        is_here = ops.reshape(ops.arange(max_length), (1, 1, -1)) == state.position
        ids = ops.where(is_here, ops.expand_dims(candidates.tokens, 2), ids)
        return settle(state, ids, candidates, cache)

    def settle(state, ids, candidates, cache):
        """Move ended hypotheses to `finished`; stop sentences whose live ones cannot win."""
        has_place = ops.expand_dims(ops.arange(beam_size), 0) < ops.expand_dims(state.free, 1)
        is_kept = ops.logical_and(has_place, candidates.log_probs > NEVER / 2)
        is_end = ops.logical_and(is_kept, candidates.tokens == EOS)
        ended = ops.where(is_end, candidates.log_probs / length_penalty(state.position + 1, alpha), NEVER)
        finished = best_of(state.finished, Hypotheses(ids, ended))
        log_probs = ops.where(ops.logical_and(is_kept, candidates.tokens != EOS), candidates.log_probs, NEVER)
        can_win = ops.max(log_probs, axis=1) / penalties > finished.scores[:, n_best - 1]
        log_probs = ops.where(ops.expand_dims(can_win, 1), log_probs, NEVER)
        free = state.free - ops.sum(ops.cast(is_end, "int32"), axis=1)
        return BeamState(state.position + 1, ids, log_probs, free, finished, cache)

    def best_of(some, others):
        scores, order = ops.top_k(ops.concatenate([some.scores, others.scores], axis=1), beam_size)
        rows = ops.reshape(order + ops.expand_dims(ops.arange(sentences) * 2 * beam_size, 1), (-1,))
        ids = ops.reshape(ops.concatenate([some.ids, others.ids], axis=1), (sentences * 2 * beam_size, -1))
        return Hypotheses(ops.reshape(ops.take(ids, rows, axis=0), ids_shape), scores)

    def last_tokens(state):
        is_last = ops.reshape(ops.arange(max_length), (1, 1, -1)) == state.position - 1
        last = ops.sum(ops.where(is_last, state.ids, 0), axis=2)
        return ops.reshape(ops.where(state.position == 0, BOS, last), (-1,))

    ids_shape = (sentences, beam_size, max_length)
    nothing = ops.full(ids_shape, PAD, dtype="int32")
    never = ops.full((sentences, beam_size), NEVER, dtype="float32")
    is_first = ops.expand_dims(ops.arange(beam_size) == 0, 0)
    state = BeamState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        ids=nothing,
        log_probs=ops.where(is_first, 0.0, never),  # one hypothesis to begin with: the empty one
        free=ops.full((sentences,), beam_size, dtype="int32"),
        finished=Hypotheses(nothing, never),
        cache=cache,
    )
    return ops.while_loop(
        lambda *state: is_searching(BeamState(*state)), lambda *state: advance(BeamState(*state)), state
    )[4]


class Candidates(NamedTuple):
    """The K best one-token continuations of each sentence's live hypotheses, best first; all (B, K)."""

    log_probs: Any
    parents: Any
    tokens: Any


def best_continuations(state, logits, limits):
    """The K best of each hypothesis first, then of the sentence: never a sort of K * V numbers.

    Shapes: logits float32 (B * K, V), limits int32 (B,).
    """
    sentences, beam_size = ops.shape(state.log_probs)[0], state.log_probs.shape[1]
    vocab_size = logits.shape[-1]
    per_hypothesis = min(beam_size, vocab_size)
    is_last = ops.repeat(limits == state.position + 1, beam_size, axis=0)  # (B * K,)
    choosable = ops.where(allowed_tokens(vocab_size, is_last), logits, NEVER)
    best, tokens = ops.top_k(choosable, per_hypothesis)  # (B * K, per_hypothesis)
    # a forbidden token must stay below every allowed one, also of a hypothesis with little probability left
    log_probs = ops.where(best > NEVER / 2, best - log_normaliser(logits), NEVER)
    log_probs = ops.reshape(log_probs, (sentences, beam_size, per_hypothesis)) + ops.expand_dims(state.log_probs, 2)
    log_probs, chosen = ops.top_k(ops.reshape(log_probs, (sentences, beam_size * per_hypothesis)), beam_size)
    tokens = ops.reshape(tokens, (sentences, beam_size * per_hypothesis))
    tokens = ops.take_along_axis(ops.cast(tokens, "int32"), chosen, axis=1)
    return Candidates(log_probs, ops.cast(chosen, "int32") // per_hypothesis, tokens)
