"""Augmentation: every epoch changes a share of the training pairs anew, as people write text."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

import numpy as np

from keras_transformer.ground.tokens import UNK
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader, Marks
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.augmentation import AugmentationConfig
from ..config.training import RowLengths
from .corpus import Pair
from .encoding import EncodedPairs, Sentences
from .packing import offsets_of, places_of

PUNCTUATION = ".,;:!?…。，、！？"

CHUNK = 10_000  # pairs that are drawn at once; with another number a run that goes on would draw others

JOINED = "joined"

Change = Callable[[Pair, Pair, np.random.Generator], Pair]  # from a pair, the one that JOINED adds, a Generator
CHANGES: dict[str, Change] = {  # by key of training.augment. The target is what a careful writer of the source meant
    "uppercase": lambda pair, other, rng: (in_capitals(pair[0]), in_capitals(pair[1])),
    "title_case": lambda pair, other, rng: (in_title_case(pair[0]), pair[1]),
    "punctuation": lambda pair, other, rng: (with_other_punctuation(pair[0], rng), pair[1]),
    "typing": lambda pair, other, rng: (with_typing_mistake(pair[0], rng), pair[1]),
    JOINED: lambda pair, other, rng: (f"{pair[0]} {other[0]}", f"{pair[1]} {other[1]}"),
}


class Augmentation:
    """Changes a share of the pairs, each in one of the ways of CHANGES, as `config` has the shares.

    The text of these pairs is put together from their pieces and divided again, so neither text files nor the cache are
    read again. A pair stays as it is if the changed one would not fit into a row, and if it has a piece that stands for
    no text. tags: with which a source may begin; they are not changed, and pairs of different tags are not joined. The
    same holds for the marks of `languages`.
    What is drawn is a function of the pairs and the Generator, in every process.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        config: AugmentationConfig,
        row_lengths: RowLengths,
        tags: Sequence[str],
        languages: Languages = NO_LANGUAGES,
    ):
        self.tokenizer, self.row_lengths, self.marks = tokenizer, row_lengths, MarkReader(languages, tokenizer)
        self.tags = (*tags, *tokenizer.tags)
        self.names = list(CHANGES)
        self.ends = np.cumsum([getattr(config, name) for name in CHANGES])  # of the stretch of [0, 1) of each change

    def __call__(
        self, pairs: EncodedPairs, rng: np.random.Generator, gives_up: Callable[[], bool] = lambda: False
    ) -> EncodedPairs:
        """Return the pairs in the same order, of which those that `rng` draws are changed.

        Raises CancelledError soon after `gives_up()` is true: a large corpus takes minutes.
        """
        sources, targets = [], []
        for first in range(0, len(pairs), CHUNK):
            if gives_up():
                raise CancelledError("The epoch is not needed any more.")
            source, target = (stretch(side, first, CHUNK) for side in (pairs.source, pairs.target))
            source, target = self.drawn(source, target, rng)
            sources.append(source)
            targets.append(target)
        return EncodedPairs(Sentences.joined(sources), Sentences.joined(targets), pairs.skipped, pairs.keys)

    def drawn(self, source: Sentences, target: Sentences, rng: np.random.Generator) -> tuple[Sentences, Sentences]:
        """Return both sides of some pairs, of which those that `rng` draws are changed."""
        change_of = np.searchsorted(self.ends, rng.random(len(source)), side="right")
        numbers = np.flatnonzero(change_of < len(self.names))
        others = rng.integers(len(source), size=len(numbers))
        changed: dict[int, Pair] = {}
        marks_of: dict[int, Marks] = {}
        for number, other in zip(numbers.tolist(), others.tolist(), strict=True):
            name = self.names[change_of[number]]
            begin, pair = self.text_of(source[number], target[number])
            other_begin, added = self.text_of(source[other], target[other]) if name == JOINED else (begin, pair)
            if pair and added and begin == other_begin:
                new_source, new_target = CHANGES[name](pair, added, rng)
                tag, marks_of[number] = begin
                changed[number] = tag + new_source, new_target
        return self.replaced(source, target, changed, marks_of)

    def text_of(self, source: np.ndarray, target: np.ndarray) -> tuple[tuple[str, Marks], Pair | None]:
        """The tag, marks and text of a pair of ids; None for a pair that has a piece without a text."""
        marks = self.marks.marks_on(source.tolist(), target.tolist())
        if UNK in source or UNK in target:
            return ("", marks), None
        text = self.tokenizer.decode(source)
        tag = next((tag for tag in self.tags if text.startswith(tag)), "")
        return (tag, marks), (text[len(tag) :], self.tokenizer.decode(target))

    def replaced(
        self, source: Sentences, target: Sentences, changed: dict[int, Pair], marks_of: dict[int, Marks]
    ) -> tuple[Sentences, Sentences]:
        """Return both sides with the pairs `changed`, by number, if they fit into a row and have text on both sides.

        marks_of: the marks of these pairs.
        """
        if not changed:
            return source, target
        texts = zip(*changed.values(), strict=True)
        encode = self.tokenizer.encode_batch, self.tokenizer.encode_target_batch
        sides = [encode_side(list(side)) for encode_side, side in zip(encode, texts, strict=True)]
        marked = {
            number: (marks_of[number].around(source_ids), marks_of[number].before(target_ids))
            for number, source_ids, target_ids in zip(changed, *sides, strict=True)
            if source_ids and target_ids
        }
        fitting = {
            number: (source_ids, target_ids)
            for number, (source_ids, target_ids) in marked.items()
            if len(source_ids) <= self.row_lengths.source and len(target_ids) <= self.row_lengths.target
        }
        new_sources = {number: source_ids for number, (source_ids, _) in fitting.items()}
        new_targets = {number: target_ids for number, (_, target_ids) in fitting.items()}
        return with_others(source, new_sources), with_others(target, new_targets)


def stretch(sentences: Sentences, first: int, count: int) -> Sentences:
    """`count` of the sentences from `first` on, or as many as there are."""
    offsets = sentences.offsets[first : first + count + 1]
    return Sentences(sentences.ids[offsets[0] : offsets[-1]], offsets - offsets[0])


def with_others(sentences: Sentences, others: dict[int, list[int]]) -> Sentences:
    """The sentences, with other ids in place of those numbers that are in `others`."""
    if not others:
        return sentences
    lengths, numbers = sentences.lengths, np.fromiter(others, np.int64, len(others))
    new_lengths = lengths.copy()
    new_lengths[numbers] = [len(ids) for ids in others.values()]
    offsets, is_same = offsets_of(new_lengths), np.ones(len(lengths), bool)
    is_same[numbers] = False
    ids = np.empty(offsets[-1], sentences.ids.dtype)
    same_lengths = lengths[is_same]
    ids[places_of(offsets[:-1][is_same], same_lengths)] = sentences.ids[
        places_of(sentences.offsets[:-1][is_same], same_lengths)
    ]
    ids[places_of(offsets[:-1][numbers], new_lengths[numbers])] = np.concatenate(list(others.values()))
    return Sentences(ids, offsets)


def in_capitals(text: str) -> str:
    """The text in upper case: "it's a dog" -> "IT'S A DOG"."""
    return text.upper()


def in_title_case(text: str) -> str:
    """The text with a capital at the beginning of each word: "it's a dog" -> "It's A Dog"."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def without_last_stop(text: str) -> str:
    """The text without the punctuation at its end: "A dog." -> "A dog"."""
    return text.rstrip().rstrip(PUNCTUATION).rstrip() or text


def with_other_punctuation(text: str, rng: np.random.Generator) -> str:
    """The text without one of its punctuation marks, or with one twice: "A dog." -> "A dog" or "A dog..".

    A mark between two digits stays as it is: without it, "3.5" would be another number.
    """
    places = [n for n, character in enumerate(text) if character in PUNCTUATION and not is_in_number(text, n)]
    if not places:
        return text
    place, times = places[rng.integers(len(places))], 2 * int(rng.integers(2))
    changed = text[:place] + times * text[place] + text[place + 1 :]
    return changed if changed.strip() else text


def is_in_number(text: str, place: int) -> bool:
    """Whether the character at a place stands between two digits."""
    return text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit()


def with_typing_mistake(text: str, rng: np.random.Generator) -> str:
    """The text with two neighbouring letters exchanged, or with a letter left out, doubled or replaced by another one.

    "A dog" -> "A odg", "A do", "A doog" or "A dAg". The letter is one of a word of at least two letters.
    """
    letters = [place for place, character in enumerate(text) if character.isalpha()]
    followed = [place for place in letters if text[place + 1 : place + 2].isalpha()]
    if not followed:
        return text
    place = followed[rng.integers(len(followed))]
    letter, following = text[place], text[place + 1]
    other = text[letters[rng.integers(len(letters))]]
    mistakes = [following + letter, following, 2 * letter + following, other + following]
    mistakes = [typed for typed in mistakes if typed != letter + following]  # as two equal letters exchanged would be
    return text[:place] + mistakes[rng.integers(len(mistakes))] + text[place + 2 :]
