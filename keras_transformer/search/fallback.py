"""A search for outputs that must have phrases: first without them, then with them if an output lacks one.

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
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.required import is_any_required, progress_of, tokens_of_phrases
from keras_transformer.search.rules.table import OF_ALL, is_drawing
from keras_transformer.search.scores import NEVER, length_penalty
from keras_transformer.search.state import BeamState, Hypotheses, Rules

WIDE = 20  # hypotheses of a search for phrases, at least: as many as Post and Vilar 2018 have
TOGETHER = 32  # sentences in such a search, so that it needs no more memory than others

Find = Callable[..., Hypotheses]  # from source_ids, rules and options


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


def searched_freely_first(
    find: Find, source_ids, rules: Rules, options: SearchOptions, length, static_shapes: bool
) -> WithPhrases:
    """Return what `find` finds without the rule `required`, and with it for sentences whose outputs lack a phrase.

    length: the longest output with phrases. Other arguments as for `search`.
    """
    free = find(source_ids, without_phrases(rules), options)
    lacks = lacks_phrases(rules, options, free)
    rules, wide = with_wide_beam({**rules, "limits": limits_with_phrases(rules, free)}, options)
    start = *free._replace(ids=of_length(free.ids, length)), lacks

    def found_of(source_ids, rules) -> Hypotheses:
        found = find(source_ids, rules, wide)
        return Hypotheses(*(leaf[:, : free.scores.shape[1]] for leaf in found))

    def of_all() -> tuple:
        asked = {"required": ops.where(ops.reshape(lacks, (-1, 1, 1, 1)), rules["required"], PAD)}
        found = found_of(source_ids, {**rules, **asked})
        pairs = zip(found, start, strict=False)
        return tuple(ops.where(ops.reshape(lacks, (-1, *[1] * (len(new.shape) - 1))), new, old) for new, old in pairs)

    def is_any_left(*state):
        return ops.any(state[3])

    def of_some(ids, scores, is_cut, lacks):
        rows = ops.cast(ops.nonzero(lacks)[0], "int32")[:TOGETHER]
        found = found_of(rows_at(source_ids, rows), of_rows(rules, rows))
        places = ops.expand_dims(rows, 1)
        new = zip((ids, scores, is_cut), found, strict=True)
        leaves = [ops.scatter_update(old, places, leaf) for old, leaf in new]
        return *leaves, ops.scatter_update(lacks, places, ops.zeros_like(rows, dtype="bool"))

    if static_shapes:
        found = Hypotheses(*ops.cond(ops.any(lacks), of_all, lambda: tuple(start[:3])))
    else:
        found = Hypotheses(*ops.while_loop(is_any_left, of_some, start)[:3])
    before, after = (log_probs_of(each, rules, options) for each in (free, found))
    is_another = ops.logical_and(ops.expand_dims(lacks, 1), found.scores > NEVER / 2)
    return WithPhrases(*found, ops.where(is_another, before[:, :1] - after, 0.0))


def log_probs_of(found: Hypotheses, rules: Rules, options: SearchOptions):
    """Return the natural log-probability of outputs, with the coverage penalty if there is one: float32 (B, K)."""
    alpha = ops.reshape(rules.get("length_penalties", options.length_penalty), (-1, 1))
    lengths = ops.sum(ops.cast(found.ids != PAD, "int32"), axis=2)
    return found.scores * length_penalty(lengths, alpha, options.length_normalization)


def without_phrases(rules: Rules) -> Rules:
    return {name: rule for name, rule in rules.items() if name not in ("required", "word_edges")}


def of_rows(rules: Rules, rows) -> Rules:
    """Return the rules of some sentences: rows int32 (any number,)."""
    return {name: rule if name in OF_ALL else rows_at(rule, rows) for name, rule in rules.items()}


def with_wide_beam(rules: Rules, options: SearchOptions) -> tuple[Rules, SearchOptions]:
    """Return rules and options of a beam of WIDE hypotheses at least; sentences that draw keep theirs."""
    if options.temperature > 0:
        return rules, options
    wide = max(options.beam_size, WIDE)
    if "beam_sizes" in rules:
        sizes = ops.full_like(rules["beam_sizes"], wide)
        if "temperatures" in rules:
            sizes = ops.where(is_drawing(rules), rules["beam_sizes"], sizes)
        rules = {**rules, "beam_sizes": sizes}
    return rules, dataclasses.replace(options, beam_size=wide)


def lacks_phrases(rules: Rules, options: SearchOptions, found: Hypotheses):
    """Return which sentences have an output among the best ones that lacks a phrase: bool (B,)."""

    def some_lack():
        state = BeamState(ops.shape(found.ids)[2], None, found.ids, None, None, None, rules, None, None)
        lacks = ops.logical_not(ops.all(progress_of(state).is_met, axis=2))  # (B, K)
        n_best = ops.reshape(rules.get("n_best", options.n_best), (-1, 1))
        is_wanted = ops.logical_and(ops.arange(ops.shape(found.scores)[1]) < n_best, found.scores > NEVER / 2)
        return ops.any(ops.logical_and(is_wanted, lacks), axis=1)

    return ops.cond(is_any_required(rules), some_lack, lambda: ops.zeros_like(found.scores[:, 0], dtype="bool"))


def limits_with_phrases(rules: Rules, free: Hypotheses):
    """Return how long outputs with phrases may be: as the best output without them, and their tokens. int32 (B,).

    Phrases mostly replace words, so this is room enough. Without it, a search that finds no place for a phrase may
    begin it, go on otherwise, and begin it again, until the longest output is reached.
    """
    longest = ops.sum(ops.cast(free.ids[:, 0] != PAD, "int32"), axis=1) + tokens_of_phrases(rules)
    return ops.minimum(rules["limits"], longest) if "limits" in rules else longest
