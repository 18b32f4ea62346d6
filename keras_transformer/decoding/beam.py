"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.config import SearchOptions
from keras_transformer.decoding.scores import NEVER, allowed_tokens, length_penalty, log_normaliser
from keras_transformer.tokens import BOS, EOS, PAD


class Hypotheses(NamedTuple):
    """The best outputs of each sentence, best first. A slot that no hypothesis filled has the score NEVER."""

    ids: Any  # int32 (B, K, L): tokens and EOS, then PAD
    scores: Any  # float32 (B, K): natural log-probability of the tokens, EOS included, over the length penalty


class BeamState(NamedTuple):
    """The state between two steps: B sentences with K hypotheses of up to L tokens each."""

    position: Any  # int32 (): number of tokens in each live hypothesis
    ids: Any  # int32 (B, K, L)
    log_probs: Any  # float32 (B, K): of live hypotheses; NEVER in an empty slot
    free: Any  # int32 (B,): slots that no finished hypothesis has taken yet
    finished: Hypotheses
    cache: Any  # leaves (B * K, ...)


class Candidates(NamedTuple):
    """The K best one-token continuations of each sentence's live hypotheses, best first. All are (B, K)."""

    log_probs: Any  # float32: of the whole hypothesis; below NEVER / 2 if there is no such continuation
    parents: Any  # int32: the hypothesis, 0 to K - 1, that is continued
    tokens: Any  # int32


def beam_search(step: Callable, cache, limits, max_length, options: SearchOptions) -> Hypotheses:
    """Find the outputs y of each source x with the highest scores.

        score(x, y) = log P(y | x) / ((5 + |y|) / 6)^alpha        |y| counts EOS

    A finished hypothesis keeps its slot, so the beam of the live ones narrows by one. A beam of 1 is greedy search.

    The search of a sentence ends when all slots are taken, or when no live hypothesis can still enter the `n_best`.
    Its log-probability can only fall, so log P over the penalty of the longest allowed output bounds its score.
    A hypothesis that reaches its limit must end there and pays the log-probability of EOS.

    Shapes, with B sentences, K = options.beam_size, V tokens in the vocabulary and L = max_length:
        step    function of cache, tokens int (B * K,), position int () -> logits (B * K, V), cache
        cache   nest of arrays with leading axis B * K; row b * K + k belongs to hypothesis k of sentence b
        limits  int32 (B,): the longest output of each sentence, EOS included, from 1 to L
    `max_length` is an int, or an int tensor if shapes are dynamic.

    Returns ids (B, K, L) and scores (B, K).
    """
    alpha = options.length_penalty
    highest_penalties = length_penalty(limits, alpha)  # (B,)

    def is_searching(*state):
        state = BeamState(*state)
        return ops.logical_and(state.position < max_length, ops.any(state.log_probs > NEVER / 2))

    def advance(*state):
        state = BeamState(*state)
        logits, cache = step(state.cache, last_tokens(state), state.position)
        state = continued(state._replace(cache=cache), best_continuations(state, logits, limits))
        state = without_ended(state, alpha)
        bounds = ops.max(state.log_probs, axis=1) / highest_penalties  # (B,)
        can_win = bounds > state.finished.scores[:, options.n_best - 1]
        return state._replace(log_probs=ops.where(ops.expand_dims(can_win, 1), state.log_probs, NEVER))

    state = initial_state(cache, ops.shape(limits)[0], options.beam_size, max_length)
    return BeamState(*ops.while_loop(is_searching, advance, state)).finished


def initial_state(cache, sentences, beam_size: int, max_length) -> BeamState:
    """Return the state before the first step: one live hypothesis per sentence, without tokens."""
    empty = ops.full((sentences, beam_size, max_length), PAD, dtype="int32")
    never = ops.full((sentences, beam_size), NEVER, dtype="float32")
    return BeamState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        ids=empty,
        log_probs=ops.where(ops.expand_dims(ops.arange(beam_size) == 0, 0), 0.0, never),
        free=ops.full((sentences,), beam_size, dtype="int32"),
        finished=Hypotheses(empty, never),
        cache=cache,
    )


def last_tokens(state: BeamState):
    """Return what the decoder reads next, int32 (B * K,): BOS at first, then the last token of each hypothesis."""
    is_last = ops.arange(ops.shape(state.ids)[2]) == state.position - 1  # (L,)
    last = ops.sum(ops.where(is_last, state.ids, 0), axis=2)
    return ops.reshape(ops.where(state.position == 0, BOS, last), (-1,))


def best_continuations(state: BeamState, logits, limits) -> Candidates:
    """Select the K best tokens of each hypothesis, then the K best of these per sentence.

    Two small selections cost less than one over all K * V continuations.
    Shapes: logits float32 (B * K, V), limits int32 (B,).
    """
    beam_size, vocab_size = state.log_probs.shape[1], logits.shape[-1]
    per_hypothesis = min(beam_size, vocab_size)
    is_at_limit = ops.repeat(limits == state.position + 1, beam_size, axis=0)  # (B * K,)
    allowed_logits = ops.where(allowed_tokens(vocab_size, is_at_limit), logits, NEVER)
    best_logits, tokens = ops.top_k(allowed_logits, per_hypothesis)  # (B * K, per_hypothesis)
    # A forbidden token must stay below every allowed one, even after a hypothesis of low probability.
    log_probs = ops.where(best_logits > NEVER / 2, best_logits - log_normaliser(logits), NEVER)
    log_probs = ops.reshape(state.log_probs, (-1, 1)) + log_probs
    per_sentence = (-1, beam_size * per_hypothesis)
    log_probs, chosen = ops.top_k(ops.reshape(log_probs, per_sentence), beam_size)  # (B, K)
    chosen = ops.cast(chosen, "int32")
    tokens = ops.take_along_axis(ops.reshape(ops.cast(tokens, "int32"), per_sentence), chosen, axis=1)
    return Candidates(log_probs, chosen // per_hypothesis, tokens)


def continued(state: BeamState, candidates: Candidates) -> BeamState:
    """Return the state one token later: as many candidates become its hypotheses as there are free slots."""
    beam_size, length = state.log_probs.shape[1], ops.shape(state.ids)[2]
    ids = select_hypotheses(state.ids, candidates.parents)
    is_here = ops.arange(length) == state.position  # (L,)
    has_slot = ops.expand_dims(ops.arange(beam_size), 0) < ops.expand_dims(state.free, 1)
    is_live = ops.logical_and(has_slot, candidates.log_probs > NEVER / 2)
    return state._replace(
        position=state.position + 1,
        ids=ops.where(is_here, ops.expand_dims(candidates.tokens, 2), ids),
        log_probs=ops.where(is_live, candidates.log_probs, NEVER),
        cache=reordered(state.cache, candidates.parents),
    )


def reordered(cache, parents):
    """Give each hypothesis the cache rows of its parent, int32 (B, K). A beam of 1 has only one order."""
    sentences, beam_size = ops.shape(parents)[0], parents.shape[1]
    if beam_size == 1:
        return cache
    rows = ops.reshape(parents + first_rows(sentences, beam_size), (-1,))  # (B * K,)
    return keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0), cache)


def without_ended(state: BeamState, alpha: float) -> BeamState:
    """Move hypotheses that end in EOS to `finished`, which keeps the best K. Each of them takes one slot for good."""
    beam_size = state.log_probs.shape[1]
    is_end = ops.reshape(last_tokens(state) == EOS, ops.shape(state.log_probs))
    is_end = ops.logical_and(is_end, state.log_probs > NEVER / 2)
    ended = ops.where(is_end, state.log_probs / length_penalty(state.position, alpha), NEVER)
    scores, chosen = ops.top_k(ops.concatenate([state.finished.scores, ended], axis=1), beam_size)
    ids = ops.concatenate([state.finished.ids, state.ids], axis=1)  # (B, 2 K, L)
    return state._replace(
        log_probs=ops.where(is_end, NEVER, state.log_probs),
        free=state.free - ops.sum(ops.cast(is_end, "int32"), axis=1),
        finished=Hypotheses(select_hypotheses(ids, ops.cast(chosen, "int32")), scores),
    )


def select_hypotheses(ids, chosen):
    """Select hypotheses of each sentence by number: ids (B, M, L), chosen int32 (B, K) -> (B, K, L)."""
    sentences, available, length = ops.shape(ids)
    rows = ops.reshape(chosen + first_rows(sentences, available), (-1,))
    selected = ops.take(ops.reshape(ids, (sentences * available, length)), rows, axis=0)
    return ops.reshape(selected, (sentences, chosen.shape[1], length))


def first_rows(sentences, hypotheses):
    """Return the first row of each sentence in an array of sentences * hypotheses rows: int32 (B, 1)."""
    return ops.expand_dims(ops.arange(sentences) * hypotheses, 1)
