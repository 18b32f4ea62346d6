"""Beam search of one sentence that asks for nothing: what `beam.py` finds, in less than half as many operations a step.

A step of one sentence is too little work for the time that starting its operations takes. So here nothing is computed
that only several sentences, or rules, need: no sentence leaves, none has padding, and only the limit forbids tokens.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.decoding.alone_step import AloneDecoder, OneState
from keras_transformer.decoding.gather import rows_at
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.scores import NEVER, length_penalty
from keras_transformer.decoding.state import Hypotheses
from keras_transformer.decoding.top_k import top_k
from keras_transformer.tokens import BOS, EOS, PAD, SPECIAL

FIRST_ALLOWED = max(SPECIAL) + 1


class AloneState(NamedTuple):
    """The state between two steps: K hypotheses of one sentence, whose longest output has L tokens."""

    position: Any  # int32 (): number of tokens in each live hypothesis
    is_searching: Any  # bool (): whether a live hypothesis can still enter the `n_best`
    tokens: Any  # int32 (K,): what the decoder reads next
    ids: Any  # int32 (K, L)
    log_probs: Any  # float32 (K,): of live hypotheses; NEVER in an empty slot
    free: Any  # int32 (): slots that no finished hypothesis has taken yet
    finished_ids: Any  # int32 (K, L)
    finished_scores: Any  # float32 (K,)
    decoder: OneState


def search_alone(decoder: AloneDecoder, source_ids, options: SearchOptions, limit, max_length) -> Hypotheses:
    """Return what `beam_search` finds for one sentence without rules but its limit.

    Shapes: source_ids int32 (S,) without PAD, S not known while a graph is traced; limit int32 (), at most max_length,
    int32 () too.
    """
    beam_size = options.beam_size
    numbers = ops.arange(beam_size)
    places = ops.arange(max_length)
    penalties = length_penalty(places + 1, options.length_penalty, options.length_normalization)  # (L,)
    longest = length_penalty(limit, options.length_penalty, options.length_normalization)
    weights, start = decoder.start(source_ids, beam_size, max_length)
    nothing = ops.full((beam_size, max_length), PAD, dtype="int32")
    never = ops.full((beam_size,), NEVER, dtype="float32")

    def goes_on(*state):
        state = AloneState(*state)
        return ops.logical_and(state.is_searching, state.position + 1 < limit)

    def advance(*state):
        state = AloneState(*state)
        logits, past = decoder.step(weights, state.decoder, state.tokens, state.position)
        best, parents, tokens = best_continuations_of(logits, state.log_probs)
        is_live = ops.logical_and(numbers < state.free, best > NEVER / 2)
        is_end = ops.logical_and(tokens == EOS, is_live)
        ids = ops.where(places == state.position, ops.expand_dims(tokens, 1), rows_at(state.ids, parents))
        scores, finished = better_of(state, ids, ops.where(is_end, best / rows_at(penalties, state.position), NEVER))
        log_probs = ops.where(ops.logical_and(is_live, tokens != EOS), best, NEVER)
        highest = ops.max(log_probs)
        can_win = ops.logical_and(highest > NEVER / 2, highest / longest > scores[options.n_best - 1])
        return AloneState(
            state.position + 1, can_win, tokens, ids, log_probs,
            state.free - ops.sum(ops.cast(is_end, "int32")), finished, scores, past.of_parents(parents),
        )  # fmt: skip

    state = AloneState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        is_searching=ops.convert_to_tensor(True),
        tokens=ops.full((beam_size,), BOS, dtype="int32"),
        ids=nothing,
        log_probs=ops.where(numbers == 0, 0.0, never),
        free=ops.convert_to_tensor(beam_size, dtype="int32"),
        finished_ids=nothing,
        finished_scores=never,
        decoder=start,
    )
    state = AloneState(*ops.while_loop(goes_on, advance, state))

    def ended_by_the_limit() -> tuple:
        """Return the hypotheses after the step in which all that are live must end."""
        logits, _ = decoder.step(weights, state.decoder, state.tokens, state.position)
        totals = logits[:, EOS] + log_probs_without(logits, state.log_probs)
        ids = ops.where(places == state.position, EOS, state.ids)
        is_live = state.log_probs > NEVER / 2
        scores = ops.where(is_live, totals / rows_at(penalties, state.position), NEVER)
        goes_on = logits[:, EOS] < ops.max(logits[:, FIRST_ALLOWED:], axis=1)
        is_cut = ops.concatenate([ops.zeros((beam_size,), "bool"), goes_on])
        all_scores, chosen = ops.top_k(ops.concatenate([state.finished_scores, scores]), beam_size)
        all_ids = ops.concatenate([state.finished_ids, ids], axis=0)
        return rows_at(all_ids, chosen), all_scores, rows_at(is_cut, chosen)

    nowhere = ops.zeros((beam_size,), "bool")
    leaves = ops.cond(
        state.is_searching, ended_by_the_limit, lambda: (state.finished_ids, state.finished_scores, nowhere)
    )
    return Hypotheses(*(ops.expand_dims(leaf, 0) for leaf in leaves))


def better_of(state: AloneState, ids, scores) -> tuple:
    """Return scores and ids of the K best of the finished hypotheses and of those that have ended now."""
    scores, chosen = ops.top_k(ops.concatenate([state.finished_scores, scores]), state.tokens.shape[0])
    return scores, rows_at(ops.concatenate([state.finished_ids, ids], axis=0), chosen)


def log_probs_without(logits, log_probs):
    """Return what logits have to be added to: log P of hypotheses (K,) minus the normalisers of logits (K, V)."""
    highest, share = (ops.max(values, axis=1) for values in (logits, ops.softmax(logits, axis=-1)))
    return log_probs - (highest - ops.log(share))


def best_continuations_of(logits, log_probs) -> tuple:
    """Select the K best continuations: logits (K, V), log_probs (K,) -> their log P, parents and tokens, each (K,).

    It takes as many more as there are tokens that never come, and drops these.
    """
    beam_size, vocab_size = logits.shape
    totals = logits + ops.expand_dims(log_probs_without(logits, log_probs), 1)
    looked_at = min(beam_size * (1 + len(SPECIAL)), beam_size * vocab_size)
    best, places = top_k(ops.reshape(totals, (1, beam_size * vocab_size)), looked_at)
    tokens = places[0] % vocab_size
    best, chosen = ops.top_k(ops.where(tokens > max(SPECIAL), best[0], NEVER), beam_size)
    return best, rows_at(places[0], chosen) // vocab_size, rows_at(tokens, chosen)
