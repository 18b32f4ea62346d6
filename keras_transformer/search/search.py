"""From source ids to hypotheses: the encoder once, then beam search."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.beam import beam_search
from keras_transformer.search.continuations import LOOKED_AT
from keras_transformer.search.fallback import WithPhrases, search_with_fallback
from keras_transformer.search.options import check_coverage
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.required import Required
from keras_transformer.search.rules.table import LIMITS, Rules, rules_of
from keras_transformer.search.scores import UNFINISHED
from keras_transformer.search.short_vocabulary import ShortVocabulary, over_columns, short_vocabulary
from keras_transformer.search.state import Decoder, DecoderState, Hypotheses


def search(decoder: Decoder, source_ids, plan: SearchPlan) -> Hypotheses:
    """Translate a batch of source sentences.

    An output has at most as many tokens as its source plus `extra_length`, or `max_positions` if positions are learned
    and that is less; both counts include EOS. The output of a source without tokens is EOS alone.

    A prefix, with the longest of its endings, is never cut by the limit, except by the number of learned positions:
    there EOS replaces its last token. Nor are placeholders, which the output has as its source has them, and required
    phrases. Sentences draw independently of each other, whatever their seeds, unless they have the same source and
    seed.

    Shapes, static or dynamic: source_ids int (B, S), pieces and EOS, then PAD.
    Returns ids (B, K, S + extra_length), or longer if a prefix is, scores (B, K) and is_cut (B, K).
    """
    return search_with_phrases(decoder, source_ids, plan).hypotheses


def search_with_phrases(decoder: Decoder, source_ids, plan: SearchPlan) -> WithPhrases:
    """Return what `search` returns, and what required phrases cost."""

    def find(source_ids, plan: SearchPlan) -> Hypotheses:
        start = start_search(decoder, source_ids, plan)
        if start.has_own_columns:  # weights of a step, which is that of all sentences
            plan = plan.replace(loops=[loop for loop in plan.loops if loop.sentences == plan.loops[0].sentences])
        return start.in_pieces(beam_search(*start[:4], plan))

    required = plan.rules.find(Required)
    if required is None:
        return WithPhrases.of(find(source_ids, plan))
    tokens = ops.shape(source_ids)[1]
    _, longest = forced_tokens_in(plan.rules, tokens) or (0, 0)
    length = larger(tokens + plan.options.extra_length, longest + 1)
    return search_with_fallback(find, source_ids, plan, required, length)


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

    @property
    def has_own_columns(self) -> bool:
        """Whether each sentence has a vocabulary of its own."""
        return self.vocabulary is not None and self.vocabulary.fits is not None

    def in_pieces(self, hypotheses: Hypotheses) -> Hypotheses:
        """Return what a search found, with pieces in place of columns."""
        if self.vocabulary is None:
            return hypotheses
        ids, scores, is_cut = hypotheses
        if self.vocabulary.fits is not None:
            scores = ops.where(ops.expand_dims(self.vocabulary.fits, 1), scores, UNFINISHED)
        return Hypotheses(self.vocabulary.in_pieces(ids), scores, is_cut)


def start_search(decoder: Decoder, source_ids, plan: SearchPlan) -> SearchStart:
    """Run the encoder and settle how long outputs may become; arguments as for `search`."""
    options = plan.options
    lengths = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
    limits = ops.where(lengths > 0, lengths + options.extra_length, 1)
    max_length = ops.shape(source_ids)[1] + options.extra_length
    rules = plan.rules.over(rules_of(options, ops.shape(source_ids)[0]))
    rules = rules._replace(table=tuple(rule.of_sources(source_ids) for rule in rules.table))
    lowered = rules.numbers.get(LIMITS)
    if lowered is not None:
        limits = ops.minimum(limits, lowered)
    if forced := forced_tokens_in(rules, ops.shape(source_ids)[1]):
        needed, longest = forced
        limits = ops.where(lengths > 0, ops.maximum(limits, needed + 1), 1)
        max_length = larger(max_length, longest + 1)
    if decoder.config.position_limit is not None:
        limits = ops.minimum(limits, decoder.config.position_limit)
    vocabulary = None
    if plan.shortlist is not None:
        usual = bool(plan.loops) and rules.find(Required) is None  # `word_edges` are the same for all sentences
        least = options.beam_size + LOOKED_AT + sum(rule.looks_at for rule in rules.table)
        vocabulary = short_vocabulary(plan.shortlist, source_ids, rules, least, plan.static_shapes, usual)
        decoder, rules = over_columns(decoder, vocabulary), vocabulary.in_columns(rules)
    step = functools.partial(decoder.step, decoder.step_weights(), has_room=plan.static_shapes)
    check_coverage(decoder.config, options.coverage_penalty)
    start = decoder.start(source_ids, options.beam_size, counts_attention=options.coverage_penalty > 0)
    rules = rules._replace(numbers={**rules.numbers, LIMITS: limits})
    return SearchStart(step, start, rules, max_length, vocabulary)


def forced_tokens_in(rules: Rules, source_tokens) -> tuple[Any, Any] | None:
    """Return how many tokens the output of each sentence must have by its rules, int32 (B,), and a bound on it.

    None if no rule makes it have any.
    """
    needed = [needs for rule in rules.table if (needs := rule.needed(source_tokens)) is not None]
    if not needed:
        return None
    counts, bounds = zip(*needed, strict=True)
    return sum(counts[1:], counts[0]), sum(bounds)
