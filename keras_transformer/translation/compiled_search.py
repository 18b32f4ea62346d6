"""The search of a Translator as functions of TensorFlow."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import LONGEST_OUTPUT, ON, SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.search import search_with_phrases
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.shortlist.shortlist import Shortlist
from keras_transformer.text.constraints import Constraints, rule_of_limits, rule_of_openings, rules_of


class SearchHow(NamedTuple):
    """What all batches of a Translator have in common."""

    decoder: Any
    plan: SearchPlan
    placeholders: Sequence[int]  # ids of pieces
    has_openings: bool = False  # whether outputs begin with the piece of a language


Shapes = dict[str, tuple[int | None, ...]]
# The rules that lines ask for, and their arrays: of a beginning and sequences, and of phrases
BEGINNING: Shapes = {"prefixes": (None, None), "endings": (None, None, None), "forbidden": (None, None, None)}
OPENINGS: Shapes = {"openings": (None,)}  # of every line, if the model has them
LIMITS: Shapes = {"limits": (None,)}
PHRASES: Shapes = {"required": (None, None, None, None), "word_edges": (2, None)}


class CompiledSearch:
    """The search of batches, compiled for lines that ask for nothing, for a limit, for a beginning or sequences, and
    for phrases.

    `word_edges` returns those of the vocabulary (text/required.py).
    """

    def __init__(self, how: SearchHow, word_edges: Callable[[], np.ndarray]):
        self._word_edges = word_edges
        openings = OPENINGS if how.has_openings else {}

        def compiled(shapes: Shapes) -> Callable:
            # A partial and not a lambda: TensorFlow counts the tracings of all functions that share their code, and
            # warns of those that several Translators need
            arrays = {
                n: tf.TensorSpec(shape, tf.bool if n == "word_edges" else tf.int32) for n, shape in shapes.items()
            }
            specs = tf.TensorSpec((None, None), tf.int32), arrays
            return tf.function(functools.partial(search_results, how), input_signature=specs, autograph=False)

        self._most = how.plan.options.max_length or LONGEST_OUTPUT
        self._search, self._search_within, self._search_from, self._search_with = map(
            compiled, (openings, openings | LIMITS, openings | BEGINNING, openings | BEGINNING | PHRASES)
        )

    def __call__(self, ids: np.ndarray, asked: Sequence[Constraints]) -> tuple:
        """Return the leaves of WithPhrases of a batch: ids int32 (B, S), and what each line asks.

        A limit counts if no line asks for anything else.
        """
        if all(line.is_free for line in asked):
            limits = rule_of_limits(asked, self._most)
            return (self._search_within if limits else self._search)(ids, rule_of_openings(asked) | limits)
        arrays = rules_of(asked)
        if not any(line.phrases for line in asked):
            return self._search_from(ids, {name: of for name, of in arrays.items() if name not in PHRASES})
        return self._search_with(ids, arrays | {"word_edges": self._word_edges()})


def search_results(how: SearchHow, ids, arrays: dict[str, Any]) -> tuple:
    """Return the leaves of WithPhrases of a search: ids int32 (B, S), and the arrays of rules by name."""
    rules = Rules.of(rule_of_placeholders(how.placeholders, ids) | arrays)
    return tuple(search_with_phrases(how.decoder, ids, how.plan.replace(rules=rules)))


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
