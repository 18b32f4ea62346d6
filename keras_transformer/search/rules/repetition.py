"""Rules of a search against repetition: a penalty for tokens (Keskar et al. 2019), and n-grams that come once."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.options import LONGEST_NGRAM
from keras_transformer.search.rules.rule import Rule, of_each
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.state import BeamState


class RepetitionPenalties(NamedTuple("RepetitionPenalties", [("repetition_penalties", Any)]), Rule):  # float32 (B,)
    """By which log-probabilities of tokens that an output has are multiplied; 1: as they are."""

    def is_asked(self, state: BeamState) -> Any:
        return ops.any(self.repetition_penalties != 1)

    def changed(self, state: BeamState, log_probs) -> Any:
        is_repeated = ops.broadcast_to(is_output(state), ops.shape(state.ids))
        is_repeated = tokens_among(state.ids, is_repeated, ops.shape(log_probs)[2])
        return ops.where(is_repeated, log_probs * of_each(self.repetition_penalties), log_probs)


class NGramSizes(NamedTuple("NGramSizes", [("no_repeat_ngram_sizes", Any)]), Rule):  # int32 (B,)
    """No sequence of so many tokens comes twice in an output (Paulus et al. 2018); 0: any may."""

    def is_asked(self, state: BeamState) -> Any:
        return ops.any(self.no_repeat_ngram_sizes != 0)

    def allowed(self, state: BeamState, is_allowed) -> Any:
        vocab_size = ops.shape(is_allowed)[2]
        would_repeat = tokens_among(state.ids, self.completes_ngram(state), vocab_size)
        is_allowed = ops.logical_and(is_allowed, ops.logical_not(would_repeat))
        is_stuck = ops.logical_not(ops.any(is_allowed, axis=-1, keepdims=True))  # no token is left: the output ends
        return ops.logical_or(is_allowed, ops.logical_and(is_stuck, ops.arange(vocab_size) == EOS))

    def completes_ngram(self, state: BeamState):
        """Return which tokens of an output would repeat a sequence of n tokens if they came again now: bool (B, K, T).

        Such a token follows an earlier occurrence of the last n - 1 tokens.
        """
        sentences, hypotheses, length = ops.shape(state.ids)
        size = of_each(self.no_repeat_ngram_sizes)
        before = ops.full((sentences, hypotheses, LONGEST_NGRAM), -1, dtype="int32")
        ids = ops.concatenate([before, state.ids], axis=2)
        would_repeat = ops.logical_and(size > 0, is_output(state))
        for distance in range(1, LONGEST_NGRAM):
            last = ops.expand_dims(ops.take(ids, LONGEST_NGRAM + state.position - distance, axis=2), 2)
            earlier = ids[:, :, LONGEST_NGRAM - distance : LONGEST_NGRAM - distance + length]
            would_repeat = ops.logical_and(would_repeat, ops.logical_or(earlier == last, distance >= size))
        return would_repeat


def is_output(state: BeamState):
    """Return which places of `ids` have tokens of the outputs: bool (T,)."""
    return ops.arange(ops.shape(state.ids)[2]) < state.position
