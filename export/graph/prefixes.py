"""The beginning that a translation must have, inside a graph: as pieces/prefixes.py does in Python."""

import tensorflow as tf

from keras_transformer.ground.tokens import PAD, UNK
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.prefixes import GUARD, NO_ENDING
from keras_transformer.pieces.sources import NO_PIECES
from keras_transformer.pieces.tokenizer import Tokenizer

from .ragged_rows import kept, of_values
from .request import shown

ENDINGS = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)


class GraphPrefixReader:
    """Turns texts into the rules `prefixes` and `endings` of a search.

    `encode` is `encode_target` of a graph tokenizer: string (B,) -> int32 RaggedTensor (B, None).
    """

    def __init__(self, tokenizer: Tokenizer, encode):
        surfaces = tokenizer.surfaces()
        numbers = {}  # of pieces, by the character that they begin with
        for number, surface in enumerate(surfaces):
            numbers.setdefault(surface.decode("utf-8", "ignore")[:1], []).append(number)
        numbers.pop("", None)  # bytes that are no character, and what has no text
        self.encode, self.guard = encode, len(tokenizer.encode_target(GUARD))
        with tf.init_scope():
            self.surfaces = tf.constant(surfaces, tf.string)
            self.first_characters = tf.constant(list(numbers), tf.string)
            self.pieces_of_first = tf.ragged.constant(list(numbers.values()), tf.int32, ragged_rank=1)
            self.after_space = tf.constant(numbers.get(SPACE, []), tf.int32)

    def read(self, texts, most: int):
        """Return the tokens that begin the output of each text, and the endings, one of which follows them.

        Shapes: texts string (B,) -> int32 RaggedTensors (B, None) and (B, None, None), and bool (B,): whether the text
        was cut to `most` tokens less one. The graph fails if the tokenizer has no piece for a part of a text.
        """
        tokens = self.encode(texts)
        is_unknown = tf.reduce_any(tokens == UNK, axis=1)
        known = tf.debugging.Assert(
            ~tf.reduce_any(is_unknown), [f"A target_prefix {NO_PIECES}", shown(texts[is_unknown])]
        )
        with tf.control_dependencies([known]):
            tokens = tf.identity(tokens)
        is_cut = tf.cast(tokens.row_lengths(), tf.int32) >= most
        distinct, where = tf.unique(texts)  # a request has one prefix for all lines, or few different ones
        lengths, endings = tf.map_fn(
            lambda text: self.read_one(text, most),
            distinct,
            fn_output_signature=(tf.TensorSpec([], tf.int32), ENDINGS),
            parallel_iterations=1,
        )
        lengths, endings = tf.gather(lengths, where), tf.gather(endings, where)
        tokens = kept(tokens, places_in(tokens).values < of_values(lengths, tokens))
        return tokens, endings, is_cut

    def read_one(self, text, most: int):
        """Return how many tokens of a text are forced, int32 (), and its endings, int32 RaggedTensor (N, None)."""
        tokens = self.tokens_of(text)
        size = tf.size(tokens)

        def forced():
            return tf.minimum(size, most - 1), tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])

        def after_space():
            return size, tf.RaggedTensor.from_tensor(self.after_space[:, tf.newaxis])

        def crossing():
            is_start = tf.reduce_any(tokens[:, tf.newaxis] == self.after_space, axis=1)
            start = tf.reduce_max(tf.where(is_start, tf.range(size), 0))
            word = tokens[start:]
            rest = self.text_of(word)
            again = self.encoded(rest[tf.newaxis])[0]
            common = tf.minimum(tf.size(again), tf.size(word))
            is_same = (tf.size(again) == tf.size(word)) & tf.reduce_all(again[:common] == word[:common])
            return tf.cond(is_same, lambda: (start, self.endings_of(rest, word)), forced)

        def known():
            guarded = self.text_of(self.tokens_of(tf.strings.join([text, GUARD])))
            is_space_left_out = guarded == tf.strings.join([self.text_of(tokens), SPACE, GUARD])
            return tf.cond(is_space_left_out, after_space, crossing)

        return tf.cond((size > 0) & (size < most), known, forced)

    def endings_of(self, rest, word):
        """Return the pieces of all texts that begin with `rest`, up to the one that completes it; `word` is its own."""
        length, characters = tf.strings.length(rest), tf.strings.unicode_split(rest, "UTF-8")
        cuts = tf.cumsum(tf.strings.length(characters), exclusive=True)
        places = tf.where(characters[:, tf.newaxis] == self.first_characters)  # (C, 2): cut, first character of pieces
        pieces = tf.gather(self.pieces_of_first, places[:, 1])  # (C, None)
        cuts = tf.gather(cuts, of_values(places[:, 0], pieces))  # (P,)
        pieces, sizes = pieces.flat_values, length - cuts
        surfaces, copies = tf.gather(self.surfaces, pieces), tf.fill(tf.shape(cuts), rest)
        is_same = tf.strings.substr(surfaces, tf.zeros_like(cuts), sizes) == tf.strings.substr(copies, cuts, sizes)
        is_beyond = is_same & (tf.strings.length(surfaces) > sizes)
        whole = tf.boolean_mask(pieces, is_beyond & (cuts == 0))
        texts = tf.strings.join([tf.strings.substr(copies, tf.zeros_like(cuts), cuts), surfaces])
        divided = self.encoded(tf.boolean_mask(texts, is_beyond & (cuts > 0)))
        after = tf.cumsum(tf.gather(tf.strings.length(self.surfaces), divided.flat_values), exclusive=True)
        after -= tf.gather(tf.concat([after, [0]], 0), of_values(divided.row_starts(), divided))
        divided = kept(divided, after < length)
        divided = tf.gather(divided, tf.where(tf.reduce_all(divided != UNK, axis=1))[:, 0])
        alone = (tf.RaggedTensor.from_tensor(each) for each in (word[tf.newaxis], whole[:, tf.newaxis]))
        return tf.concat([*alone, divided], 0)

    def encoded(self, texts):
        """Return the tokens of parts of texts that begin with a space, or of texts from their beginning."""
        texts = tf.strings.regex_replace(texts, SPACE, " ")
        is_part = tf.strings.regex_full_match(texts, r"(?s) .*")
        tokens = self.encode(tf.where(is_part, tf.strings.join([GUARD, texts]), texts))
        skipped = tf.where(is_part, self.guard, 0)
        return kept(tokens, places_in(tokens).values >= of_values(skipped, tokens))

    def tokens_of(self, text):
        return self.encode(text[tf.newaxis])[0]

    def text_of(self, tokens):
        return tf.strings.reduce_join(tf.gather(self.surfaces, tokens))


def places_in(rows):
    """Return the place of each value in its row: RaggedTensor (B, None) -> int32 of the same shape."""
    return tf.ragged.range(tf.cast(rows.row_lengths(), tf.int32))


def padded_endings(endings):
    """Return endings as the rule of a search: int32 RaggedTensor (R, None, None) -> int32 (R, N, M)."""
    sizes = endings.values.row_lengths()
    longest = tf.maximum(tf.cast(tf.reduce_max(sizes), tf.int32), 1)
    rows = endings.values.to_tensor(PAD, shape=tf.stack([-1, longest]))  # (all N, M)
    return tf.RaggedTensor.from_row_splits(rows, endings.row_splits).to_tensor(NO_ENDING)
