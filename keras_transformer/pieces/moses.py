"""Words of Moses, divided by byte-pair encoding as subword-nmt does (Sennrich et al. 2016): OPUS-MT before 2020.

The package sacremoses is what Moses' scripts are in Python. It is imported when a text is first divided or joined.
"""

import functools
import unicodedata
from collections.abc import Sequence
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.languages import short_code

CONTINUES = "@@"  # at the end of a piece that does not end its word
END_OF_WORD = "</w>"  # in a file of codes
VERSIONS = {"0.1": False, "0.2": True}  # of a file of codes: whether END_OF_WORD is part of a word's last character
NO_VERSION = "0.1"
LONGEST_WORD = 1000  # characters; the rest of a longer word is divided as another one, so that time stays linear
KEPT_WORDS = 100_000  # of a text, with their pieces


class Codes:
    """The merges of a file that subword-nmt learned, by their rank: the first one comes first.

    Raises ValueError for a content that is no such file.
    """

    def __init__(self, content: bytes):
        lines = content.decode("utf-8").rstrip("\n").split("\n")
        version = NO_VERSION
        if lines[0].startswith("#version:"):
            version = lines.pop(0).removeprefix("#version:").strip()
        if version not in VERSIONS:
            raise ValueError(f"its version is {version:.20}; it must be {' or '.join(VERSIONS)}")
        merges = [tuple(line.strip("\r ").split(" ")) for line in lines]
        if wrong := [number for number, merge in enumerate(merges, 1) if len(merge) != 2 or not all(merge)]:
            raise ValueError(f"merge {wrong[0]} is {lines[wrong[0] - 1]!r:.40}; it must be two pieces")
        self._ends_in_character = VERSIONS[version]
        self._ranks = {merge: rank for rank, merge in reversed(list(enumerate(merges)))}  # the first of equal ones
        self.pieces_of = functools.lru_cache(KEPT_WORDS)(self._pieces_of)

    def _pieces_of(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word, all but the last with CONTINUES at their ends."""
        if len(word) == 1:
            return (word,)
        parts = [*word[:-1], word[-1] + END_OF_WORD] if self._ends_in_character else [*word, END_OF_WORD]
        while len(parts) > 1:
            merge = min(zip(parts, parts[1:], strict=False), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if merge not in self._ranks:
                break
            parts = merged(parts, merge)
        if parts[-1] == END_OF_WORD:
            parts.pop()
        parts[-1] = parts[-1].removesuffix(END_OF_WORD)
        return (*(part + CONTINUES for part in parts[:-1]), parts[-1])


def merged(parts: Sequence[str], merge: tuple[str, ...]) -> list[str]:
    """Return the parts of a word with each occurrence of a merge as one part, from the left."""
    result, index = [], 0
    while index < len(parts):
        step = 2 if tuple(parts[index : index + 2]) == merge else 1
        result.append("".join(parts[index : index + step]))
        index += step
    return result


class MosesSide:
    """Divides texts of a language as OPUS-MT's preprocess.sh does, and joins pieces as its postprocess.sh does.

    It is called as a SentencePieceProcessor is. Raises ValueError for codes that are none.
    """

    def __init__(self, codes: bytes, language: str):
        self.codes, self.language = Codes(codes), short_code(language) or language

    @functools.cached_property
    def _scripts(self) -> tuple[Any, Any, Any]:
        try:
            import sacremoses
        except ImportError:
            raise ConfigError(
                "This model divides text as Moses does, for which it needs the package sacremoses, which is not "
                "installed: pip install 'keras-transformer-mt[train]'."
            ) from None
        return (
            sacremoses.MosesPunctNormalizer(self.language, pre_replace_unicode_punct=True),
            sacremoses.MosesTokenizer(self.language),
            sacremoses.MosesDetokenizer(self.language),
        )

    def encode(self, texts: Sequence[str], out_type: type = str) -> list[list[str]]:
        """Return the pieces of each text."""
        return [[piece for word in self.words(text) for piece in self.pieces_of(word)] for text in texts]

    def words(self, text: str) -> list[str]:
        """Return the words of a text, with & and others escaped and dashes marked as Moses does."""
        normalizer, tokenizer, _ = self._scripts
        printable = "".join(" " if unicodedata.category(each).startswith("C") else each for each in text)
        return tokenizer.tokenize(normalizer.normalize(printable), aggressive_dash_splits=True)

    def pieces_of(self, word: str) -> list[str]:
        """Return the pieces of a word."""
        parts = [word[first : first + LONGEST_WORD] for first in range(0, len(word), LONGEST_WORD)]
        return [piece for part in parts for piece in self.codes.pieces_of(part)]

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """Return the text of pieces."""
        words = f"{' '.join(pieces)} ".replace(f"{CONTINUES} ", "").split()
        return self._scripts[2].detokenize(words)

    def normalize(self, text: str) -> str:
        """Return a text: what Moses makes the same, it makes so word by word."""
        return text
