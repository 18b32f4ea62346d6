"""A trained Transformer as a tf.Module: text -> ids -> search -> text, in one graph."""

import tensorflow as tf

from export.versions import ExportError
from keras_transformer.config import SearchOptions
from keras_transformer.decoding import IncrementalDecoder, search
from keras_transformer.model import Transformer
from keras_transformer.tokenizer import Tokenizer, graph_tokenizer
from keras_transformer.tokens import EOS, PAD

WHITESPACE = r"[\t-\r\x1c-\x1f\x85\p{Z}]*"  # RE2: the characters that str.strip removes


class ServedTranslator(tf.Module):
    """`Translator.translate` as a graph that needs neither Python nor XLA.

    Args:
        transformer, tokenizer: a trained pair.
        options: how to search. The graph returns the best hypothesis alone, whatever `n_best` is.
        max_source_tokens: longer sentences are truncated to this number of tokens, EOS included. One long sentence
            delays its whole batch.

    Only the weights and the tokenizer's model are tracked, and so saved: no layer, no optimizer.
    Raises ExportError if weights and products are neither all float32 nor all bfloat16.
    """

    def __init__(self, transformer: Transformer, tokenizer: Tokenizer, options: SearchOptions, max_source_tokens: int):
        super().__init__(name="translator")
        dtypes = {weight.dtype for weight in transformer.weights}
        dtypes |= {layer.compute_dtype for layer in transformer.layers if layer.weights}
        if dtypes not in ({"float32"}, {"bfloat16"}):
            raise ExportError(
                f"The model computes in {', '.join(sorted(dtypes))}; float32 alone or bfloat16 alone can be exported."
            )
        self.weights = {weight.path: weight.value for weight in transformer.weights}
        self.tokenizer = graph_tokenizer(tokenizer.model_bytes)
        self.decoder = IncrementalDecoder(transformer)
        self.options, self.max_source_tokens = options, max_source_tokens

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False)
    def translate(self, text):
        """Translate a batch of lines; a blank line has an empty translation with score 0.

        Shapes: text string (B,) -> {"translation": string (B,), "score": float32 (B,)}.
        """
        has_text = tf.logical_not(tf.strings.regex_full_match(text, WHITESPACE))
        hypotheses = search(self.decoder, self.encode(text, has_text), self.options)
        translation = self.tokenizer.decode(hypotheses.ids[:, 0])
        return {
            "translation": tf.where(has_text, translation, ""),
            "score": tf.where(has_text, hypotheses.scores[:, 0], 0.0),
        }

    def encode(self, text, has_text):
        """Return pieces and EOS, then PAD. A blank line is PAD alone, so that the search needs one step for it.

        Shapes: text string (B,), has_text bool (B,) -> int32 (B, S), S at least 1.
        """
        pieces = self.tokenizer.encode(text)[:, : self.max_source_tokens - 1]
        end = tf.fill([tf.shape(text)[0], 1], EOS)
        ids = tf.concat([pieces, end], axis=1)
        ids = tf.ragged.boolean_mask(ids, tf.ones_like(ids, tf.bool) & has_text[:, tf.newaxis])
        longest = tf.maximum(tf.reduce_max(ids.row_lengths()), 1)
        return ids.to_tensor(PAD, shape=tf.stack([-1, longest]))

    def signatures(self) -> dict:
        """Return the functions that a server offers, by name."""
        return {"serving_default": self.translate}
