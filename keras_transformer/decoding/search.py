"""From source ids to hypotheses: the encoder once, then greedy or beam search."""

from keras import ops

from keras_transformer.config import SearchOptions
from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.tokens import PAD

__all__ = ["SearchOptions", "search"]


def search(decoder, source_ids, options):
    """Translate a batch of ids with an IncrementalDecoder.

    Shapes: source_ids int (B, S): pieces and EOS, then PAD. Static or dynamic.
    Returns Hypotheses: ids (B, K, S + extra_length), scores (B, K). The longest output of a sentence has as many
    pieces as its source and `extra_length` more, and EOS; less where learned positions end before. A row without
    tokens gets EOS alone.
    """
    max_length = ops.shape(source_ids)[1] + options.extra_length
    lengths = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
    limits = ops.where(lengths > 0, lengths + options.extra_length, 1)  # both count EOS
    if decoder.config.positions == "learned":
        limits = ops.minimum(limits, decoder.config.max_positions)
    memory, cache = decoder.start(source_ids, options.beam_size, max_length)

    def step(cache, tokens, position):
        return decoder.step(memory, cache, tokens, position)

    if options.beam_size == 1:
        return greedy_search(step, cache, limits, max_length, options.length_penalty)
    return beam_search(step, cache, limits, max_length, options.beam_size, options.length_penalty, options.n_best)
