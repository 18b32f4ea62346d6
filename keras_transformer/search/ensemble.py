"""Several decoders as one: the mean of what they predict."""

import math
from typing import Any, NamedTuple

from keras import ops


class EnsembleState(NamedTuple):
    """The state of each member."""

    members: tuple[Any, ...]  # one DecoderState per decoder


class EnsembleDecoder:
    """M decoders over the same vocabulary, whose prediction is the mean of their probabilities (Sutskever et al. 2014).

        P(y_t | x, y_<t) = 1/M sum_m P_m(y_t | x, y_<t)

    To a search it is one decoder, a function of (state, token). Its logits are the logarithm of that mean, so their
    softmax is the mean.
    """

    def __init__(self, decoders: list[Any]):
        self.decoders = tuple(decoders)
        configs = [decoder.config for decoder in self.decoders]
        self.config = min(configs, key=lambda config: config.position_limit or math.inf)  # the lowest limit of all

    def step_weights(self) -> tuple[Any, ...]:
        return tuple(decoder.step_weights() for decoder in self.decoders)

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> EnsembleState:
        """Run every encoder. Arguments and shapes: as of IncrementalDecoder."""
        return EnsembleState(
            tuple(decoder.start(source_ids, hypotheses, counts_attention) for decoder in self.decoders)
        )

    def step(self, weights: tuple[Any, ...], state: EnsembleState, tokens, position, has_room: bool = False):
        """Feed one token per hypothesis to every member: tokens int (B, K) at `position` int ().

        Returns logits float32 (B * K, vocab_size), and the new state.
        """
        total, members = 0.0, []
        for decoder, of_decoder, member in zip(self.decoders, weights, state.members, strict=True):
            logits, member = decoder.step(of_decoder, member, tokens, position, has_room)
            total += ops.softmax(logits, axis=-1)
            members.append(member)
        smallest = 1e-30  # a probability that float32 rounds to 0 has no finite logarithm
        return ops.log(ops.maximum(total / len(self.decoders), smallest)), EnsembleState(tuple(members))
