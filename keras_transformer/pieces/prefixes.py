"""The beginning that a translation must have: characters, which pieces may cross.

"Ei" may become "Ein Hund", although "Ei" is one piece and "Ein" another. So the last word of a prefix is not forced as
pieces. Instead, the output must take one of its endings: all the pieces with which the tokenizer divides a text that
begins with the prefix, up to the piece that completes it. They are found by appending the rest of each piece of the
vocabulary that goes on where the prefix ends. In byte-pair encoding a sequence of pieces that ends earlier is divided
as before, so there are no others. A model of another kind, such as one of unigrams, may have more.
"""

import bisect
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_transformer.ground.tokens import PAD, UNK
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.sources import encoded_prefix, padded

if TYPE_CHECKING:  # it needs sentencepiece, which not every engine has
    from keras_transformer.pieces.tokenizer import Tokenizer

GUARD = "a"  # a letter beside a space, so that the space is not removed as one at an end
NO_ENDING = -1  # in place of a token: no output has it


class Prefix(NamedTuple):
    """How an output must begin: with `tokens`, then with one of `endings`, which may be empty."""

    tokens: list[int]
    endings: list[tuple[int, ...]]


NO_PREFIX = Prefix([], [()])


class PrefixReader:
    """Turns texts into Prefixes, with `encode_target` and `surfaces` of a tokenizer."""

    def __init__(self, tokenizer: "Tokenizer"):
        self.tokenizer, self.encode, self.surfaces = tokenizer, tokenizer.encode_target, tokenizer.surfaces()
        self.sorted_pieces = sorted((surface, number) for number, surface in enumerate(self.surfaces))
        self.guard = self.encode(GUARD)

    def read(self, text: str, longest: int) -> Prefix:
        """Return the Prefix of a text. Raises InputError as `encoded_prefix` does."""
        tokens = encoded_prefix(self.tokenizer, text, longest)
        if not tokens:
            return NO_PREFIX
        space = SPACE.encode()
        if self.text_of(self.encode(text + GUARD)) == self.text_of(tokens) + space + GUARD.encode():
            # A space at the end, which normalization took away: a new word begins
            return Prefix(tokens, [(n,) for n, surface in enumerate(self.surfaces) if surface.startswith(space)])
        starts = [place for place, token in enumerate(tokens) if self.surfaces[token].startswith(space)]
        start = starts[-1] if starts else 0
        word = tokens[start:]
        rest = self.text_of(word)
        if self.encoded(rest) != word:
            return Prefix(tokens, [()])
        return Prefix(tokens[:start], self.endings_of(rest, word))

    def endings_of(self, rest: bytes, word: list[int]) -> list[tuple[int, ...]]:
        """Return the pieces of all texts that begin with `rest`, up to the one that completes it; `word` is its own."""
        endings, texts = {tuple(word)}, []
        for cut in cuts_of(rest):
            longer = self.pieces_beyond(rest[cut:])
            if cut == 0:
                endings.update((number,) for _, number in longer)
            else:
                texts += [rest[:cut] + surface for surface, _ in longer]
        for text in texts:
            tokens = self.encoded(text)
            lengths = itertools.accumulate(len(self.surfaces[token]) for token in tokens)
            count = next((number for number, length in enumerate(lengths, 1) if length >= len(rest)), len(tokens))
            endings.add(tuple(tokens[:count]))
        return sorted(ending for ending in endings if UNK not in ending)

    def pieces_beyond(self, text: bytes) -> list[tuple[bytes, int]]:
        """Return the pieces that begin with a text and are longer, each with its number."""
        begin = bisect.bisect_right(self.sorted_pieces, (text, len(self.surfaces)))
        end = bisect.bisect_left(self.sorted_pieces, (text + b"\xff", 0))  # UTF-8 has no byte 0xFF
        return self.sorted_pieces[begin:end]

    def encoded(self, text: bytes) -> list[int]:
        """Return the tokens of a part of a text that begins with a space, or of a text from its beginning."""
        part = text.decode().replace(SPACE, " ")
        if part.startswith(" "):
            return self.encode(GUARD + part)[len(self.guard) :]
        return self.encode(part)

    def text_of(self, tokens: list[int]) -> bytes:
        return b"".join(self.surfaces[token] for token in tokens)


def cuts_of(text: bytes) -> list[int]:
    """Return where each character of a text in UTF-8 begins."""
    return [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80]


def rules_of_prefixes(prefixes: list[Prefix]) -> dict[str, Any]:
    """Return the rules of the search (search/rules/table.py) for the prefix of each sentence."""
    most = max(len(prefix.endings) for prefix in prefixes)
    longest = max(1, *(len(ending) for prefix in prefixes for ending in prefix.endings))
    endings = np.full((len(prefixes), most, longest), NO_ENDING, np.int32)
    for rows, prefix in zip(endings, prefixes, strict=True):
        for row, ending in zip(rows, prefix.endings, strict=False):
            row[:] = [*ending, *[PAD] * (longest - len(ending))]
    return {"prefixes": padded([prefix.tokens for prefix in prefixes]), "endings": endings}
