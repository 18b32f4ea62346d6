"""Which tokens may continue the hypotheses of a sentence, and which of them are best."""

import numpy as np
from keras import ops

from keras_transformer.ground.tokens import EOS, PAD, SPECIAL
from keras_transformer.layers.gather import at_columns
from keras_transformer.search.rules.dynamic_beam_allocation import best_of_banks, has_phrases
from keras_transformer.search.rules.endings import is_any_inside_ending
from keras_transformer.search.rules.forbidden import is_any_forbidden
from keras_transformer.search.rules.placeholders import is_any_wanted, is_placeholder
from keras_transformer.search.rules.required import is_any_required
from keras_transformer.search.rules.table import (
    CHANGING,
    changed_log_probs,
    drawn,
    forced_tokens,
    is_changing,
    is_drawing,
    of_each,
)
from keras_transformer.search.scores import NEVER, log_normaliser
from keras_transformer.search.state import BeamState, Candidates, Rules
from keras_transformer.search.top_k import selected, top_k

LOOKED_AT = len(SPECIAL) + 1  # tokens of a hypothesis, beside the K best: as many may be forbidden


def best_continuations(state: BeamState, logits) -> Candidates:
    """Select the K best continuations per sentence: logits (B * K, V).

    The probabilities of all tokens are computed only if some sentence has a rule that needs them.
    """
    needs_all = [is_changing(state.rules)] if any(name in state.rules for name in CHANGING) else []
    if "forbidden" in state.rules:
        needs_all.append(is_any_forbidden(state))
    if "placeholders" in state.rules:
        needs_all.append(is_any_wanted(state))
    if "required" in state.rules:
        needs_all.append(is_any_required(state.rules))
    if "endings" in state.rules:
        needs_all.append(is_any_inside_ending(state))
    if not needs_all:
        return best_by_logits(state, logits)
    return Candidates(
        *ops.cond(
            ops.any(ops.stack(needs_all)),
            lambda: tuple(best_by_rules(state, logits)),
            lambda: tuple(best_by_logits(state, logits)),
        )
    )


def best_by_logits(state: BeamState, logits) -> Candidates:
    """Select the best tokens of each hypothesis by logit, then the K best continuations per sentence.

    Takes a few more than the K best tokens of each hypothesis and drops those that may not come: at least K are left.
    """
    beam_size, rules = state.log_probs.shape[1], state.rules
    placeholders = rules["placeholders"].shape[1] if "placeholders" in rules else 0
    per_hypothesis = at_most_all(beam_size + len(SPECIAL) + ("min_lengths" in rules) + placeholders, logits)
    best_logits, tokens = top_k(logits, per_hypothesis)  # (B * K, per_hypothesis)
    log_normalisers = log_normaliser(logits, best_logits[:, :1], tokens[:, 0])
    is_allowed = tokens > max(SPECIAL)
    if placeholders:
        is_allowed = ops.logical_and(is_allowed, ops.logical_not(is_placeholder(tokens, rules)))

    def by_sentence(of_hypotheses):  # (B * K, N) -> (B, K, N)
        return ops.reshape(of_hypotheses, (-1, beam_size, of_hypotheses.shape[1]))

    best_logits, tokens, log_normalisers, is_allowed = map(
        by_sentence, (best_logits, tokens, log_normalisers, is_allowed)
    )
    if "min_lengths" in rules:
        is_too_early = of_each(state.position + 1 < rules["min_lengths"])
        is_allowed = ops.logical_and(is_allowed, ops.logical_not(ops.logical_and(is_too_early, tokens == EOS)))
    forced = of_each(forced_tokens(state))
    is_forced = forced != PAD
    if "prefixes" in rules:
        forced_logits = by_sentence(at_columns(logits, ops.repeat(forced[:, 0], beam_size, axis=0)))
    else:
        forced_logits = by_sentence(logits[:, EOS : EOS + 1])  # no other token is ever forced
    is_allowed = ops.where(is_forced, np.arange(per_hypothesis) == 0, is_allowed)
    best_logits = ops.where(is_forced, forced_logits, best_logits)
    tokens = ops.where(is_forced, forced, tokens)
    # What is forbidden must stay below everything allowed, even after a hypothesis of low probability.
    log_probs = ops.where(is_allowed, best_logits - log_normalisers, NEVER)
    return best_of_siblings(ops.expand_dims(state.log_probs, 2) + log_probs, tokens, state)


def at_most_all(count: int, logits) -> int:
    """Return `count`, or the number of tokens, (B * K, V), if there are fewer; if V is not known, there are not."""
    return count if logits.shape[-1] is None else min(count, logits.shape[-1])


def best_by_rules(state: BeamState, logits) -> Candidates:
    """Select the K best continuations per sentence under all rules, or what its hypotheses draw."""
    beam_size = state.log_probs.shape[1]
    log_probs = changed_log_probs(state, logits)
    totals = ops.reshape(ops.expand_dims(state.log_probs, 2) + log_probs, (-1, ops.shape(logits)[-1]))
    best, tokens = selected(totals, at_most_all(beam_size, logits))
    candidates = best_of_siblings(ops.reshape(best, (-1, beam_size, best.shape[1])), tokens, state)
    if "required" in state.rules:
        candidates = with_banks(candidates, state, logits, log_probs)
    if "temperatures" not in state.rules:
        return candidates
    return chosen_by(is_drawing(state.rules), drawn(state, log_probs), candidates)


def with_banks(candidates: Candidates, state: BeamState, logits, log_probs) -> Candidates:
    """Return the candidates of sentences without phrases, and of the others those of banks: see `best_of_banks`."""

    def of_banks() -> tuple:
        best = best_of_banks(state, logits, log_probs, at_most_all(state.log_probs.shape[1], logits))
        return tuple(chosen_by(has_phrases(state), best, candidates))

    return Candidates(*ops.cond(is_any_required(state.rules), of_banks, lambda: tuple(candidates)))


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
    log_probs, ranked = ops.reshape(log_probs, per_sentence), penalised(log_probs, state.rules)
    best, chosen = selected(ops.reshape(ranked, per_sentence), beam_size)  # (B, K)
    log_probs = at_columns(log_probs, chosen) if "sibling_penalties" in state.rules else best
    return Candidates(log_probs, chosen // siblings, at_columns(ops.reshape(tokens, per_sentence), chosen))


def penalised(log_probs, rules: Rules):
    """Return log P - gamma (rank - 1), with the rank of a continuation among its siblings (Li et al. 2016).

    Shapes: log_probs float32 (B, K, N), best first; the same is returned.
    """
    if "sibling_penalties" not in rules:
        return log_probs
    is_possible = ops.cast(log_probs > NEVER / 2, "float32")
    better = ops.cumsum(is_possible, axis=2) - is_possible
    return log_probs - of_each(rules["sibling_penalties"]) * better
