"""The search of a Translator as functions of TensorFlow."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.placeholders import rule_of_placeholders
from keras_transformer.decoding.search import search
from keras_transformer.decoding.short_vocabulary import ShortlistTable


class SearchHow(NamedTuple):
    """What all batches of a Translator have in common."""

    decoder: Any
    options: SearchOptions
    placeholders: Sequence[int]  # ids of pieces
    shortlist: ShortlistTable | None


def compiled_searches(how: SearchHow) -> tuple[Callable, Callable]:
    """Return two compiled functions, of ids, and of ids, prefixes, endings and forbidden: see `search_results`."""
    batch, rows = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, None, None), tf.int32)
    # A partial and not a lambda: TensorFlow counts the tracings of all functions that share their code, and warns of
    # those that several Translators need
    searched, searched_from = functools.partial(search_results, how), functools.partial(search_results, how)
    return (
        tf.function(searched, input_signature=[batch], autograph=False),
        tf.function(searched_from, input_signature=[batch, batch, rows, rows], autograph=False),
    )


def search_results(how: SearchHow, ids, prefixes=None, endings=None, forbidden=None) -> tuple:
    """Return the leaves of the Hypotheses of a search: see `search`, and rules.py for the rules.

    Shapes: ids int32 (B, S), prefixes int32 (B, P), endings int32 (B, N, M), forbidden int32 (B, N', M').
    """
    rules = rule_of_placeholders(how.placeholders, ids)
    if prefixes is not None:
        rules |= {"prefixes": prefixes, "endings": endings, "forbidden": forbidden}
    return tuple(search(how.decoder, ids, how.options, rules=rules, shortlist=how.shortlist))
