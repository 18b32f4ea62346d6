"""Outputs of the served graph as text: pieces, numbers and word alignments, one string per translation."""

import tensorflow as tf

from keras_transformer.search.scores import NEVER

EMPTY = {  # by output: what `translate` returns in place of a hypothesis that does not exist
    "translations": tf.constant(""),
    "scores": tf.constant(NEVER),
    "log_probabilities": tf.constant(NEVER),
    "pieces": tf.constant(""),
    "piece_log_probabilities": tf.constant(""),
    "alignments": tf.constant(""),
    "is_cut": tf.constant(False),
    "is_forced": tf.constant(False),
}
WORD_START = "\u2581"  # how SentencePiece writes the space before a word


def joined(words, is_there):
    """Join strings with spaces: string (B, L), bool (B, L) with the true ones first -> string (B,)."""
    text = tf.strings.reduce_join(tf.where(is_there, words, ""), axis=1, separator=" ")
    count = tf.reduce_sum(tf.cast(is_there, tf.int32), axis=1)
    surplus = tf.maximum(tf.shape(words)[1] - tf.maximum(count, 1), 0)  # separators at the end; a word may be a space
    return tf.strings.substr(text, tf.zeros_like(surplus), tf.strings.length(text) - surplus)


def written(numbers):
    """Return numbers as decimals with four places."""
    return tf.strings.as_string(numbers, precision=4)


def without_duplicates(ids, scores, texts, *others):
    """Move each hypothesis with the text of a better one to the end, and give it the score NEVER.

    Shapes: ids int32 (B, K, L), scores float32 (B, K), texts string (B, K) and others (B, K), best first; the same are
    returned.
    """
    ranks = tf.range(tf.shape(scores)[1])
    is_earlier = ranks[tf.newaxis, :] < ranks[:, tf.newaxis]
    is_same = texts[:, :, tf.newaxis] == texts[:, tf.newaxis, :]
    is_duplicate = tf.reduce_any(is_same & is_earlier, axis=2)
    scores = tf.where(is_duplicate, NEVER, scores)
    order = tf.argsort(tf.cast(is_duplicate, tf.int32), axis=1, stable=True)
    return tuple(tf.gather(values, order, batch_dims=1) for values in (ids, scores, texts, *others))


def fill_up(values, missing, value):
    """Append columns of `value`: (R, n) -> (R, n + missing). `tf.pad` takes no strings."""
    return tf.concat([values, tf.fill([tf.shape(values)[0], missing], value)], axis=1)


def alignments(attention, source_pieces, target_pieces):
    """Align each word of a translation with the word of the source that it attends to most.

    A word's attention is the sum over its pieces. Numbers count from 0: "1-0" aligns the second word of the source
    with the first one of the translation.

    Shapes: attention float32 (B, T, S), source_pieces string (B, S), target_pieces (B, T) -> string (B,).
    """
    of_source, of_target = membership(source_pieces), membership(target_pieces)  # (B, S, V), (B, T, W)
    weights = tf.einsum("btw,bts,bsv->bwv", of_target, attention, of_source)
    best = tf.argmax(weights, axis=2, output_type=tf.int32)  # (B, W)
    numbers = tf.broadcast_to(tf.range(tf.shape(best)[1]), tf.shape(best))
    pairs = tf.strings.join([tf.strings.as_string(best), tf.strings.as_string(numbers)], separator="-")
    return joined(
        pairs, tf.reduce_any(of_target > 0, axis=1) & tf.reduce_any(of_source > 0, axis=[1, 2])[:, tf.newaxis]
    )


def membership(pieces):
    """Return which word each piece belongs to: string (B, L) -> float32 (B, L, words), 0 for EOS and padding.

    A word begins at a piece that begins with a space, and at the first piece that is of a word.
    """
    is_real = ~tf.reduce_any(pieces[..., tf.newaxis] == tf.constant(["<pad>", "</s>"]), axis=-1)
    is_start = (tf.strings.substr(pieces, 0, 1, unit="UTF8_CHAR") == WORD_START) & is_real
    is_start |= is_real & (tf.cumsum(tf.cast(is_real, tf.int32), axis=1) == 1)
    words = tf.cumsum(tf.cast(is_start, tf.int32), axis=1) - 1
    return tf.one_hot(words, tf.maximum(tf.reduce_max(words) + 1, 1)) * tf.cast(is_real, tf.float32)[..., tf.newaxis]
