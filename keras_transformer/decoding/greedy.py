"""Greedy search: the most probable token at every step."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.decoding.beam import Hypotheses
from keras_transformer.decoding.scores import NEVER, allowed_tokens, length_penalty, log_normaliser
from keras_transformer.tokens import BOS, EOS, PAD


class GreedyState(NamedTuple):
    """Between two steps; B sentences, up to L tokens."""

    position: Any  # int32 ()
    ids: Any  # int32 (B, L)
    last: Any  # int32 (B,): the token chosen last
    log_probs: Any  # float32 (B,)
    is_finished: Any  # bool (B,)
    cache: Any  # leaves (B, ...)


def greedy_search(step, cache, limits, max_length, alpha=0.6):
    """Follow the most probable token until EOS, or until a sentence's limit, where only EOS is allowed.

    Arguments and scores as in `beam_search`, with one hypothesis a sentence.
    Returns Hypotheses of shape (B, 1, L) and (B, 1).
    """

    def is_searching(*state):
        state = GreedyState(*state)
        return ops.logical_and(state.position < max_length, ops.logical_not(ops.all(state.is_finished)))

    def advance(*state):
        state = GreedyState(*state)
        logits, cache = step(state.cache, state.last, state.position)
        allowed = allowed_tokens(logits.shape[-1], limits == state.position + 1)
        choosable = ops.where(allowed, logits, NEVER)  # (B, V)
        tokens = ops.where(state.is_finished, PAD, ops.cast(ops.argmax(choosable, axis=-1), "int32"))
        gained = ops.max(choosable, axis=-1) - log_normaliser(logits)[:, 0]
        is_here = ops.expand_dims(ops.arange(max_length), 0) == state.position
        return GreedyState(
            state.position + 1,
            ops.where(is_here, ops.expand_dims(tokens, 1), state.ids),
            tokens,
            state.log_probs + ops.where(state.is_finished, 0.0, gained),
            ops.logical_or(state.is_finished, tokens == EOS),
            cache,
        )

    sentences = ops.shape(limits)[0]
    state = GreedyState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        ids=ops.full((sentences, max_length), PAD, dtype="int32"),
        last=ops.full((sentences,), BOS, dtype="int32"),
        log_probs=ops.zeros((sentences,), dtype="float32"),
        is_finished=ops.zeros((sentences,), dtype="bool"),
        cache=cache,
    )
    state = GreedyState(*ops.while_loop(is_searching, advance, state))
    lengths = ops.sum(ops.cast(state.ids != PAD, "int32"), axis=1)
    scores = state.log_probs / length_penalty(lengths, alpha)
    return Hypotheses(ops.expand_dims(state.ids, 1), ops.expand_dims(scores, 1))
