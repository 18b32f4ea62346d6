"""From source ids to hypotheses: the encoder once, then greedy or beam search."""

import dataclasses

from keras import ops

from keras_transformer.config import ConfigError
from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.tokens import PAD


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search (Vaswani et al. 2017, section 6.1). Raises ConfigError for values that make no sense."""

    beam_size: int = 4  # 1: greedy
    length_penalty: float = 0.6  # alpha
    extra_length: int = 50  # longest output: as many tokens as the source, and these
    n_best: int = 1  # how many translations of a sentence to return, at most beam_size

    def __post_init__(self):
        if self.beam_size < 1:
            raise ConfigError(f"beam_size is {self.beam_size}; it must be at least 1 (1 is greedy search).")
        if self.length_penalty < 0:
            raise ConfigError(f"length_penalty is {self.length_penalty}; it must be 0 (none) or more.")
        if self.extra_length < 1:
            raise ConfigError(f"extra_length is {self.extra_length}; it must be at least 1 token.")
        if not 1 <= self.n_best <= self.beam_size:
            raise ConfigError(f"n_best is {self.n_best}; it must be from 1 to beam_size ({self.beam_size}).")


def search(decoder, source_ids, options):
    """Translate a batch of ids with an IncrementalDecoder.

    Shapes: source_ids int (B, S): pieces and EOS, then PAD. Static or dynamic.
    Returns Hypotheses: ids (B, K, S + extra_length), scores (B, K). The longest output of a sentence has as many
    pieces as its source and `extra_length` more, and EOS; less where learned positions end before.
    """
    max_length = ops.shape(source_ids)[1] + options.extra_length
    lengths = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
    limits = ops.where(lengths > 0, lengths + options.extra_length, 1)  # both count EOS; an empty row ends at once
    if decoder.config.positions == "learned":
        limits = ops.minimum(limits, decoder.config.max_positions)
    memory, cache = decoder.start(source_ids, options.beam_size, max_length)

    def step(cache, tokens, position):
        return decoder.step(memory, cache, tokens, position)

    if options.beam_size == 1:
        return greedy_search(step, cache, limits, max_length, options.length_penalty)
    return beam_search(step, cache, limits, max_length, options.beam_size, options.length_penalty, options.n_best)
