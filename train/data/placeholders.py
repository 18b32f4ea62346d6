"""Placeholders in training text: spans that are alike on both sides of a pair, replaced anew in every epoch."""

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.text.placeholders import placeholders_in, symbol_of, symbols_of
from keras_transformer.text.source import WORD
from keras_transformer.text.spans import KINDS, TAGS, Protection, Span

from ..config.training import RowLengths
from .cleaning import shown
from .corpus import Split
from .encoding import EncodedPairs, Sentences

MOST_LOOKED_AT = 10_000  # pairs at the beginning of a text in which spans are counted: 2 seconds
CHUNK = 10_000  # pairs after which it looks whether to give up
PROTECTION = Protection(tuple(kind for kind in KINDS if kind != TAGS))


class Placeholders:
    """Replaces spans of a share of the pairs by placeholders, so that a model learns to bring these through.

    A span is one that a translation may protect (text/spans.py), or a word with a capital letter or a digit. It is
    replaced if both sides have it equally often: alike, once each. Which pairs are drawn, and which placeholders stand
    for their spans, is a function of the pairs and the Generator, in every process. A pair keeps its text if the other
    would not fit into a row.

    Raises ConfigError for a tokenizer without placeholders.
    """

    def __init__(self, tokenizer: Tokenizer, share: float, row_lengths: RowLengths):
        self.tokenizer, self.share, self.row_lengths = tokenizer, share, row_lengths
        self.count = len(placeholders_in(tokenizer.pieces()))
        if not self.count:
            raise ConfigError(
                f"data.placeholders is {share}, but the tokenizer has no placeholders: set tokenizer.placeholders, "
                "such as 8, in another run_folder."
            )

    def __call__(
        self, pairs: EncodedPairs, rng: np.random.Generator, gives_up: Callable[[], bool] = lambda: False
    ) -> EncodedPairs:
        """Return the same pairs, in the same order, some with placeholders; arguments as for BpeDropout."""
        replaced = {}  # number of a pair -> ids of both sides
        for done, number in enumerate(np.flatnonzero(rng.random(len(pairs)) < self.share).tolist()):
            if done % CHUNK == 0 and gives_up():
                raise CancelledError("The epoch is not needed any more.")
            order = rng.permutation(self.count)
            sides = (self.tokenizer.decode(side[number].tolist()) for side in (pairs.source, pairs.target))
            source_text, target_text = sides
            symbols = [symbol_of(int(place) + 1) for place in order]
            if texts := with_placeholders(source_text, target_text, symbols):
                source = [*self.tokenizer.encode(texts[0]), EOS]
                target = [*self.tokenizer.encode_target(texts[1]), EOS]
                if len(source) <= self.row_lengths.source and len(target) <= self.row_lengths.target:
                    replaced[number] = source, target
        sources = with_sentences(pairs.source, list(replaced), [source for source, _ in replaced.values()])
        targets = with_sentences(pairs.target, list(replaced), [target for _, target in replaced.values()])
        return EncodedPairs(sources, targets, pairs.skipped, pairs.keys)


def with_placeholders(source: str, target: str, symbols: Sequence[str]) -> tuple[str, str] | None:
    """Return both texts with symbols for the spans that stand once on each side, at most as many; None without any."""
    of_sides = [spans_of(text) for text in (source, target)]
    once = [{text for text, times in collections.Counter(spans.values()).items() if times == 1} for spans in of_sides]
    alike = [text for text in of_sides[0].values() if text in once[0] & once[1]][: len(symbols)]
    symbol_for = dict(zip(alike, symbols, strict=False))
    texts = []
    for text, spans in zip((source, target), of_sides, strict=True):
        for (start, end), value in sorted(spans.items(), reverse=True):
            if value in symbol_for:
                text = text[:start] + symbol_for[value] + text[end:]
        texts.append(text)
    return (texts[0], texts[1]) if alike else None


def placeholder_lines(split: Split) -> Iterator[str]:
    """A line for the log: in how many pairs, at the beginning of a text, placeholders could stand, and for what."""
    pairs = list(itertools.islice(split, MOST_LOOKED_AT))
    fitting = [pair for pair in pairs if with_placeholders(*pair, symbols_of(1))]
    if fitting:
        example = f", such as {shown(fitting[0])}"
        yield (
            f"data.placeholders: {len(fitting):,} of the first {len(pairs):,} training pairs have a number, a name or "
            f"another span that stands once on each side{example}"
        )


def spans_of(text: str) -> dict[tuple[int, int], str]:
    """Return the spans of a text that may be replaced, from left to right: by start and end."""
    spans = PROTECTION.spans(text)
    for match in WORD.finditer(text):
        start, end = match.span()
        bare = match[0].strip(".,;:!?\"'()[]")
        start += match[0].find(bare) if bare else 0
        end = start + len(bare)
        is_name = len(bare) > 1 and bare.isalnum() and (any(c.isdigit() for c in bare) or bare[1:] != bare[1:].lower())
        is_name |= len(bare) > 1 and bare.isalpha() and bare[0].isupper() and start > 0
        if is_name and not any(span.start < end and start < span.end for span in spans):
            spans.append(Span(start, end, "word", bare))
    return {(span.start, span.end): span.target for span in sorted(spans)}


def with_sentences(sentences: Sentences, numbers: Sequence[int], ids: Sequence[Sequence[int]]) -> Sentences:
    """Return sentences with other ids for some of them, by increasing numbers."""
    lengths, parts, reached = sentences.lengths, [], 0
    for number, of_sentence in zip(numbers, ids, strict=True):
        begin, end = sentences.offsets[number : number + 2]
        parts += [sentences.ids[reached:begin], np.array(of_sentence, sentences.ids.dtype)]
        lengths[number], reached = len(of_sentence), end
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Sentences(np.concatenate([*parts, sentences.ids[reached:]]), offsets)
