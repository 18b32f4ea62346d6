"""The languages of lines inside a graph: as keras_transformer/pieces/language_marks.py finds them in Python."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.pieces.language_marks import SIDES, SOURCE, TARGET, VERBS, Languages, MarkReader, Tag, named
from keras_transformer.pieces.languages import SHORT_CODES, short_code
from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES
from keras_transformer.pieces.sources import LEAVE_OUT
from keras_transformer.pieces.tokenizer import Tokenizer

from .ragged_rows import kept
from .request import shown
from .slices import with_end

UNKNOWN, UNTOLD, SEVERAL = -1, -2, -3  # in place of the number of a language
BEGINS = "first_marks"  # among the rules of lines
END = SPECIAL_PIECES[EOS]
CONTRADICTION = f"A line begins with the tag of another language than is asked for: {LEAVE_OUT}"


class LineMarks(NamedTuple):
    """The tokens that tell a model the languages of B lines, PAD for none; see `Marks`.

    first int32 (B, F), in which F is the most that a language of either side has; last, opening int32 (B,).
    """

    first: Any
    last: Any
    opening: Any


class GraphLanguages(tf.Module):
    """Turns codes of languages into LineMarks, inside a graph."""

    def __init__(self, languages: Languages, tokenizer: Tokenizer):
        super().__init__(name="languages")
        self.languages = languages
        self._reader = reader = MarkReader(languages, tokenizer)
        self.most_in_source, self.has_openings = reader.most_in_source, bool(languages.target_first)
        self._sides = {side: Side(side, languages, reader) for side in SIDES}

    @property
    def are_known(self) -> bool:
        """Whether a request may name languages."""
        return bool(self.languages.source or self.languages.target)

    def default_marks(self, lines) -> LineMarks:
        """Return the marks of so many lines, int (), that name no languages. Raises ConfigError if they have to."""
        codes = zip(SIDES, self.languages.chosen(), strict=True)
        return self._of_tags(lines, {side: self._sides[side].default_tag(code, lines) for side, code in codes})

    def marks(self, source, target) -> LineMarks:
        """Return the marks of lines: string (B,) each. The graph fails with a sentence if the model lacks a language.

        A code that is empty stands for the default.
        """
        tags = {side: self._sides[side].tags(codes) for side, codes in ((SOURCE, source), (TARGET, target))}
        return self._of_tags(tf.size(source), tags)

    def _of_tags(self, lines, tags: dict) -> LineMarks:
        """Return the marks of so many lines, int (), from the tokens of each side, int32 (B, F)."""
        places = (self.languages.source_first, self.languages.source_last, self.languages.target_first)
        first, last, opening = (tags[side] if side else tf.fill([lines, self._reader.longest], PAD) for side in places)
        return LineMarks(first, last[:, 0], opening[:, 0])

    def limits(self, pieces, marks: LineMarks, most: int):
        """Return how many tokens of sources have room among `most`, EOS and marks included, as `Marks.room` does.

        A mark that a source begins with already takes no room beside its tokens.
        Shapes: int32 RaggedTensor (B, None) -> int32 (B,).
        """
        own = tf.math.count_nonzero(marks.first != PAD, 1, dtype=tf.int32)
        is_there = begin_with(pieces, marks.first[:, tf.newaxis])[:, 0]
        return most - 1 - tf.cast(marks.last != PAD, tf.int32) - tf.where(is_there, 0, own)

    def of_source(self, pieces, marks: LineMarks):
        """Return sources with EOS and their marks: int32 RaggedTensor (B, None) -> the same.

        The graph fails with a sentence if a source begins with a token of a language that is not its first mark.
        """
        if not self.most_in_source:
            return with_end(pieces)
        tags = tf.constant(padded_rows(self._reader.tags, self._reader.longest), tf.int32)[tf.newaxis]  # (1, T, F)
        is_own = tf.reduce_all(tags == marks.first[:, tf.newaxis], axis=2)  # (B, T)
        begins = begin_with(pieces, tags)
        is_found = begins & (tf.cumsum(tf.cast(begins, tf.int32), axis=1, exclusive=True) == 0)  # the first that does
        is_other = tf.reduce_any(is_found & ~is_own, axis=1) & (marks.first[:, 0] != PAD)
        check = tf.debugging.Assert(~tf.reduce_any(is_other), [CONTRADICTION])
        with tf.control_dependencies([check]):
            return with_marks(pieces, tf.identity(marks.first), marks.last)

    def of_target(self, pieces, marks: LineMarks):
        """Return outputs with EOS and their openings: int32 RaggedTensor (B, None) -> the same."""
        return (
            with_marks(pieces, marks.opening[:, tf.newaxis], tf.zeros_like(marks.opening))
            if self.has_openings
            else with_end(pieces)
        )

    def rules(self, marks: LineMarks) -> dict:
        """Return the rule of the search by its name, and under BEGINS with how many marks sources begin: (B,) each."""
        rules = {BEGINS: tf.math.count_nonzero(marks.first != PAD, 1, dtype=tf.int32)} if self.most_in_source else {}
        return rules | ({"openings": marks.opening} if self.has_openings else {})

    def priced(self, log_probs):
        """Return log-probabilities of outputs, float32 (R, T), with 0 for their openings."""
        if not self.has_openings:
            return log_probs
        return tf.where(tf.range(tf.shape(log_probs)[1]) == 0, 0.0, log_probs)

    def words_of(self, pieces, rules: dict):
        """Return the pieces of sources with EOS in place of marks, which are of no word: string (R, S) -> the same.

        rules: those of these sources.
        """
        if not self.most_in_source:
            return pieces
        is_first = tf.range(tf.shape(pieces)[1]) < rules[BEGINS][:, tf.newaxis]
        is_behind = tf.cumsum(tf.cast(pieces == END, tf.int32), axis=1, exclusive=True) > 0
        return tf.where(is_first | is_behind, END, pieces)

    def without_opening(self, pieces):
        """Return the pieces of outputs with EOS in place of their openings: string (R, T) -> the same."""
        if not self.has_openings:
            return pieces
        return tf.where(tf.range(tf.shape(pieces)[1]) == 0, END, pieces)


class Side(tf.Module):
    """The languages of one side."""

    def __init__(self, side: str, languages: Languages, reader: MarkReader):
        super().__init__(name=f"{side}_languages")
        codes = list(getattr(languages, side))
        self.needed = languages.needs(side) and len(codes) > 1
        numbers = {code: number for number, code in enumerate(codes)}
        meanings: dict[str, int] = {}
        for code, number in numbers.items():
            short = short_code(code)
            meanings[short] = SEVERAL if short in meanings else number
        long = {code: meanings[short] for code, short in SHORT_CODES.items() if short in meanings}
        default = languages.default(side)
        self.codes = codes
        rows = padded_rows([(), *(reader.tag(side, code) for code in codes)], reader.longest)
        with tf.init_scope():
            self.by_code = table(numbers | {"": numbers.get(default, UNTOLD)})
            self.by_meaning = table(long | meanings or {"": UNKNOWN})
            self.of_numbers = tf.constant(rows, tf.int32)
        self.sentences = {
            UNKNOWN: f"This model {VERBS[side]} {named(codes)}; the {side}_language is another."
            if codes
            else f"This model does not say which language it {VERBS[side]}: leave out {side}_language.",
            SEVERAL: f"This model {VERBS[side]} several languages that the {side}_language means: name one of them.",
            UNTOLD: f"This model {VERBS[side]} {named(codes)}: say which is the {side}_language.",
        }

    def default_tag(self, code: str, lines):
        """Return the tokens of one language for so many lines, int (): int32 (B, F), PAD for none."""
        row = 1 + self.codes.index(code) if code else 0
        return tf.repeat(self.of_numbers[row : row + 1], lines, axis=0)

    def tags(self, codes):
        """Return the tokens of each language, PAD for none: string (B,) -> int32 (B, F)."""
        numbers = self.by_code.lookup(codes)
        subtags = tf.strings.regex_replace(tf.strings.lower(codes, encoding="utf-8"), "[-_].*", "")
        numbers = tf.where(numbers == UNKNOWN, self.by_meaning.lookup(subtags), numbers)
        wrong = [number for number in self.sentences if number != UNTOLD or self.needed]
        checks = []
        for number in wrong:
            found = shown(tf.boolean_mask(codes, numbers == number))
            checks.append(tf.debugging.Assert(tf.size(found) == 0, [self.sentences[number], found]))
        with tf.control_dependencies(checks):
            return tf.gather(self.of_numbers, tf.maximum(numbers, UNKNOWN) + 1)


def table(numbers: dict[str, int]) -> tf.lookup.StaticHashTable:
    """Return a table of numbers by text, UNKNOWN for others."""
    texts = tf.lookup.KeyValueTensorInitializer(list(numbers), list(numbers.values()), tf.string, tf.int32)
    return tf.lookup.StaticHashTable(texts, UNKNOWN)


def padded_rows(tags: Sequence[Tag], length: int) -> list[list[int]]:
    """Return the tokens of languages, so many for each: PAD fills a row."""
    return [[*tag, *[PAD] * (length - len(tag))] for tag in tags]


def begin_with(pieces, tags):
    """Return which of T tags each sequence begins with.

    Shapes: pieces int32 RaggedTensor (B, None), tags int32 (B or 1, T, F) -> bool (B, T).
    """
    width = tf.shape(tags)[2]
    begins = pieces[:, :width].to_tensor(PAD, shape=tf.stack([-1, width]))
    return tf.reduce_all((tags == PAD) | (tags == begins[:, tf.newaxis]), axis=2)


def with_marks(pieces, first, last):
    """Return sequences with EOS and two marks around them: int32 RaggedTensor (B, None) -> the same.

    first, last: the tokens before a sequence, int32 (B, F), and behind its EOS, int32 (B,), PAD for none. Those that a
    sequence begins with already are not put there again.
    """
    first = tf.where(begin_with(pieces, first[:, tf.newaxis]), PAD, first)
    end = tf.fill([pieces.nrows(), 1], EOS)
    ids = tf.concat([first, pieces, end, last[:, tf.newaxis]], axis=1)
    return kept(ids, ids.values != PAD)
