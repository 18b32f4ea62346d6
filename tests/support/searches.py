"""Searches whose rules are arrays by name; and a value of every option that is not its default."""

import numpy as np

from keras_transformer.search import beam, trace
from keras_transformer.search import search as whole
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.state import BeamState

OTHER_VALUES = {
    "beam_size": 3,
    "length_penalty": 1.5,
    "extra_length": 5,
    "length_normalization": "tokens",
    "coverage_penalty": 0.25,
    "shortlist": "on",
    "n_best": 2,
    "sibling_penalty": 1.25,
    "min_length": 4,
    "max_length": 9,
    "require_numbers": 1,
    "keep_letterless": 0,
    "no_repeat_ngram_size": 6,
    "repetition_penalty": 1.25,
    "temperature": 0.5,
    "top_k": 7,
    "top_p": 0.75,
    "seed": 8,
}


def rules_by_name(rules):
    """The Rules of arrays by name. Of sentences that draw, what is not given has its default."""
    rules = dict(rules or {})
    if "temperatures" in rules:
        of_each = np.zeros(len(rules["temperatures"]), "int32")
        rules = {"top_ks": of_each, "top_ps": np.float32(of_each + 1), "seeds": of_each} | rules
    return Rules.of(rules)


def arrays_of(rules):
    """The arrays of Rules by name."""
    return rules.numbers | {name: array for rule in rules.table for name, array in rule._asdict().items()}


def plan_of(options=None, rules=None, **how):
    how = {name: value for name, value in how.items() if value is not None}
    return SearchPlan(options or SearchOptions(), rules_by_name(rules), **how)


def search(decoder, source_ids, options, static_shapes=None, rules=None, loops=(), shortlist=None):
    how = {"static_shapes": static_shapes, "loops": loops, "shortlist": shortlist}
    return whole.search(decoder, source_ids, plan_of(options, rules, **how))


def beam_search(step, decoder, rules, max_length, options, static_shapes, loops=()):
    plan = SearchPlan(options, loops=loops, static_shapes=static_shapes)
    return beam.beam_search(step, decoder, rules_by_name(rules), max_length, plan)


def traced_search(decoder, source_ids, options, rules=None, shortlist=None):
    return trace.traced_search(decoder, source_ids, plan_of(options, rules, shortlist=shortlist))


def state_of(ids, log_probs, **rules):
    """What the rules of a search know of it: as many tokens as `ids` (B, K, T) has of each hypothesis."""
    return BeamState(np.int32(ids.shape[2]), None, ids, log_probs, None, None, rules_by_name(rules), None, None)
