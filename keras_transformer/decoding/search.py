"""From source ids to hypotheses: the encoder once, then beam search."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.continuations import LOOKED_AT
from keras_transformer.decoding.freely import WithPhrases, searched_freely_first
from keras_transformer.decoding.options import SearchOptions, check_coverage
from keras_transformer.decoding.placeholders import all_of
from keras_transformer.decoding.required import tokens_of_phrases
from keras_transformer.decoding.rules import of_sources, rules_of
from keras_transformer.decoding.scores import UNFINISHED
from keras_transformer.decoding.short_vocabulary import (
    ShortlistTable,
    ShortVocabulary,
    over_columns,
    short_vocabulary,
)
from keras_transformer.decoding.state import DecoderState, Hypotheses, Rules
from keras_transformer.decoding.step import IncrementalDecoder
from keras_transformer.tokens import PAD

FORCED = {"prefixes", "endings", "placeholders", "required"}  # rules by which an output must have tokens


def search(
    decoder: IncrementalDecoder,
    source_ids,
    options: SearchOptions,
    static_shapes: bool | None = None,
    rules: Rules | None = None,
    positions: Sequence[int] = (),
    shortlist: ShortlistTable | None = None,
) -> Hypotheses:
    """Translate a batch of source sentences.

    An output has at most as many tokens as its source plus `extra_length`, or `max_positions` if positions are learned
    and that is less; both counts include EOS. The output of a source without tokens is EOS alone.

    `rules`: per-sentence settings (rules.py); they override `options`, but `limits` can only lower the longest output.
    A prefix, with the longest of its endings, is never cut by the limit, except by the number of learned positions:
    there EOS replaces its last token.
    Nor are placeholders, which the output has as its source has them, and required phrases.
    Sentences draw independently of each other, whatever their seeds, unless they have the same source and seed.

    Shapes, static or dynamic: source_ids int (B, S), pieces and EOS, then PAD.
    `shortlist`: search over the pieces that it lists for a sentence, and the pieces of its prefix, alone. Probabilities
    and scores are then over them.
    `static_shapes`: no shape changes from step to step, as XLA needs it. None means True on the JAX backend alone.
    `positions`: of static shapes, search for outputs of at most as many tokens as the last one; see `beam_search`. With
    a shortlist, a sentence then has `usual_columns`, and every score of one that needs more is UNFINISHED.
    Returns ids (B, K, S + extra_length), or longer if a prefix is, scores (B, K) and is_cut (B, K).
    """
    static_shapes = are_static(static_shapes)
    how = static_shapes, positions, shortlist
    if rules is not None and "required" in rules:
        return search_with_phrases(decoder, source_ids, options, rules, *how).hypotheses
    return search_once(decoder, source_ids, options, rules, *how)


def are_static(static_shapes: bool | None) -> bool:
    """Return whether no shape of a search may change: as asked, otherwise on the JAX backend alone."""
    return keras.backend.backend() == "jax" if static_shapes is None else static_shapes


def search_once(
    decoder: IncrementalDecoder,
    source_ids,
    options: SearchOptions,
    rules: Rules | None,
    static_shapes: bool,
    positions: Sequence[int],
    shortlist: ShortlistTable | None,
) -> Hypotheses:
    """Translate any batch by one beam search under all of the rules; arguments as for `search`."""
    start = start_search(decoder, source_ids, options, static_shapes, rules, shortlist, bool(positions))
    return start.in_pieces(beam_search(*start[:4], options, static_shapes, positions))


def search_with_phrases(
    decoder: IncrementalDecoder,
    source_ids,
    options: SearchOptions,
    rules: Rules,
    static_shapes: bool | None = None,
    positions: Sequence[int] = (),
    shortlist: ShortlistTable | None = None,
) -> WithPhrases:
    """Translate a batch with the rule `required`, and return what its phrases cost too; arguments as for `search`."""
    static_shapes = are_static(static_shapes)

    def find(source_ids, rules: Rules, options: SearchOptions) -> Hypotheses:
        return search_once(decoder, source_ids, options, rules, static_shapes, positions, shortlist)

    tokens = ops.shape(source_ids)[1]
    length = larger(tokens + options.extra_length, forced_tokens_in(rules, tokens)[1] + 1)
    return searched_freely_first(find, source_ids, rules, options, length, static_shapes)


def larger(length, other):
    """Return the larger of two lengths; two that are known while a graph is traced give one that is known."""
    return max(length, other) if isinstance(length, int) and isinstance(other, int) else ops.maximum(length, other)


class SearchStart(NamedTuple):
    """The first four arguments of `beam_search`, and what its tokens are."""

    step: Callable
    decoder: DecoderState
    rules: Rules
    max_length: Any
    vocabulary: ShortVocabulary | None  # of a search with a shortlist

    def in_pieces(self, hypotheses: Hypotheses) -> Hypotheses:
        """Return what a search found, with pieces in place of columns."""
        if self.vocabulary is None:
            return hypotheses
        ids, scores, is_cut = hypotheses
        if self.vocabulary.fits is not None:
            scores = ops.where(ops.expand_dims(self.vocabulary.fits, 1), scores, UNFINISHED)
        return Hypotheses(self.vocabulary.in_pieces(ids), scores, is_cut)


def start_search(
    decoder: IncrementalDecoder,
    source_ids,
    options: SearchOptions,
    static_shapes: bool,
    rules: Rules | None,
    shortlist: ShortlistTable | None,
    usual: bool = False,
) -> SearchStart:
    """Run the encoder and settle how long outputs may become; arguments as for `search` and `short_vocabulary`."""
    lengths = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
    limits = ops.where(lengths > 0, lengths + options.extra_length, 1)
    max_length = ops.shape(source_ids)[1] + options.extra_length
    rules = rules_of(options, ops.shape(source_ids)[0]) | (rules or {})
    if "seeds" in rules:
        rules["seeds"] = of_sources(rules["seeds"], source_ids)
    if "limits" in rules:
        limits = ops.minimum(limits, rules["limits"])
    if FORCED & set(rules):
        needed, longest = forced_tokens_in(rules, ops.shape(source_ids)[1])
        limits = ops.where(lengths > 0, ops.maximum(limits, needed + 1), 1)
        max_length = larger(max_length, longest + 1)
    if decoder.config.position_limit is not None:
        limits = ops.minimum(limits, decoder.config.position_limit)
    vocabulary = None
    if shortlist is not None:
        looked_at = LOOKED_AT + (rules["placeholders"].shape[1] if "placeholders" in rules else 0)
        usual = usual and "required" not in rules  # `word_edges` are the same for all sentences
        least = options.beam_size + looked_at
        vocabulary = short_vocabulary(shortlist, source_ids, rules, least, static_shapes, usual)
        decoder, rules = over_columns(decoder, vocabulary), vocabulary.in_columns(rules)
    step = functools.partial(decoder.step, decoder.step_weights(), has_room=static_shapes)
    check_coverage(decoder.config, options.coverage_penalty)
    start = decoder.start(source_ids, options.beam_size, counts_attention=options.coverage_penalty > 0)
    return SearchStart(step, start, {**rules, "limits": limits}, max_length, vocabulary)


def forced_tokens_in(rules: Rules, source_tokens):
    """Return how many tokens the output of each sentence must have by its rules, int32 (B,), and a bound on it."""
    counts, longest = [], 0
    if "prefixes" in rules:
        counts.append(ops.sum(ops.cast(rules["prefixes"] != PAD, "int32"), axis=1))
        longest += ops.shape(rules["prefixes"])[1]
    if "endings" in rules:
        counts.append(ops.max(ops.sum(ops.cast(rules["endings"] > PAD, "int32"), axis=2), axis=1))
        longest += ops.shape(rules["endings"])[2]
    if "placeholders" in rules:
        counts.append(all_of(rules))
        longest += source_tokens - 1  # a source ends with EOS
    if "required" in rules:
        counts.append(tokens_of_phrases(rules))
        longest += ops.shape(rules["required"])[1] * ops.shape(rules["required"])[3]
    return sum(counts[1:], counts[0]), longest
