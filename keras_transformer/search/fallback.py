"""The fallback of a search for outputs that must have phrases: first without them, then with them if one is lacking.

The best output of all is also the best one with the phrases, if it has them. Only if it lacks one, a sentence is
searched with the rule `required`: with a wide beam, since hypotheses of different progress share it, and in little more
room than the output without phrases took.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.layers.gather import rows_at
from keras_transformer.search.beam import of_length
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.drawing import Drawing
from keras_transformer.search.rules.required import Required
from keras_transformer.search.rules.table import LIMITS, Rules
from keras_transformer.search.scores import NEVER, length_penalty
from keras_transformer.search.state import BeamState, Hypotheses

WIDE = 20  # hypotheses of a search for phrases, at least: as many as Post and Vilar 2018 have
TOGETHER = 32  # sentences in such a search, so that it needs no more memory than others

Find = Callable[[Any, SearchPlan], Hypotheses]  # from source_ids


class WithPhrases(NamedTuple):
    """Hypotheses of sentences that may have been searched for phrases, and what these cost."""

    ids: Any  # these three as in Hypotheses: (B, K, L), (B, K), (B, K)
    scores: Any
    is_cut: Any
    lost: Any  # float32 (B, K): natural log P of the best output without phrases, minus its own; 0 if that was enough

    @classmethod
    def of(cls, found: Hypotheses) -> "WithPhrases":
        """Return what a search without phrases found."""
        return cls(*found, ops.zeros_like(found.scores))

    @property
    def hypotheses(self) -> Hypotheses:
        return Hypotheses(self.ids, self.scores, self.is_cut)


def search_with_fallback(find: Find, source_ids, plan: SearchPlan, required: Required, length) -> WithPhrases:
    """Return what `find` finds without the rule `required`, and with it for sentences whose outputs lack a phrase.

    length: the longest output with phrases. Other arguments as for `search`.
    """
    free = find(source_ids, plan.replace(rules=plan.rules.without(Required)))
    lacks = lacks_phrases(plan, required, free)
    constrained = constrained_plan(plan, required, free)
    start = *free._replace(ids=of_length(free.ids, length)), lacks

    def found_of(source_ids, rules: Rules) -> Hypotheses:
        found = find(source_ids, constrained.replace(rules=rules))
        return Hypotheses(*(leaf[:, : free.scores.shape[1]] for leaf in found))

    def is_any_left(*state):
        return ops.any(state[3])

    def of_all(ids, scores, is_cut, lacks):
        asked = required._replace(required=ops.where(ops.reshape(lacks, (-1, 1, 1, 1)), required.required, PAD))
        found = found_of(source_ids, Rules(table=(asked,)).over(constrained.rules))
        pairs = zip(found, (ids, scores, is_cut), strict=True)
        leaves = [ops.where(ops.reshape(lacks, (-1, *[1] * (len(new.shape) - 1))), new, old) for new, old in pairs]
        return *leaves, ops.zeros_like(lacks)

    def of_some(ids, scores, is_cut, lacks):
        rows = ops.cast(ops.nonzero(lacks)[0], "int32")[:TOGETHER]
        found = found_of(rows_at(source_ids, rows), constrained.rules.of_rows(rows))
        places = ops.expand_dims(rows, 1)
        new = zip((ids, scores, is_cut), found, strict=True)
        leaves = [ops.scatter_update(old, places, leaf) for old, leaf in new]
        return *leaves, ops.scatter_update(lacks, places, ops.zeros_like(rows, dtype="bool"))

    # A loop of one round, and no condition: inside of one, a LiteRT file would hold the weights once more, as floats
    found = Hypotheses(*ops.while_loop(is_any_left, of_all if plan.static_shapes else of_some, start)[:3])
    before, after = (log_probs_of(each, plan) for each in (free, found))
    is_another = ops.logical_and(ops.expand_dims(lacks, 1), found.scores > NEVER / 2)
    return WithPhrases(*found, ops.where(is_another, before[:, :1] - after, 0.0))


def log_probs_of(found: Hypotheses, plan: SearchPlan):
    """Return the natural log-probability of outputs, with the coverage penalty if there is one: float32 (B, K)."""
    alpha = ops.reshape(plan.rules.numbers.get("length_penalties", plan.options.length_penalty), (-1, 1))
    lengths = ops.sum(ops.cast(found.ids != PAD, "int32"), axis=2)
    return found.scores * length_penalty(lengths, alpha, plan.options.length_normalization)


def constrained_plan(plan: SearchPlan, required: Required, free: Hypotheses) -> SearchPlan:
    """Return the plan of a search with phrases, of sentences for which `free` was found without.

    It has a beam of WIDE hypotheses at least; sentences that draw keep theirs. Outputs may be as long as the best one
    without phrases, and their tokens. Phrases mostly replace words, so this is room enough. Without it, a search that
    finds no place for a phrase may begin it, go on otherwise, and begin it again, until the longest output is reached.
    """
    numbers, options = dict(plan.rules.numbers), plan.options
    longest = ops.sum(ops.cast(free.ids[:, 0] != PAD, "int32"), axis=1) + required.tokens()
    limits = numbers.get(LIMITS)
    numbers[LIMITS] = longest if limits is None else ops.minimum(limits, longest)
    if options.temperature == 0:
        options = dataclasses.replace(options, beam_size=max(options.beam_size, WIDE))
        sizes, drawing = numbers.get("beam_sizes"), plan.rules.find(Drawing)
        if sizes is not None:
            wide = ops.full_like(sizes, options.beam_size)
            numbers["beam_sizes"] = ops.where(drawing.is_drawing(), sizes, wide) if drawing else wide
    return plan.replace(rules=plan.rules._replace(numbers=numbers), options=options)


def lacks_phrases(plan: SearchPlan, required: Required, found: Hypotheses):
    """Return which sentences have an output among the best ones that lacks a phrase: bool (B,)."""

    def some_lack():
        state = BeamState(ops.shape(found.ids)[2], None, found.ids, None, None, None, plan.rules, None, None)
        lacks = ops.logical_not(ops.all(required.progress(state).is_met, axis=2))  # (B, K)
        n_best = ops.reshape(plan.rules.numbers.get("n_best", plan.options.n_best), (-1, 1))
        is_wanted = ops.logical_and(ops.arange(ops.shape(found.scores)[1]) < n_best, found.scores > NEVER / 2)
        return ops.any(ops.logical_and(is_wanted, lacks), axis=1)

    return ops.cond(required.is_any(), some_lack, lambda: ops.zeros_like(found.scores[:, 0], dtype="bool"))
