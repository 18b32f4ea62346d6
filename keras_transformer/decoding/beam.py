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

    position: Any  # int32 (): how many tokens each live hypothesis has
    ids: Any  # int32 (B, K, L)
    log_probs: Any  # float32 (B, K): of live hypotheses; NEVER where a place is empty
    free: Any  # int32 (B,): places not yet taken by a finished hypothesis
    finished: Hypotheses
    cache: Any  # leaves (B * K, ...)


class Candidates(NamedTuple):
    """The K best one-token continuations of each sentence's live hypotheses, best first; all (B, K)."""

    log_probs: Any  # float32: of the whole hypothesis; below NEVER / 2 where there is none
    parents: Any  # int32: which of the sentence's K hypotheses is continued
    tokens: Any  # int32


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
    highest_penalties = length_penalty(limits, alpha)  # (B,)

    def is_searching(*state):
        state = BeamState(*state)
        return ops.logical_and(state.position < max_length, ops.any(state.log_probs > NEVER / 2))

    def advance(*state):
        state = BeamState(*state)
        logits, cache = step(state.cache, last_tokens(state), state.position)
        state = continued(state._replace(cache=cache), best_continuations(state, logits, limits))
        state = without_ended(state, alpha)
        can_win = ops.max(state.log_probs, axis=1) / highest_penalties > state.finished.scores[:, n_best - 1]
        return state._replace(log_probs=ops.where(ops.expand_dims(can_win, 1), state.log_probs, NEVER))

    state = empty_hypotheses(cache, ops.shape(limits)[0], beam_size, max_length)
    return BeamState(*ops.while_loop(is_searching, advance, state)).finished


def empty_hypotheses(cache, sentences, beam_size, max_length):
    """The state before the first step: one live hypothesis a sentence, without tokens."""
    nothing = ops.full((sentences, beam_size, max_length), PAD, dtype="int32")
    never = ops.full((sentences, beam_size), NEVER, dtype="float32")
    return BeamState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        ids=nothing,
        log_probs=ops.where(ops.expand_dims(ops.arange(beam_size) == 0, 0), 0.0, never),
        free=ops.full((sentences,), beam_size, dtype="int32"),
        finished=Hypotheses(nothing, never),
        cache=cache,
    )


def last_tokens(state):
    """What the decoder reads next: BOS at first, then each hypothesis' last token. Returns int32 (B * K,)."""
    is_last = ops.arange(ops.shape(state.ids)[2]) == state.position - 1  # (L,)
    last = ops.sum(ops.where(is_last, state.ids, 0), axis=2)
    return ops.reshape(ops.where(state.position == 0, BOS, last), (-1,))


def best_continuations(state, logits, limits):
    """The K best of each hypothesis first, then of the sentence: never a sort of K * V numbers.

    Shapes: logits float32 (B * K, V), limits int32 (B,). Returns Candidates.
    """
    beam_size, vocab_size = state.log_probs.shape[1], logits.shape[-1]
    per_hypothesis = min(beam_size, vocab_size)
    is_at_limit = ops.repeat(limits == state.position + 1, beam_size, axis=0)  # (B * K,)
    choosable = ops.where(allowed_tokens(vocab_size, is_at_limit), logits, NEVER)
    best, tokens = ops.top_k(choosable, per_hypothesis)  # (B * K, per_hypothesis)
    # a forbidden token must stay below every allowed one, also of a hypothesis with little probability left
    log_probs = ops.where(best > NEVER / 2, best - log_normaliser(logits), NEVER)
    log_probs = ops.reshape(state.log_probs, (-1, 1)) + log_probs
    together = (-1, beam_size * per_hypothesis)
    log_probs, chosen = ops.top_k(ops.reshape(log_probs, together), beam_size)  # (B, K)
    chosen = ops.cast(chosen, "int32")
    tokens = ops.take_along_axis(ops.reshape(ops.cast(tokens, "int32"), together), chosen, axis=1)
    return Candidates(log_probs, chosen // per_hypothesis, tokens)


def continued(state, candidates):
    """The state with the candidates as its hypotheses, as many as it has free places, one token longer."""
    sentences, beam_size, length = ops.shape(state.ids)
    rows = ops.reshape(candidates.parents + first_rows(sentences, beam_size), (-1,))  # (B * K,)
    ids = choose(state.ids, candidates.parents)
    is_here = ops.arange(length) == state.position  # (L,)
    has_place = ops.expand_dims(ops.arange(beam_size), 0) < ops.expand_dims(state.free, 1)
    is_live = ops.logical_and(has_place, candidates.log_probs > NEVER / 2)
    return state._replace(
        position=state.position + 1,
        ids=ops.where(is_here, ops.expand_dims(candidates.tokens, 2), ids),
        log_probs=ops.where(is_live, candidates.log_probs, NEVER),
        cache=keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0), state.cache),
    )


def without_ended(state, alpha):
    """Move the hypotheses that end in EOS to `finished`, where the best K stay; each takes one place for good."""
    beam_size = state.log_probs.shape[1]
    is_end = ops.reshape(last_tokens(state) == EOS, ops.shape(state.log_probs))
    is_end = ops.logical_and(is_end, state.log_probs > NEVER / 2)
    ended = ops.where(is_end, state.log_probs / length_penalty(state.position, alpha), NEVER)
    scores, chosen = ops.top_k(ops.concatenate([state.finished.scores, ended], axis=1), beam_size)
    ids = choose(ops.concatenate([state.finished.ids, state.ids], axis=1), ops.cast(chosen, "int32"))
    return state._replace(
        log_probs=ops.where(is_end, NEVER, state.log_probs),
        free=state.free - ops.sum(ops.cast(is_end, "int32"), axis=1),
        finished=Hypotheses(ids, scores),
    )


def choose(ids, chosen):
    """Of each sentence, the hypotheses with the `chosen` numbers: (B, M, L) by int32 (B, K) -> (B, K, L)."""
    sentences, among, length = ops.shape(ids)
    rows = ops.reshape(chosen + first_rows(sentences, among), (-1,))
    chosen_ids = ops.take(ops.reshape(ids, (sentences * among, length)), rows, axis=0)
    return ops.reshape(chosen_ids, (sentences, chosen.shape[1], length))


def first_rows(sentences, hypotheses):
    """Where each sentence begins in an array of sentences * hypotheses rows: int32 (B, 1)."""
    return ops.expand_dims(ops.arange(sentences) * hypotheses, 1)
