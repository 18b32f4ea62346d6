"""Which word of a source each word of its translation comes from, by an attention that an engine computes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.language_marks import NO_MARKS, Marks
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation

Sequences = Sequence[Sequence[int]]
# From the token ids of sources and of outputs to the attention of each pair: float32 (ways, T, S), or larger
Attend = Callable[[Sequences, Sequences], Sequence[Any]]


class WordAligner:
    """Aligns the words of sources and their translations: each word with the one that it attends to most.

    A word's attention is the sum over its pieces. Sources are read up to `most` tokens, EOS included.
    """

    def __init__(self, tokenizer: Tokenizer, most: int):
        self._tokenizer, self._most = tokenizer, most

    @functools.cached_property
    def _starts_word(self):
        return np.array([piece.startswith(SPACE) for piece in self._tokenizer.pieces()])

    def align_lines(
        self, attend: Attend, pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = (), ways: int = 1
    ) -> list[list[list[tuple[int, int]]]]:
        """Return by each way the alignment of each source line and a translation that was found for it: see `align`."""
        encoded = self._tokenizer.encode_batch(line for line, _ in pairs)
        of_lines = list(marks) or [NO_MARKS] * len(pairs)
        sources = [of_line.around(ids, self._most) for ids, of_line in zip(encoded, of_lines, strict=True)]
        outputs = [
            translation.ids or of_line.before(self._tokenizer.encode_target(translation.text))  # of a part of an output
            for (_, translation), of_line in zip(pairs, of_lines, strict=True)
        ]
        return self.align(attend, sources, outputs, of_lines, ways)

    def align(
        self, attend: Attend, sources: Sequences, outputs: Sequences, marks: Sequence[Marks] = (), ways: int = 1
    ) -> list[list[list[tuple[int, int]]]]:
        """Return by each way, for each sentence, pairs of word numbers, of the source and of the output.

        Both sides are token ids, EOS last, with the marks of their languages, which are of no word. `attend` is asked
        for those that have words on both sides.
        """
        of_lines = marks or [NO_MARKS] * len(sources)
        words = [
            (slice(len(first), len(source) - len(last)), slice(len(opening), len(output)))
            for source, output, (first, last, opening) in zip(sources, outputs, of_lines, strict=True)
        ]
        asked = [n for n, sides in enumerate(words) if all(side.stop - side.start > 1 for side in sides)]
        alignments: list[list[list[tuple[int, int]]]] = [[[] for _ in sources] for _ in range(ways)]
        found = attend([sources[n] for n in asked], [outputs[n] for n in asked]) if asked else ()
        for number, attention in zip(asked, found, strict=True):
            source, output = words[number]
            for of_way, weights in zip(alignments, attention[:, output, source], strict=True):
                of_way[number] = self._of_sentence(weights, sources[number][source], outputs[number][output])
        return alignments

    def _of_sentence(self, attention, source: Sequence[int], output: Sequence[int]) -> list[tuple[int, int]]:
        of_source, of_output = self._membership(source), self._membership(output)  # (S, V), (T, W)
        weights = of_output.T @ attention @ of_source
        return [(int(best), word) for word, best in enumerate(weights.argmax(axis=1))]

    def _membership(self, ids: Sequence[int]):
        """Return which word each token belongs to: (L, words), 0 for EOS."""
        tokens = np.array(ids)
        is_start = self._starts_word[tokens]
        is_start[0] = True
        is_start &= tokens != EOS
        words = np.cumsum(is_start) - 1
        return (words[:, None] == np.arange(words[-1] + 1)) * (tokens != EOS)[:, None].astype(np.float32)
