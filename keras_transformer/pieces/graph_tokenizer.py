"""A tokenizer as part of a TensorFlow graph, with the ids and texts of the same one in Python.

Importing this module does not import TensorFlow; calling `graph_tokenizer` does.
"""

import functools
import operator

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.pair_tokenizer import ENDS, SIGNATURE, TAG, PairTokenizer
from keras_transformer.pieces.tokenizer import TokenizerError

UTF_8 = "UTF-8"


def graph_tokenizer(model_bytes: bytes):
    """Return a Tokenizer or PairTokenizer as a tf.Module that a SavedModel can hold; its models are part of the graph.

        encode(texts), encode_target(texts)   tf.string (batch,) -> int32 RaggedTensor (batch, None)
        decode(ids)                           integer Tensor or RaggedTensor (batch, length) -> tf.string (batch,)
        id_to_string(ids)                     int32 (n,) -> tf.string (n,), the written form of each id

    `model_bytes` is `Tokenizer.model_bytes`. Raises TokenizerError without the package tensorflow-text.
    """
    import tensorflow as tf

    try:
        import tensorflow_text
    except ImportError:
        raise TokenizerError(
            "A tokenizer inside a graph needs the package tensorflow-text, which is not installed: "
            f"pip install tensorflow-text=={'.'.join(tf.__version__.split('.')[:2])}.* (it has wheels for "
            "Linux and for macOS on Apple silicon; on Windows, use WSL 2). `export --format litert` does without."
        ) from None

    def sentencepiece(model: bytes, out_type):
        return tensorflow_text.SentencepieceTokenizer(model=model, out_type=out_type)

    def with_text(ids, has_text):
        """The ids of which `has_text`, a function of int32 (n,), is true: as a RaggedTensor int32 (batch, None)."""
        if not isinstance(ids, tf.RaggedTensor):
            ids = tf.RaggedTensor.from_tensor(ids)
        ids = tf.cast(ids, tf.int32)
        return tf.ragged.boolean_mask(ids, tf.ragged.map_flat_values(has_text, ids))

    class GraphTokenizer(tf.Module):
        def __init__(self):
            super().__init__(name="tokenizer")
            self.sentencepiece = sentencepiece(model_bytes, tf.int32)

        def encode(self, texts):
            return self.sentencepiece.tokenize(texts)

        def encode_target(self, texts):
            return self.encode(texts)

        def decode(self, ids):
            return self.sentencepiece.detokenize(with_text(ids, self.has_text))

        def has_text(self, ids):
            return functools.reduce(operator.and_, (ids != number for number in (PAD, BOS, EOS)))

        def id_to_string(self, ids):
            return self.sentencepiece.id_to_string(ids)

    class GraphPair(tf.Module):
        def __init__(self, pair: PairTokenizer):
            super().__init__(name="tokenizer")
            self.source = sentencepiece(pair.source_spm, tf.string)
            is_one = pair.source_spm == pair.target_spm
            self.target = self.source if is_one else sentencepiece(pair.target_spm, tf.string)
            self.has_tags = pair.has_tags
            self.surfaces, self.pieces = tf.constant(pair.surfaces()), tf.constant(pair.pieces())
            ids = tf.lookup.KeyValueTensorInitializer(list(pair.ids), list(pair.ids.values()), tf.string, tf.int32)
            self.ids = tf.lookup.StaticHashTable(ids, UNK)

        def encode(self, texts):
            return self._encoded(self.source, texts)

        def encode_target(self, texts):
            return self._encoded(self.target, texts)

        def _encoded(self, side, texts):
            if not self.has_tags:
                return tf.ragged.map_flat_values(self.ids.lookup, side.tokenize(texts))
            tags = tf.strings.regex_replace(texts, f"({TAG})(?s:.*)", r"\1", replace_global=False)
            has_tag = tf.strings.regex_full_match(texts, f"{TAG}(?s:.*)") & (self.ids.lookup(tags) != UNK)
            rest = tf.strings.regex_replace(texts, TAG, "", replace_global=False)
            pieces = side.tokenize(tf.where(has_tag, rest, texts))
            tags = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(tags, has_tag), tf.cast(has_tag, tf.int64))
            return tf.ragged.map_flat_values(self.ids.lookup, tf.concat([tags, pieces], axis=1))

        def decode(self, ids):
            surfaces = tf.ragged.map_flat_values(lambda flat: tf.gather(self.surfaces, flat), ids)
            text = tf.strings.unicode_transcode(tf.strings.reduce_join(surfaces, -1), UTF_8, UTF_8, errors="ignore")
            return tf.strings.regex_replace(tf.strings.regex_replace(text, SPACE, " "), ENDS, "")

        def id_to_string(self, ids):
            return tf.gather(self.pieces, ids)

    if model_bytes.startswith(SIGNATURE):
        return GraphPair(PairTokenizer.of_bytes(model_bytes))
    return GraphTokenizer()
