"""Which continuations are kept if outputs must have phrases: dynamic beam allocation (Post and Vilar 2018, section 3).

Hypotheses that have more of their phrases are less probable at first. So a bank is made of those that have equally many
tokens of phrases, and the beam is shared among the banks.
"""

from keras import ops

from keras_transformer.decoding.gather import at_columns
from keras_transformer.decoding.required import Progress, next_tokens, progress_of, word_edges_of
from keras_transformer.decoding.scores import NEVER
from keras_transformer.decoding.state import BeamState, Candidates
from keras_transformer.decoding.top_k import selected
from keras_transformer.tokens import EOS, PAD, SPECIAL

LATER = 1e6  # below every sum of log-probabilities: what may come, but only in place of nothing


def has_phrases(state: BeamState):
    """Return which sentences must have phrases: bool (B,)."""
    return ops.any(state.rules["required"] != PAD, axis=(1, 2))


def best_of_banks(state: BeamState, logits, log_probs, per_hypothesis: int) -> Candidates:
    """Select K continuations per sentence: the best one of each bank, then the second one of each, and so on.

    Candidates are the best tokens of each hypothesis, so many `per_hypothesis`, and those that go on with its phrases.
    A hypothesis that the model would end now should have had its phrases: whatever else continues it comes last.

    Shapes: logits (B * K, V), log_probs of `changed_log_probs` (B, K, V).
    """
    progress = progress_of(state)
    totals = ops.expand_dims(state.log_probs, 2) + log_probs
    scores, tokens = selected(totals, per_hypothesis)
    more = next_tokens(state, progress)  # (B, K, N)
    more_scores = ops.where(is_new(more, tokens, progress), ops.take_along_axis(totals, more, axis=2), NEVER)
    tokens, scores = ops.concatenate([tokens, more], axis=2), ops.concatenate([scores, more_scores], axis=2)
    before, after = progress_before(progress), progress_after(state, progress, tokens)
    highest = ops.max(logits[:, max(SPECIAL) + 1 :], axis=1)
    would_end = ops.reshape(logits[:, EOS] >= highest, (*ops.shape(state.log_probs), 1))
    is_late = ops.logical_and(ops.logical_and(would_end, tokens != EOS), after <= before)
    _, count, longest = ops.shape(state.rules["required"])
    return shared(scores, ops.where(is_late, scores - LATER, scores), tokens, after, count * longest + 1)


def is_new(more, tokens, progress: Progress):
    """Return which tokens go on with a missing phrase and are no candidates yet: int32 (B, K, N) -> bool."""
    is_candidate = ops.any(ops.expand_dims(more, 3) == ops.expand_dims(tokens, 2), axis=3)
    numbers = ops.arange(ops.shape(more)[2])
    is_same = ops.expand_dims(more, 3) == ops.expand_dims(more, 2)  # (B, K, N, N)
    is_missing = progress.missing()
    is_earlier = ops.logical_and(numbers < ops.expand_dims(numbers, 1), ops.expand_dims(is_missing, 2))
    is_twice = ops.any(ops.logical_and(is_same, is_earlier), axis=3)
    return ops.logical_and(is_missing, ~ops.logical_or(is_candidate, is_twice))


def progress_before(progress: Progress):
    """Return how many tokens of its phrases each hypothesis has: int32 (B, K, 1)."""
    is_missing = progress.missing()
    begun = ops.max(ops.where(is_missing, progress.reached(), 0), axis=2)
    return ops.expand_dims(progress.tokens_in(~is_missing) + begun, 2)


def progress_after(state: BeamState, progress: Progress, tokens):
    """Return how many tokens of its phrases each hypothesis has after a token: int32 (B, K, C), the same."""
    phrases, goes_on = state.rules["required"], ops.take(word_edges_of(state.rules)[0], tokens, axis=0)
    longest = ops.shape(phrases)[2]
    is_next = ops.expand_dims(tokens, (3, 4)) == ops.expand_dims(phrases, (1, 2))  # (B, K, C, N, M)
    is_next = ops.logical_and(is_next, ops.expand_dims(progress.is_begun[..., :longest], 2))
    reached = ops.max(ops.where(is_next, ops.arange(1, longest + 1), 0), axis=4)  # (B, K, C, N)
    is_open = ops.logical_and(ops.expand_dims(progress.is_open, 2), ~ops.expand_dims(goes_on, 3))
    is_had = ops.logical_or(ops.expand_dims(progress.is_met, 2), is_open)
    is_had = ops.logical_or(is_had, reached == ops.expand_dims(progress.lengths, 2))
    return progress.tokens_in(is_had) + ops.max(ops.where(is_had, 0, reached), axis=3)


def shared(scores, ranked, tokens, banks, count) -> Candidates:
    """Select K of C continuations of each hypothesis, by `ranked`, of `count` banks. Shapes: all (B, K, C)."""
    _, hypotheses, width = ops.shape(scores)
    scores, ranked, tokens, banks = (
        ops.reshape(each, (-1, hypotheses * width)) for each in (scores, ranked, tokens, banks)
    )
    ranked, order = selected(ranked, hypotheses * width)  # (B, K C)
    banks = at_columns(banks, order)
    is_in_bank = ops.expand_dims(banks, 2) == ops.arange(count)  # (B, K C, banks)
    is_in_bank = ops.cast(is_in_bank, "int32")
    before = ops.cumsum(is_in_bank, axis=1) - is_in_bank
    rounds = ops.sum(before * is_in_bank, axis=2)  # (B, K C): better ones of the same bank
    rounds = ops.where(ranked > NEVER / 2, rounds, hypotheses * width)
    places = rounds * hypotheses * width + ops.arange(hypotheses * width)
    _, chosen = selected(-places, hypotheses)  # (B, K)
    chosen = at_columns(order, chosen)
    return Candidates(at_columns(scores, chosen), chosen // width, at_columns(tokens, chosen))
