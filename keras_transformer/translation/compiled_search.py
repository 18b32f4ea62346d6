"""The search of a Translator as functions of TensorFlow."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.prefixes import NO_PREFIX, Prefix, rules_of_prefixes
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.fallback import WithPhrases
from keras_transformer.search.options import ON, SearchOptions
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.search import search, search_with_phrases
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.shortlist.shortlist import Shortlist
from keras_transformer.text.forbidden import Sequences, rule_of_forbidden
from keras_transformer.text.required import Phrases, rule_of_required


class SearchHow(NamedTuple):
    """What all batches of a Translator have in common."""

    decoder: Any
    options: SearchOptions
    placeholders: Sequence[int]  # ids of pieces
    shortlist: ShortlistTable | None


class Asked(NamedTuple):
    """What a line asks of its search."""

    prefix: Prefix = NO_PREFIX
    forbidden: Sequences = ()
    phrases: Phrases = ()


class CompiledSearch:
    """The search of batches, compiled for lines that ask for nothing, for a beginning or sequences, and for phrases.

    `word_edges` returns those of the vocabulary (text/required.py).
    """

    def __init__(self, how: SearchHow, word_edges: Callable[[], np.ndarray]):
        batch, rows = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, None, None), tf.int32)
        phrases, edges = tf.TensorSpec((None, None, None, None), tf.int32), tf.TensorSpec((2, None), tf.bool)
        self._word_edges = word_edges

        def compiled(*inputs: tf.TensorSpec) -> Callable:
            # A partial and not a lambda: TensorFlow counts the tracings of all functions that share their code, and
            # warns of those that several Translators need
            return tf.function(functools.partial(search_results, how), input_signature=inputs, autograph=False)

        self._search = compiled(batch)
        self._search_from = compiled(batch, batch, rows, rows)
        self._search_with = compiled(batch, batch, rows, rows, phrases, edges)

    def __call__(self, ids: np.ndarray, asked: Sequence[Asked]) -> tuple:
        """Return the leaves of WithPhrases of a batch: ids int32 (B, S), and what each line asks."""
        if all(line == Asked() for line in asked):
            return self._search(ids)
        rules = rules_of_prefixes([line.prefix for line in asked])
        forbidden = rule_of_forbidden([line.forbidden for line in asked])
        arguments = ids, rules["prefixes"], rules["endings"], forbidden
        phrases = [line.phrases for line in asked]
        if not any(phrases):
            return self._search_from(*arguments)
        return self._search_with(*arguments, rule_of_required(phrases), self._word_edges())


def search_results(
    how: SearchHow, ids, prefixes=None, endings=None, forbidden=None, required=None, word_edges=None
) -> tuple:
    """Return the leaves of WithPhrases of a search: see `search`, and rules.py for the rules.

    Shapes: ids int32 (B, S), prefixes int32 (B, P), endings and forbidden int32 (B, N, M), each of its own N and M,
    required int32 (B, N, W, M), word_edges bool (2, V).
    """
    rules = rule_of_placeholders(how.placeholders, ids)
    if prefixes is not None:
        rules |= {"prefixes": prefixes, "endings": endings, "forbidden": forbidden}
    if required is None:
        found = search(how.decoder, ids, how.options, rules=rules, shortlist=how.shortlist)
        return tuple(WithPhrases.of(found))
    rules |= {"required": required, "word_edges": word_edges}
    return tuple(search_with_phrases(how.decoder, ids, how.options, rules, shortlist=how.shortlist))


def table_for(options: SearchOptions, shortlist: Shortlist | None, tokenizer: Tokenizer) -> ShortlistTable | None:
    """Return the shortlist for a search with these options; None if they do not ask for it.

    Raises ConfigError if there is none, or if it is of another tokenizer.
    """
    if options.shortlist != ON:
        return None
    if shortlist is None:
        raise ConfigError("shortlist is 'on', but no shortlist was given: give the Shortlist of the run.")
    shortlist.check_tokenizer(tokenizer)
    return ShortlistTable(shortlist.table(), shortlist.always)
