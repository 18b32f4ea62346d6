"""The outputs of the signature `explain`, as text: the attention of each head, and the beam as a tree.

Each output is one string per line, its items separated by spaces, except `heads` and `is_cut`:

    source_pieces, pieces               the pieces of the source (S) and of the best translation (T), EOS last
    heads                               int32: h, the number of attention heads
    is_cut                              bool: its limit ended the best translation, which the model would have continued
    memory_attention                    weights of the decoder's attention to the source, in the order
                                        (block, head, T, S); each row sums to 1
    encoder_attention, decoder_attention   likewise of self-attention: (block, head, S, S), (block, head, T, T);
                                        "" if the model has no such attention
    beam_steps, beam_parents, beam_slots,  one item per hypothesis that the search considered: `Continuations` in
    beam_pieces, beam_log_probabilities    keras_transformer/search/trace.py, with pieces in place of tokens
"""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.search.trace import traced_search
from keras_transformer.translation.forced import ATTENTIONS, ForcedDecoder

from .text_outputs import joined, written

EXPLAINED_LINES = 32  # in one request, at most
TEXTS = ("source_pieces", "pieces", *(f"{kind}_attention" for kind in ATTENTIONS))
BEAM = ("beam_steps", "beam_parents", "beam_slots", "beam_pieces", "beam_log_probabilities")


def no_explanation() -> dict:
    """Return the answer to a blank line."""
    return {name: tf.constant("") for name in (*TEXTS, *BEAM)} | {"heads": tf.constant(0), "is_cut": tf.constant(False)}


def explained_line(
    decoder: IncrementalDecoder, forced: ForcedDecoder, pieces_of: Callable, source_ids, plan: SearchPlan
) -> dict:
    """Return the answer to one line.

    `pieces_of`: int32 (B, L) -> string (B, L). Shapes: source_ids int32 (1, S), the rules of the plan (1, ...).
    """
    hypotheses, tree = traced_search(decoder, source_ids, plan)
    best = tf.boolean_mask(hypotheses.ids[0, 0], hypotheses.ids[0, 0] != PAD)[tf.newaxis]  # (1, T)
    forced_best = forced(source_ids, best)
    answer = {"heads": tf.constant(decoder.config.num_heads), "is_cut": hypotheses.is_cut[0, 0]}
    for kind in ATTENTIONS:
        weights = [of_block[0] for of_block in forced_best.weights_of(kind)]
        answer[f"{kind}_attention"] = as_text(tf.stack(weights)) if weights else tf.constant("")
    for name, ids in (("source_pieces", source_ids), ("pieces", best)):
        answer[name] = joined(pieces_of(ids), ids != PAD)[0]
    numbers = (tree.steps, tree.parents, tree.slots)
    beam = (*map(tf.strings.as_string, numbers), pieces_of(tree.tokens[tf.newaxis])[0], written(tree.log_probs))
    return answer | {name: tf.strings.reduce_join(items, separator=" ") for name, items in zip(BEAM, beam, strict=True)}


def as_text(weights):
    """Return weights as decimals with three places, in one string: float (...) -> string ()."""
    numbers = tf.strings.as_string(tf.cast(tf.reshape(weights, [-1]), tf.float32), precision=3)
    return tf.strings.reduce_join(numbers, separator=" ")
