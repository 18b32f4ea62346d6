"""shortlist.npz: which target pieces a search considers for each source piece."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import DAMAGED_ARCHIVE, write_atomically
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import ON, SearchOptions, check_options
from keras_transformer.shortlist.lexicon import Lexicon

ARRAYS = ("offsets", "pieces", "always")


class Shortlist(NamedTuple):
    """A sentence may be translated with `always` and the lists of its own pieces, over a vocabulary of V pieces.

    offsets: int32 (V + 1,); the list of source piece s is pieces[offsets[s] : offsets[s + 1]], the best first.
    pieces: int32 (any number,): target pieces.
    always: int32 (any number,): target pieces that every sentence may use, in order; the special ones are among them.
    tokenizer: the SHA-256 of the tokenizer whose pieces these are.
    """

    offsets: np.ndarray
    pieces: np.ndarray
    always: np.ndarray
    tokenizer: str

    @property
    def vocab_size(self) -> int:
        return len(self.offsets) - 1

    def list_of(self, piece: int) -> list[int]:
        """Return the target pieces that may translate a source piece, the best first."""
        return self.pieces[self.offsets[piece] : self.offsets[piece + 1]].tolist()

    def of(self, source_ids: Iterable[int]) -> set[int]:
        """Return the target pieces that a sentence may use."""
        return set(self.always.tolist()).union(*map(self.list_of, source_ids))

    def table(self) -> np.ndarray:
        """Return the lists as the rows of one array, int32 (V, N), N that of the longest; PAD fills shorter ones."""
        lengths = np.diff(self.offsets)
        table = np.full((self.vocab_size, max(1, lengths.max(initial=0))), PAD, np.int32)
        table[np.arange(table.shape[1]) < lengths[:, np.newaxis]] = self.pieces
        table[PAD] = PAD  # which fills the rows of a batch, and is no source piece
        return table

    def save(self, path: str | os.PathLike) -> None:
        """Replace the file at `path` in one step."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_atomically(path, lambda file: np.savez_compressed(file, tokenizer=np.array(self.tokenizer), **arrays))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Shortlist":
        """Read what `save` wrote. Raises ConfigError, naming the file, if it cannot be read or is damaged."""
        try:
            with np.load(path, allow_pickle=False) as file:
                shortlist = cls(file["offsets"], file["pieces"], file["always"], str(file["tokenizer"]))
            shortlist.check()
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from None
        except DAMAGED_ARCHIVE as error:
            cause = str(error).partition("\n")[0].strip("'.") or type(error).__name__
            raise ConfigError(
                f"{path} is damaged: {cause}. Build it again with `keras-transformer shortlist`."
            ) from None
        return shortlist

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Raises ConfigError if the pieces are those of another tokenizer."""
        if self.vocab_size != tokenizer.vocab_size:
            why = f"it is over {self.vocab_size} pieces, and the tokenizer has {tokenizer.vocab_size}"
        elif self.tokenizer != sum_of(tokenizer):
            why = "its pieces are those of another tokenizer"
        else:
            return
        raise ConfigError(
            f"The shortlist is not of this run: {why}. Build it again with `keras-transformer shortlist`."
        )

    def check(self) -> None:
        """Raises ValueError for arrays that are no shortlist."""
        for name in ARRAYS:
            array = getattr(self, name)
            if array.dtype != np.int32 or array.ndim != 1:
                raise ValueError(f"{name} is {array.dtype} with {array.ndim} axes, not int32 with one")
        if not len(self.offsets) or self.offsets[0] or np.any(np.diff(self.offsets) < 0):
            raise ValueError("offsets do not rise from 0")
        if self.offsets[-1] != len(self.pieces):
            raise ValueError(f"offsets end at {self.offsets[-1]}, and there are {len(self.pieces)} pieces")
        for name in ARRAYS[1:]:
            array = getattr(self, name)
            if len(array) and not 0 <= array.min() <= array.max() < self.vocab_size:
                raise ValueError(f"{name} has numbers that are not from 0 to {self.vocab_size - 1}")
        if not {PAD, UNK, BOS, EOS} <= set(self.always.tolist()):
            raise ValueError("always lacks a special piece")


def shortlist_of(run: RunFolder, options: SearchOptions) -> Shortlist | None:
    """Return the shortlist of a run, if these options ask for it.

    Raises ConfigError if it has none, or a damaged one, and TypeError for what are no SearchOptions.
    """
    check_options(options)
    if options.shortlist != ON:
        return None
    if not run.shortlist.exists():
        raise ConfigError(
            f"shortlist is on, but {run.path} has no {run.shortlist.name}: `keras-transformer shortlist RUN --source "
            "FILE --target FILE` builds one, and --shortlist off searches without it."
        )
    return Shortlist.load(run.shortlist)


def sum_of(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of the file of a tokenizer."""
    return hashlib.sha256(tokenizer.model_bytes).hexdigest()


def build(
    lexicon: Lexicon, frequent: Sequence[int] | np.ndarray, most: int, vocab_size: int, tokenizer: str
) -> Shortlist:
    """Return the shortlist with the `most` most probable translations of each piece, and the piece itself.

    A name is often translated by its own pieces, and so is a character by its bytes. Of equally probable translations
    the first in the vocabulary are taken.

    lexicon: translations of each piece. frequent: int (any number,), pieces that every sentence may use, beside the
    special ones. tokenizer: its SHA-256.
    """
    order = np.lexsort((lexicon.targets, -lexicon.probabilities, lexicon.sources))
    sources, targets = lexicon.sources[order], lexicon.targets[order]
    ranks = np.arange(len(order)) - np.searchsorted(sources, sources)  # within the list of a piece
    is_own = sources == targets
    # a piece that is among its own best translations stays where it is; elsewhere it is added at the end of its list
    is_best = ranks < most
    has_itself = np.isin(np.arange(vocab_size), sources[is_best & is_own])
    added = np.flatnonzero(~has_itself)
    sources, targets = np.append(sources[is_best], added), np.append(targets[is_best], added)
    by_source = np.argsort(sources, kind="stable")
    counts = np.bincount(sources, minlength=vocab_size)
    always = np.union1d([PAD, UNK, BOS, EOS], frequent)
    return Shortlist(
        np.append(0, np.cumsum(counts)).astype(np.int32),
        targets[by_source].astype(np.int32),
        always.astype(np.int32),
        tokenizer,
    )
