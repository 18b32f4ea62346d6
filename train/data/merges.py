"""The merges of a byte-pair tokenizer, some of which may be left out: what BPE-dropout draws from.

SentencePiece's own sampling cannot serve: from version 0.2.2 on the same seed draws something else in each process, so
that a run which is killed would go on with other text than it would have had.
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError

MOST_KEPT = 500_000  # in memory, some 450 bytes each of a word; looked at once for all words of a call

Ids = tuple[int, ...]


class Segmentation:
    """A word in the pieces that it has if the merges number `dropped` are left out, counted in the order of trying.

    rest: how many merges are tried after the last of `dropped`. The Segmentation with one more of them left out is
    among `further`, by how many are tried before it.
    """

    __slots__ = ("dropped", "further", "ids", "rest", "word")

    def __init__(self, word: Ids, ids: Ids, dropped: tuple[int, ...], rest: int):
        self.word, self.ids, self.dropped, self.rest = word, ids, dropped, rest
        self.further: dict[int, Segmentation] = {}


class Merges:
    """What the pieces of a tokenizer are merged from, word by word.

    A word is a run of ids that the merges cannot leave: up to the next space, or to a piece that is never merged, such
    as a byte, a symbol or EOS, which is a word by itself. Raises TokenizerError if the tokenizer is not one of
    byte-pair encoding, or has two models or pieces that are switched off.

    Threads may share it: what it keeps follows from the word alone. All ids that it is given must be of one dtype.
    """

    def __init__(self, tokenizer: Tokenizer):
        if not tokenizer.is_bpe or "unused" in tokenizer.kinds():
            raise TokenizerError(
                "training.bpe_dropout leaves out merges, and this tokenizer is not one of byte-pair encoding, or has "
                "two models or pieces that are switched off: leave bpe_dropout out, or have a tokenizer trained."
            )
        self.pieces, kinds = tokenizer.pieces(), tokenizer.kinds()
        normal = [number for number, kind in enumerate(kinds) if kind == "normal"]
        scores = tokenizer.scores()
        self.scores = {self.pieces[number]: scores[number] for number in normal}
        self.ids = {self.pieces[number]: number for number in normal}
        self.is_alone = np.array([kind != "normal" for kind in kinds])
        has_words = all(SPACE not in piece[1:] for piece in self.ids)
        self.begins = self.is_alone | np.array([has_words and piece.startswith(SPACE) for piece in self.pieces])
        self.known: dict[bytes, Segmentation] = {}
        self.kept = 0  # Segmentations, those among `further` of others included

    def words_of(self, ids: np.ndarray) -> np.ndarray:
        """Where each word of some ids, (n,), begins: increasing, from 0. int64 (words,)"""
        begins = self.begins[ids]
        begins[1:] |= self.is_alone[ids[:-1]]
        begins[:1] = True
        return np.flatnonzero(begins)

    def segmentations_of(self, ids: np.ndarray, starts: np.ndarray) -> list[Segmentation]:
        """The Segmentation of each word of some ids, (n,), that begins at `starts`, of which nothing is left out."""
        text, bounds, segmentations = ids.tobytes(), (ids.itemsize * np.append(starts, len(ids))).tolist(), []
        for begin, end in itertools.pairwise(bounds):
            word = text[begin:end]
            if word not in self.known:
                self.known[word] = self.whole(tuple(np.frombuffer(word, ids.dtype).tolist()))
            segmentations.append(self.known[word])
        return segmentations

    def whole(self, word: Ids) -> Segmentation:
        """The Segmentation of a word of which nothing is left out."""
        self.kept += 1
        pieces, tried = self.merged(word, ())
        return Segmentation(word, pieces, (), tried)

    def further(self, segmentation: Segmentation, tried: int) -> Segmentation:
        """The Segmentation without one more merge: that before which `tried` are tried, below `segmentation.rest`."""
        if tried not in segmentation.further:
            number = (segmentation.dropped[-1] + 1 if segmentation.dropped else 0) + tried
            dropped = (*segmentation.dropped, number)
            pieces, total = self.merged(segmentation.word, dropped)
            segmentation.further[tried] = Segmentation(segmentation.word, pieces, dropped, total - number - 1)
            self.kept += 1
        return segmentation.further[tried]

    def merged(self, word: Ids, dropped: Sequence[int]) -> tuple[Ids, int]:
        """The pieces of a word, and how many merges were tried, if those numbered `dropped` are left out.

        As SentencePiece does it: of all neighbours that make a piece, those of the best score are tried first, the
        leftmost of equals. A pair that is left out is not tried again; what one of the two becomes makes new pairs.
        """
        if self.is_alone[word[0]]:
            return word, 0
        parts = list("".join(self.pieces[number] for number in word))
        before, after = list(range(-1, len(parts) - 1)), [*range(1, len(parts)), -1]
        queue: list[tuple[float, int, int, str]] = []  # of (-score, left, right, piece)

        def consider(left: int, right: int) -> None:
            if left >= 0 and right >= 0 and (piece := parts[left] + parts[right]) in self.scores:
                heapq.heappush(queue, (-self.scores[piece], left, right, piece))

        for left in range(len(parts) - 1):
            consider(left, left + 1)
        tried = 0
        while queue:
            _, left, right, piece = heapq.heappop(queue)
            if not parts[left] or not parts[right] or len(parts[left]) + len(parts[right]) != len(piece):
                continue  # one of them has been merged with another since
            tried += 1
            if tried - 1 in dropped:
                continue
            parts[left], parts[right] = piece, ""
            after[left] = after[right]
            if after[left] >= 0:
                before[after[left]] = left
            consider(before[left], left)
            consider(left, after[left])
        return tuple(self.ids[part] for part in parts if part), tried

    def drawn(self, ids: np.ndarray, starts: np.ndarray, rate: float, rng: np.random.Generator) -> dict[int, Ids]:
        """Leave out each merge with the probability `rate`, in (0, 1]; return the words that this changes, by number.

        ids: (n,). starts: where each word begins, as from `words_of`. The numbers of the first merges that are left out
        are drawn for all words at once, and all further ones in the order of the words.
        """
        if self.kept > MOST_KEPT:
            self.known, self.kept = {}, 0
        plain = self.segmentations_of(ids, starts)
        tried = rng.geometric(rate, len(plain)) - 1  # before the first that is left out
        changed = np.flatnonzero(tried < np.fromiter((word.rest for word in plain), np.int64, len(plain)))
        further, pieces_of = numbers(rate, rng), {}
        for word, before in zip(changed.tolist(), tried[changed].tolist(), strict=True):
            segmentation = plain[word]
            while before < segmentation.rest:
                segmentation, before = self.further(segmentation, before), next(further)
            pieces_of[word] = segmentation.ids
        return pieces_of


def numbers(rate: float, rng: np.random.Generator) -> Iterator[int]:
    """Draw, again and again, how many merges are tried before one is left out."""
    while True:
        yield from (rng.geometric(rate, 1_000) - 1).tolist()
