"""Phrases that no translation may have, inside a graph: avoided as keras_transformer/text/forbidden.py avoids them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_text

from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.normalization import INVISIBLE, SPACES
from keras_transformer.pieces.scripts import UNSPACED
from keras_transformer.search.fallback import WithPhrases
from keras_transformer.search.scores import NEVER
from keras_transformer.text.folding import FORMS_IN_GRAPH, JAMO, MOST_MARKS, SYLLABLE
from keras_transformer.text.forbidden import HAS_TAB, NO_TEXT, ROUNDS, TOO_LONG
from keras_transformer.text.forbidden import MOST_PHRASE_CHARACTERS as MOST_CHARACTERS
from keras_transformer.text.words import ATTACHED_IN_GRAPH, LETTER_IN_GRAPH

from .prefixes import places_in
from .ragged_rows import kept, row_numbers
from .request import shown
from .text_outputs import without_duplicates

EDGES = f"^[{SPACES}]+|[{SPACES}]+$"
NO_CHARACTER = -1


class Found(NamedTuple):
    """The different hypotheses of R sentences that are answered, best first; the others have the score NEVER."""

    ids: Any  # int32 (R, K, L)
    scores: Any  # float32 (R, K)
    texts: Any  # string (R, K)
    is_cut: Any  # bool (R, K)
    is_forced: Any  # bool (R, K): required phrases lowered its probability too much

    @property
    def is_wanted(self):
        return self.scores > NEVER / 2

    def outputs(self) -> dict[str, Any]:
        """Return what a served graph answers of them, each (R, K)."""
        return {
            "translations": self.texts,
            "scores": self.scores,
            "is_cut": self.is_cut,
            "is_forced": self.is_forced,
        }


def found_in(found: WithPhrases, n_best, most_lost, decode: Callable) -> Found:
    """Return the first `n_best` hypotheses with different texts.

    n_best: int32 (R,). most_lost: by how much phrases may lower log P, float32 (R,). decode: from ids int32 (N, L) to
    texts, string (N,).
    """
    ids, scores, is_cut, lost = found
    texts = tf.reshape(decode(tf.reshape(ids, [-1, tf.shape(ids)[2]])), tf.shape(scores))
    is_forced = lost > most_lost[:, tf.newaxis]
    ids, scores, texts, is_cut, is_forced = without_duplicates(ids, scores, texts, is_cut, is_forced)
    is_wanted = (tf.range(tf.shape(scores)[1]) < n_best[:, tf.newaxis]) & (scores > NEVER / 2)
    ids, texts = tf.where(is_wanted[..., tf.newaxis], ids, PAD), tf.where(is_wanted, texts, "")
    return Found(ids, tf.where(is_wanted, scores, NEVER), texts, is_wanted & is_cut, is_wanted & is_forced)


def read_forbidden(texts):
    """Return the characters of the phrases of each line in lower case; blank phrases are none.

    Shapes: texts string (B,), one phrase per line of each -> int32 RaggedTensor (B, None, None). The graph fails, as
    `forbidden_phrases` does in Python, if the phrases of a line have more than MOST_CHARACTERS, if one has a tab, and
    if they are not UTF-8.
    """
    phrases = tf.strings.split(texts, "\n")
    written = tf.strings.regex_replace(phrases.flat_values, EDGES, "")
    has_text = tf.strings.length(written) > 0
    phrases = kept(phrases.with_values(written), has_text)
    counts = tf.reduce_sum(phrases.with_values(tf.strings.length(phrases.flat_values, unit="UTF8_CHAR")), axis=1)
    has_tab = tf.strings.regex_full_match(written, "(?s).*\t.*")
    is_text = tf.reduce_all(tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace") == texts)
    checks = [
        tf.debugging.Assert(is_text, [NO_TEXT]),
        tf.debugging.Assert(tf.reduce_all(counts <= MOST_CHARACTERS), [TOO_LONG, counts]),
        tf.debugging.Assert(~tf.reduce_any(has_tab), [HAS_TAB, shown(tf.boolean_mask(written, has_tab))]),
    ]
    with tf.control_dependencies(checks):
        return phrases.with_values(lower(folded(tf.identity(phrases.flat_values))))


def folded(texts):
    """Return texts in one form, as text/folding.py does: string (N,) -> string (N,)."""
    characters = tf.strings.unicode_split(texts, "UTF-8")
    clusters = clusters_in(characters.flat_values, row_numbers(characters))
    return tf.strings.unsorted_segment_join(clusters.texts, clusters.rows, characters.nrows(tf.int32), "")


class Clusters(NamedTuple):
    """Letters with their marks, and other signs alone, each in one form; C of them."""

    texts: Any  # string (C,); "" for what is invisible, and for a space behind another one
    rows: Any  # int32 (C,): the text that each is in
    starts: Any  # int32 (C,): its first character
    ends: Any  # int32 (C,): the one behind its last


def clusters_in(characters, rows) -> Clusters:
    """Return the clusters of the characters of texts, string (N,), each of which is in a row, int32 (N,)."""
    numbers = tf.range(tf.size(characters))
    is_space, is_invisible, is_mark, is_first, is_second, is_third, is_syllable = (
        tf.strings.regex_full_match(characters, signs)
        for signs in (f"[{SPACES}]", f"[{INVISIBLE}]", r"\pM", *JAMO, SYLLABLE)
    )
    is_same_row = tf.pad(rows[1:] == rows[:-1], [[1, 0]])[: tf.size(rows)]
    is_second &= before(is_first) & is_same_row
    goes_on = is_second | is_third & before(is_second | is_syllable) & is_same_row
    letters = tf.concat([[0], tf.cast(tf.where(~is_mark)[:, 0], tf.int32)], 0)
    letter = tf.gather(letters, tf.cumsum(tf.cast(~is_mark, tf.int32)))  # the last that is no mark
    has_letter = (tf.gather(rows, letter) == rows) & ~tf.gather(is_mark | is_space | is_invisible, letter)
    goes_on |= is_mark & has_letter & (numbers - letter <= MOST_MARKS)
    starts = tf.cast(tf.where(~goes_on)[:, 0], tf.int32)
    ends = tf.concat([starts[1:], [tf.size(characters)]], 0)[: tf.size(starts)]
    of_clusters = tf.cumsum(tf.cast(~goes_on, tf.int32)) - 1
    texts = tf.strings.unsorted_segment_join(characters, of_clusters, tf.size(starts), "")
    for signs, form in FORMS_IN_GRAPH.items():
        texts = tf.strings.regex_replace(texts, f"^{signs}$", form)
    texts = tf.where(tf.gather(is_space & before(is_space) & is_same_row, starts), "", texts)
    return Clusters(tensorflow_text.normalize_utf8(texts, "NFC"), tf.gather(rows, starts), starts, ends)


def before(values):
    """Return of each value the one before it; False before the first."""
    return tf.pad(values[:-1], [[1, 0]])[: tf.size(values)]


def lower(texts):
    """Return the characters of texts in lower case, as many as before: string (N,) -> int32 RaggedTensor (N, None)."""
    lowered = tf.strings.lower(texts, encoding="utf-8")
    characters = tf.strings.unicode_split(texts, "UTF-8")
    each = tf.strings.lower(characters.flat_values, encoding="utf-8")
    each = tf.where(tf.strings.length(each, unit="UTF8_CHAR") == 1, each, characters.flat_values)
    each = tf.strings.reduce_join(characters.with_values(each), axis=1)
    is_as_long = tf.strings.length(lowered, unit="UTF8_CHAR") == tf.strings.length(texts, unit="UTF8_CHAR")
    return tf.strings.unicode_decode(tf.where(is_as_long, lowered, each), "UTF-8")


def matches(text, phrases):
    """Return where phrases are in a text as whole words, however they are capitalised; the longest at each place.

    Shapes: text string (), phrases int32 RaggedTensor (P, None), in lower case -> int32 (N, 2): start and end.
    """
    written = tf.strings.unicode_split(text, "UTF-8")
    clusters = clusters_in(written, tf.zeros_like(written, tf.int32))
    codes = lower(tf.strings.reduce_join(clusters.texts)[tf.newaxis])[0]
    characters = tf.strings.unicode_encode(codes[:, tf.newaxis], "UTF-8")
    lengths = tf.strings.length(clusters.texts, unit="UTF8_CHAR")
    begins, stops = tf.repeat(clusters.starts, lengths), tf.repeat(clusters.ends, lengths)  # of each character
    count = tf.size(codes)
    is_letter, is_attached, is_unspaced = (
        tf.strings.regex_full_match(characters, signs)
        for signs in (LETTER_IN_GRAPH, ATTACHED_IN_GRAPH, f"[{UNSPACED}]")
    )
    goes_on = is_attached[1:] | ~(is_unspaced[:-1] | is_unspaced[1:])
    is_inside = tf.pad(is_letter[:-1] & is_letter[1:] & goes_on, [[1, 1]])[: count + 1]  # of a word: (C + 1,)
    starts, lengths = tf.range(count), tf.cast(phrases.row_lengths(), tf.int32)[:, tf.newaxis]
    places = starts + places_in(phrases).flat_values[:, tf.newaxis]  # (F, C)
    codes = tf.pad(codes, [[0, tf.size(phrases.flat_values)]], constant_values=NO_CHARACTER)
    agrees = tf.gather(codes, places) == phrases.flat_values[:, tf.newaxis]
    agreeing = tf.math.unsorted_segment_sum(tf.cast(agrees, tf.int32), row_numbers(phrases), phrases.nrows())  # (P, C)
    ends = tf.minimum(starts + lengths, count)
    is_whole = ~tf.gather(is_inside, starts) & ~tf.gather(is_inside, ends)
    longest = tf.reduce_max(tf.where((agreeing == lengths) & is_whole, lengths, 0), axis=0)  # (C,)
    first = tf.cast(tf.where(longest > 0)[:, 0], tf.int32)
    last = first + tf.gather(longest, first) - 1
    return tf.stack([tf.gather(begins, first), tf.gather(stops, last)], axis=1)


def places_of_tokens(ids, spans, decode: Callable):
    """Return the tokens that wrote parts of a text: ids int32 (L,), spans int32 (N, 2) -> int32 (N, 2): first, end."""
    length = tf.size(ids)
    prefixes = tf.where(tf.range(length) < tf.range(length + 1)[:, tf.newaxis], ids, PAD)
    reached = tf.strings.length(decode(prefixes), unit="UTF8_CHAR")  # (L + 1,)
    counts, (starts, ends) = tf.range(length + 1), (spans[:, part, tf.newaxis] for part in range(2))
    last = tf.reduce_min(tf.where(reached >= ends, counts, length), axis=1)
    is_before = (reached <= starts) & (counts < last[:, tf.newaxis])
    return tf.stack([tf.reduce_max(tf.where(is_before, counts, 0), axis=1), last], axis=1)


def sequences_in(found: Found, phrases, decode: Callable):
    """Return the tokens that wrote phrases, each with the row it is in: int32 (Q, M) with PAD first, int32 (Q,).

    phrases: int32 RaggedTensor (R, None, None).
    """
    is_asked = found.is_wanted & (phrases.row_lengths() > 0)[:, tf.newaxis]
    places = tf.cast(tf.where(is_asked), tf.int32)  # (H, 2): row and rank
    texts, ids = tf.gather_nd(found.texts, places), tf.gather_nd(found.ids, places)

    def with_hypothesis(number, spans, of_spans):
        found = matches(texts[number], phrases[places[number, 0]])
        found = tf.cond(tf.size(found) > 0, lambda: places_of_tokens(ids[number], found, decode), lambda: found)
        return number + 1, tf.concat([spans, found], 0), tf.concat([of_spans, tf.fill(tf.shape(found)[:1], number)], 0)

    _, spans, of_span = tf.while_loop(
        lambda number, *_: number < tf.shape(places)[0],
        with_hypothesis,
        (tf.constant(0), tf.zeros([0, 2], tf.int32), tf.zeros([0], tf.int32)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 2]), tf.TensorShape([None])),
        parallel_iterations=1,
    )
    first, end = spans[:, :1], spans[:, 1:]
    longest = tf.maximum(tf.reduce_max(end - first), 1)
    numbers = end - longest + tf.range(longest)  # (Q, M)
    tokens = tf.gather(tf.gather(ids, of_span), tf.maximum(numbers, 0), batch_dims=1)
    return tf.where(numbers >= first, tokens, PAD), tf.gather(places[:, 0], of_span)


def search_without(search: Callable, phrases, decode: Callable, beam_size: int) -> Found:
    """Search R sentences, and those again whose translation has a phrase, without the tokens that wrote it.

    search: from rows int32 (N,), and the rule `forbidden` int32 (N, any, any), to their Found. phrases: int32
    RaggedTensor (R, None, None). A sentence is searched ROUNDS times at most; then a translation may still have one.
    """
    sentences = phrases.nrows(tf.int32)

    def is_left(round_, rows, *_):
        return (round_ < ROUNDS) & (tf.size(rows) > 0)

    def once(round_, rows, tokens, of_tokens, *results):
        order = tf.argsort(of_tokens, stable=True)
        rule = tf.RaggedTensor.from_value_rowids(
            tf.gather(tokens, order), tf.gather(of_tokens, order), nrows=tf.cast(sentences, of_tokens.dtype)
        ).to_tensor(PAD)  # (R, any, M)
        found = search(rows, tf.gather(rule, rows))
        more, of_more = sequences_in(found, tf.gather(phrases, rows), decode)
        longest = tf.maximum(tf.shape(tokens)[1], tf.shape(more)[1])
        tokens = tf.concat([padded(each, longest, is_left=True) for each in (tokens, more)], axis=0)
        of_tokens = tf.concat([of_tokens, tf.gather(rows, of_more)], axis=0)
        again = tf.gather(rows, tf.unique(of_more).y)
        return round_ + 1, again, tokens, of_tokens, *merged(Found(*results), rows, found)

    shape = [sentences, beam_size]
    nothing = Found(tf.fill([*shape, 0], PAD), tf.fill(shape, NEVER), tf.fill(shape, ""), *[tf.fill(shape, False)] * 2)
    start = (tf.constant(0), tf.range(sentences), tf.zeros([0, 1], tf.int32), tf.zeros([0], tf.int32), *nothing)
    shapes = ([], [None], [None, None], [None], [None, beam_size, None], *[[None, beam_size]] * 4)
    results = tf.while_loop(
        is_left, once, start, shape_invariants=tuple(map(tf.TensorShape, shapes)), parallel_iterations=1
    )
    return Found(*results[4:])


def merged(results: Found, rows, found: Found) -> Found:
    """Return the results with those of some rows replaced."""
    longest = tf.maximum(tf.shape(results.ids)[2], tf.shape(found.ids)[2])
    results, found = (each._replace(ids=padded(each.ids, longest)) for each in (results, found))
    pairs = zip(results, found, strict=True)
    return Found(*(tf.tensor_scatter_nd_update(old, rows[:, tf.newaxis], new) for old, new in pairs))


def padded(ids, length, is_left: bool = False):
    """Lengthen the last axis of ids with PAD, behind them or before them."""
    missing = length - tf.shape(ids)[-1]
    last = [missing, 0] if is_left else [0, missing]
    return tf.pad(ids, [*[[0, 0]] * (len(ids.shape) - 1), last], constant_values=PAD)
