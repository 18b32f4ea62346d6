"""Phrases that a translation must have, inside a graph: as keras_transformer/text/required.py finds them in Python."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.ground.tokens import BOS, PAD, UNK
from keras_transformer.pieces.normalization import BLANK, LETTERLESS
from keras_transformer.pieces.prefixes import GUARD
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.text.numbers import APART
from keras_transformer.text.placeholders import SYMBOL
from keras_transformer.text.required import (
    ATTACHED,
    HAS_SYMBOL,
    MOST_LOST,
    MOST_TOKENS,
    NO_PIECES_FOR_IT,
    SPACES_IN,
    word_edges,
)
from keras_transformer.text.whole_numbers import OTHER_DIGITS, pattern_of_numbers

from .forbidden import matches
from .prefixes import padded_endings, places_in
from .ragged_rows import kept, of_values, row_numbers
from .request import shown

PHRASE = "A required phrase"
# A number, and what goes on behind it; or what is passed over
NUMBER = "(?s:" + pattern_of_numbers(r"[\pL\pN_]", r"\p{Nd}", r"\b", r"\B") + "|.)"
GOING_ON = r"(?m)^(?:.*\x01.+|\x01)$|\x01"  # behind what is no number, and nothing behind a number
NO_NUMBERS = f"(?m)^.*{OTHER_DIGITS}.*$"
CONTRADICTION = "A required phrase has a forbidden one: keep one."


class GraphPhraseReader:
    """Turns texts into the rule `required` of a search.

    `encode` is `encode_target` of a graph tokenizer: string (B,) -> int32 RaggedTensor (B, None).
    """

    def __init__(self, tokenizer: Tokenizer, encode: Callable):
        self.encode, self.guard = encode, tokenizer.encode_target(GUARD)
        with tf.init_scope():
            self.word_edges = tf.constant(word_edges(tokenizer.surfaces()))

    def read(self, texts, most: int):
        """Return the tokens of the phrases of each line, one phrase per line of its text; blank ones are none.

        Of phrases that are the same, the first one is kept. Shapes: texts string (B,) -> int32 RaggedTensor (B, None,
        None, None): the ways of each phrase, as in the rule `required`. The graph fails if the tokenizer has no piece
        for a part of a phrase, if one has a placeholder, and if the phrases of a line have more than MOST_TOKENS, or
        `most` or more.
        """
        phrases = tf.strings.split(texts, "\n")
        phrases = kept(phrases, ~is_blank(phrases.values))
        words = tf.strings.strip(tf.strings.regex_replace(phrases.flat_values, SPACES_IN, " "))
        tokens, first_tokens, capital_tokens = (
            self.tokens_of(words),
            self.encode(words),
            self.encode(capitalised(words)),
        )
        is_unknown = tf.reduce_any(tokens == UNK, axis=1) | (tokens.row_lengths() == 0)
        is_symbol = tf.strings.regex_full_match(words, f"(?s).*{SYMBOL.pattern}.*")
        of_lines = phrases.with_values(ways_of(tokens, first_tokens, capital_tokens))
        required = kept(of_lines, is_first(tokens, row_numbers(phrases)))
        ways = tf.cast(required != BOS, tf.int32)
        counts = tf.reduce_sum(tf.reduce_max(tf.reduce_sum(ways, axis=3), axis=2), axis=1)
        most = min(most, MOST_TOKENS + 1)
        message = f"The required phrases of a line must have fewer than {most} tokens: give fewer or shorter ones."
        checks = [
            tf.debugging.Assert(~tf.reduce_any(is_unknown), [f"{PHRASE} {NO_PIECES_FOR_IT}", shown(words[is_unknown])]),
            tf.debugging.Assert(~tf.reduce_any(is_symbol), [f"{PHRASE} {HAS_SYMBOL}", shown(words[is_symbol])]),
            tf.debugging.Assert(tf.reduce_all(counts < most), [message, counts]),
        ]
        with tf.control_dependencies(checks):
            return required.with_flat_values(tf.identity(required.flat_values))

    def tokens_of(self, words):
        """Return the tokens of phrases inside a sentence: string (N,) -> int32 RaggedTensor (N, None)."""
        is_attached = tf.strings.regex_full_match(words, f"(?s){ATTACHED}.*")
        inside = self.encode(tf.strings.join([tf.where(is_attached, GUARD, f"{GUARD} "), words]))
        size = len(self.guard)
        guards = inside[:, :size].to_tensor(PAD, shape=[None, size])
        is_apart = tf.reduce_all(guards == self.guard, axis=1)  # else it is one piece with the guard
        inside = kept(inside, (places_in(inside).values >= size) & of_values(is_apart, inside))
        alone = self.encode(words)
        alone = kept(alone, ~of_values(is_apart, alone))
        return tf.concat([inside, alone], axis=1)


def numbers_in(texts):
    """Return the numbers of texts as text/numbers.py finds them, one per line: string (B,) -> string (B,)."""
    for pattern, written in (APART, " "), (NUMBER, "\\1\x01\\2\n"), (GOING_ON, ""), (NO_NUMBERS, ""):
        texts = tf.strings.regex_replace(texts, pattern, written)
    return texts


FROM_SOURCE = {"require_numbers": numbers_in}  # the rows of text/required.py


def with_phrases_of_source(phrases, texts, are_asked: dict):
    """Append to phrases what the texts themselves make required, and take the options of it away.

    Shapes: phrases string (B,), one per line of each; texts string (B,); are_asked int32 (B,), by names of which those
    of FROM_SOURCE leave -> string (B,).
    """
    for name, read in FROM_SOURCE.items():
        phrases = tf.where(are_asked.pop(name) > 0, tf.strings.join([phrases, read(texts)], "\n"), phrases)
    return phrases


def capitalised(words):
    """Return texts as they may begin a sentence, as text/occurrences.py does: string (N,) -> string (N,)."""
    first = tf.strings.substr(words, 0, 1, unit="UTF8_CHAR")
    size = tf.strings.length(first)
    capital = tf.strings.upper(first, encoding="utf-8")
    capital = tf.where(tf.strings.length(capital, unit="UTF8_CHAR") == 1, capital, first)
    return tf.strings.join([capital, tf.strings.substr(words, size, tf.strings.length(words) - size)])


def ways_of(tokens, first_tokens, capital_tokens):
    """Return the ways of phrases: their tokens, then BOS and those at the beginning of a text, if these differ.

    There a phrase may have a capital letter too. Shapes: each int32 RaggedTensor (N, None) -> int32 RaggedTensor (N,
    None, None).
    """
    is_known = ~tf.reduce_any(first_tokens == UNK, axis=1)
    is_capital = is_known & ~tf.reduce_any(capital_tokens == UNK, axis=1)
    is_capital &= written(capital_tokens) != written(first_tokens)
    is_another = is_capital | is_known & (written(tokens) != written(first_tokens))
    begins = tf.fill([tokens.nrows(tf.int32), 1], BOS)
    at_begin = (tf.concat([begins, each], axis=1) for each in (first_tokens, capital_tokens))
    ways = tf.ragged.stack([tokens, *at_begin], axis=1)
    is_way = tf.stack([tf.ones_like(is_another), is_another, is_capital], axis=1)  # (N, 3)
    return kept(ways, tf.reshape(is_way, [-1]))


def written(tokens):
    """Return tokens as texts that are the same if these are: int32 RaggedTensor (N, None) -> string (N,)."""
    of_each = tf.strings.as_string(tokens.values)
    return tf.strings.unsorted_segment_join(of_each, row_numbers(tokens), tokens.nrows(tf.int32), " ")


def is_blank(texts):
    """Return which texts have nothing but white space: string (N,) -> bool (N,)."""
    return tf.strings.regex_full_match(texts, BLANK)


def is_letterless(texts):
    """Return which texts have no letter, but are not blank: string (N,) -> bool (N,)."""
    return tf.strings.regex_full_match(texts, LETTERLESS) & ~is_blank(texts)


def texts_of(required, decode: Callable):
    """Return the texts of the phrases of each line.

    Shapes: required int32 RaggedTensor (B, None, None, None); decode: ids (N, L) -> string (N,). Returns string
    RaggedTensor (B, None).
    """
    first_ways = tf.gather(required.values.values, required.values.row_starts())
    return required.with_values(tf.strings.strip(decode(first_ways)))


def check_not_forbidden(phrases, forbidden):
    """Return the operation that fails if a phrase that must come has one that must not.

    Shapes: phrases as `texts_of` returns them; forbidden int32 RaggedTensor (B, None, None), of characters.
    """
    lines, texts = row_numbers(phrases), phrases.values

    def is_forbidden(number):
        return tf.shape(matches(texts[number], forbidden[lines[number]]))[0] > 0

    wrong = tf.map_fn(is_forbidden, tf.range(tf.size(texts)), fn_output_signature=tf.bool, parallel_iterations=1)
    return tf.debugging.Assert(~tf.reduce_any(wrong), [CONTRADICTION, shown(tf.boolean_mask(texts, wrong))])


def loss_allowed(phrases):
    """Return by how much phrases that fit may lower log P: as `texts_of` returns them -> float32 (B,)."""
    words = tf.cast(tf.strings.split(phrases.values).row_lengths(), tf.float32)
    return MOST_LOST * tf.reduce_sum(phrases.with_values(words), axis=1)


def is_first(tokens, lines):
    """Return which phrases are the first with their tokens in their line.

    Shapes: tokens int32 RaggedTensor (N, None), lines int (N,) -> bool (N,).
    """
    _, numbers = tf.unique(tf.strings.join([tf.strings.as_string(lines), written(tokens)], ":"))
    places = tf.range(tf.size(numbers))
    return tf.gather(tf.math.unsorted_segment_min(places, numbers, tf.size(numbers)), numbers) == places


class LineRules(NamedTuple):
    """The rules of the search for B lines, some of them ragged."""

    rules: dict[str, Any]  # each (B,), by name
    prefixes: Any  # int32 RaggedTensor (B, None)
    endings: Any  # int32 RaggedTensor (B, None, None)
    required: Any  # int32 RaggedTensor (B, None, None, None)
    word_edges: Any  # bool (2, V)

    def of(self, lines) -> dict[str, Any]:
        """Return the rules of some of the lines, int (R,), as a search takes them."""
        chosen = {name: tf.gather(rule, lines) for name, rule in self.rules.items()}
        return chosen | {
            "prefixes": tf.gather(self.prefixes, lines).to_tensor(PAD),
            "endings": padded_endings(tf.gather(self.endings, lines)),
            "required": tf.gather(self.required, lines).to_tensor(PAD),
            "word_edges": self.word_edges,
        }
