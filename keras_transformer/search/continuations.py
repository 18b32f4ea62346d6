"""Which tokens may continue the hypotheses of a sentence, and which of them are best."""

import numpy as np
from keras import ops

from keras_transformer.ground.tokens import EOS, PAD, SPECIAL
from keras_transformer.layers.gather import at_columns
from keras_transformer.search.rules.drawing import Drawing
from keras_transformer.search.rules.dynamic_beam_allocation import allocated
from keras_transformer.search.rules.required import Required
from keras_transformer.search.rules.rule import of_each
from keras_transformer.search.rules.siblings import SiblingPenalties
from keras_transformer.search.rules.table import forced_tokens, log_probs_under, priced
from keras_transformer.search.scores import NEVER, log_normaliser
from keras_transformer.search.state import BeamState, Candidates
from keras_transformer.search.top_k import selected, top_k

LOOKED_AT = len(SPECIAL)  # tokens of a hypothesis, beside the K best, which may never come


def best_continuations(state: BeamState, logits) -> Candidates:
    """Select the K best continuations per sentence: logits (B * K, V).

    The probabilities of all tokens are computed only if some sentence has a rule that needs them.
    """
    is_asked = [asked for rule in state.rules.table if (asked := rule.is_asked(state)) is not None]
    if not is_asked:
        return best_by_logits(state, logits)
    return Candidates(
        *ops.cond(
            ops.any(ops.stack(is_asked)),
            lambda: tuple(best_by_rules(state, logits)),
            lambda: tuple(best_by_logits(state, logits)),
        )
    )


def best_by_logits(state: BeamState, logits) -> Candidates:
    """Select the best tokens of each hypothesis by logit, then the K best continuations per sentence.

    Takes a few more than the K best tokens of each hypothesis and drops those that may not come: at least K are left.
    """
    beam_size, rules = state.log_probs.shape[1], state.rules.table
    per_hypothesis = at_most_all(beam_size + LOOKED_AT + sum(rule.looks_at for rule in rules), logits)
    best_logits, tokens = top_k(logits, per_hypothesis)  # (B * K, per_hypothesis)
    log_normalisers = log_normaliser(logits, best_logits[:, :1], tokens[:, 0])
    is_allowed = tokens > max(SPECIAL)
    for rule in rules:
        if (may_come := rule.may_come(state, tokens)) is not None:
            is_allowed = ops.logical_and(is_allowed, may_come)

    def by_sentence(values):  # (B * K, N) -> (B, K, N)
        return ops.reshape(values, (-1, beam_size, values.shape[1]))

    best_logits, tokens, log_normalisers, is_allowed = map(
        by_sentence, (best_logits, tokens, log_normalisers, is_allowed)
    )
    forced = of_each(forced_tokens(state))
    is_forced = forced != PAD
    forced_logits = ops.reshape(logits[:, EOS : EOS + 1], (-1, beam_size, 1))  # of the limit; V may not be known
    if any(rule.forces for rule in rules):
        forced_logits = by_sentence(at_columns(logits, ops.repeat(forced[:, 0], beam_size, axis=0)))
    is_allowed = ops.where(is_forced, np.arange(per_hypothesis) == 0, is_allowed)
    best_logits = ops.where(is_forced, forced_logits, best_logits)
    tokens = ops.where(is_forced, forced, tokens)
    # What is forbidden must stay below everything allowed, even after a hypothesis of low probability.
    log_probs = priced(state, ops.where(is_allowed, best_logits - log_normalisers, NEVER))
    return best_of_siblings(ops.expand_dims(state.log_probs, 2) + log_probs, tokens, state)


def at_most_all(count: int, logits) -> int:
    """Return `count`, or the number of tokens, (B * K, V), if there are fewer; if V is not known, there are not."""
    return count if logits.shape[-1] is None else min(count, logits.shape[-1])


def best_by_rules(state: BeamState, logits) -> Candidates:
    """Select the K best continuations per sentence under all rules, or what its hypotheses draw."""
    log_probs = log_probs_under(state, logits)
    drawing = state.rules.find(Drawing)
    if drawing is None:
        return best_under_rules(state, logits, log_probs)
    drawn, is_drawing = drawing.drawn(state, log_probs), drawing.is_drawing()

    def some_drawn() -> tuple:
        return tuple(chosen_by(is_drawing, drawn, best_under_rules(state, logits, log_probs)))

    return Candidates(*ops.cond(ops.all(is_drawing), lambda: tuple(drawn), some_drawn))


def best_under_rules(state: BeamState, logits, log_probs) -> Candidates:
    """Select the K best continuations per sentence: log_probs (B, K, V) of `log_probs_under`."""
    width = at_most_all(state.log_probs.shape[1], logits)
    totals = ops.reshape(ops.expand_dims(state.log_probs, 2) + log_probs, (-1, ops.shape(logits)[-1]))
    best, tokens = selected(totals, width)
    candidates = best_of_siblings(ops.reshape(best, (*ops.shape(state.log_probs), width)), tokens, state)
    required = state.rules.find(Required)
    if required is None:
        return candidates

    def with_phrases() -> tuple:
        best = allocated(required, state, logits, log_probs, width)
        return tuple(chosen_by(required.is_any_of_each(), best, candidates))

    return Candidates(*ops.cond(required.is_any(), with_phrases, lambda: tuple(candidates)))


def chosen_by(condition, some: Candidates, others: Candidates) -> Candidates:
    """Return `some` of the sentences of which the condition is true, bool (B,), else the `others`."""
    condition = ops.expand_dims(condition, 1)
    return Candidates(*(ops.where(condition, *pair) for pair in zip(some, others, strict=True)))


def best_of_siblings(log_probs, tokens, state: BeamState) -> Candidates:
    """Select the K best continuations per sentence among the N best of each hypothesis, its siblings.

    A sibling penalty decides which are selected and in which order; their log-probabilities are without it.

    Shapes: log_probs of whole hypotheses float32 (B, K, N), best first; tokens int32 (B, K, N) or (B * K, N).
    """
    _, beam_size, siblings = log_probs.shape
    per_sentence = (-1, beam_size * siblings)
    penalties = state.rules.find(SiblingPenalties)
    ranked = penalties.ranked(log_probs) if penalties else log_probs
    best, chosen = selected(ops.reshape(ranked, per_sentence), beam_size)  # (B, K)
    log_probs = at_columns(ops.reshape(log_probs, per_sentence), chosen) if penalties else best
    return Candidates(log_probs, chosen // siblings, at_columns(ops.reshape(tokens, per_sentence), chosen))
