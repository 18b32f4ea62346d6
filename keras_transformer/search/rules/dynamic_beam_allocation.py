"""Which continuations are kept if outputs must have phrases: dynamic beam allocation (Post and Vilar 2018, section 3).

Hypotheses that have more of their phrases are less probable at first. So a bank is made of those that have equally many
tokens of phrases, and the beam is shared among the banks.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import EOS, SPECIAL
from keras_transformer.layers.gather import at_columns
from keras_transformer.search.rules.required import Progress, Required, in_row, longest_ways
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState, Candidates
from keras_transformer.search.top_k import selected


def allocated(required: Required, state: BeamState, logits, log_probs, per_hypothesis: int) -> Candidates:
    """Select K continuations per sentence: the best one of each bank, then the second one of each, and so on.

    Candidates are the best tokens of each hypothesis, so many `per_hypothesis`, and those that go on with its phrases.
    A hypothesis that the model would end now should have had its phrases: whatever else continues it comes last.

    Shapes: logits (B * K, V), log_probs of `log_probs_under` (B, K, V).
    """
    progress = required.progress(state)
    totals = ops.expand_dims(state.log_probs, 2) + log_probs
    scores, tokens = selected(totals, per_hypothesis)
    more = in_row(required.next_tokens(progress))  # (B, K, N W)
    more_scores = ops.where(is_new(more, tokens, progress), ops.take_along_axis(totals, more, axis=2), NEVER)
    tokens, scores = ops.concatenate([tokens, more], axis=2), ops.concatenate([scores, more_scores], axis=2)
    before, after = had_before(progress), had_after(required, progress, tokens)
    highest = ops.max(logits[:, max(SPECIAL) + 1 :], axis=1)
    would_end = ops.reshape(logits[:, EOS] >= highest, (*ops.shape(state.log_probs), 1))
    is_late = ops.logical_and(ops.logical_and(would_end, tokens != EOS), after.tokens() <= before.tokens())
    _, count, _, longest = ops.shape(required.required)
    return shared(scores, is_late, tokens, after.bank(), count * longest + 1)


def is_new(more, tokens, progress: Progress):
    """Return which tokens go on with a missing phrase and are no candidates yet: int32 (B, K, N W) -> bool."""
    is_candidate = ops.any(ops.expand_dims(more, 3) == ops.expand_dims(tokens, 2), axis=3)
    numbers = ops.arange(ops.shape(more)[2])
    is_same = ops.expand_dims(more, 3) == ops.expand_dims(more, 2)  # (B, K, N W, N W)
    may_come = in_row(ops.logical_and(progress.can_go_on, ops.expand_dims(progress.missing(), 3)))
    is_earlier = ops.logical_and(numbers < ops.expand_dims(numbers, 1), ops.expand_dims(may_come, 2))
    is_twice = ops.any(ops.logical_and(is_same, is_earlier), axis=3)
    return ops.logical_and(may_come, ~ops.logical_or(is_candidate, is_twice))


class Had(NamedTuple):
    """Which phrases are had, and how far the others are begun."""

    is_had: Any  # bool (B, K, C, N)
    reached: Any  # int32 (B, K, C, N, W): tokens of each way
    lengths: Any  # int32 (B, 1, 1, N, W)

    def tokens(self):
        """Return the tokens that are had, of a phrase that is had as many as its longest way has: int32 (B, K, C)."""
        return self._sum_of(longest_ways(self.lengths), longest_ways(self.reached))

    def bank(self):
        """Return the tokens that are had, of a phrase as many as it has inside a sentence: int32 (B, K, C).

        So phrases of equally many tokens share a bank, whatever they have at the beginning.
        """
        inside = self.lengths[..., 0]
        return self._sum_of(inside, ops.minimum(longest_ways(self.reached), ops.maximum(inside - 1, 0)))

    def _sum_of(self, of_phrases, begun):
        had = ops.sum(ops.where(self.is_had, of_phrases, 0), axis=3)
        return had + ops.max(ops.where(self.is_had, 0, begun), axis=3)


def had_before(progress: Progress) -> Had:
    """Return what each hypothesis has of its phrases; C is 1."""
    return Had(*(ops.expand_dims(each, 2) for each in (~progress.missing(), progress.reached, progress.lengths)))


def had_after(required: Required, progress: Progress, tokens) -> Had:
    """Return what each hypothesis has of its phrases after a token: int32 (B, K, C)."""
    goes_on = ops.take(required.edges[0], tokens, axis=0)
    longest = ops.shape(required.required)[3]
    is_next = ops.expand_dims(tokens, (3, 4, 5)) == ops.expand_dims(required.required, (1, 2))  # (B, K, C, N, W, M)
    is_next = ops.logical_and(is_next, ops.expand_dims(progress.is_begun[..., :longest], 2))
    items = ops.max(ops.where(is_next, ops.arange(1, longest + 1), 0), axis=5)  # (B, K, C, N, W)
    reached = ops.maximum(items - ops.expand_dims(required.begins, (1, 2)), 0)
    lengths = ops.expand_dims(progress.lengths, 2)
    is_complete = ops.any(ops.logical_and(reached == lengths, lengths > 0), axis=4)  # (B, K, C, N)
    is_open = ops.logical_and(ops.expand_dims(progress.is_open, 2), ~ops.expand_dims(goes_on, 3))
    is_had = ops.logical_or(ops.expand_dims(progress.is_met, 2), ops.logical_or(is_open, is_complete))
    return Had(is_had, reached, lengths)


def shared(scores, is_late, tokens, banks, count) -> Candidates:
    """Select K of C continuations of each hypothesis, of `count` banks: in each bank by score, what is late last.

    Shapes: all (B, K, C).
    """
    _, hypotheses, width = ops.shape(scores)
    every = hypotheses * width
    scores, is_late, tokens, banks = (ops.reshape(each, (-1, every)) for each in (scores, is_late, tokens, banks))
    ranked, by_score = selected(scores, every)  # (B, K C)
    is_late = ops.cast(at_columns(ops.cast(is_late, "int32"), by_score), "int32")
    _, in_order = selected(-(is_late * every + ops.arange(every)), every)
    order, ranked = at_columns(by_score, in_order), at_columns(ranked, in_order)
    is_in_bank = ops.expand_dims(at_columns(banks, order), 2) == ops.arange(count)  # (B, K C, banks)
    is_in_bank = ops.cast(is_in_bank, "int32")
    before = ops.cumsum(is_in_bank, axis=1) - is_in_bank
    rounds = ops.sum(before * is_in_bank, axis=2)  # (B, K C): better ones of the same bank
    rounds = ops.where(ranked > NEVER / 2, rounds, every)
    _, chosen = selected(-(rounds * every + ops.arange(every)), hypotheses)  # (B, K)
    chosen = at_columns(order, chosen)
    return Candidates(at_columns(scores, chosen), chosen // width, at_columns(tokens, chosen))
