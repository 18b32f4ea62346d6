"""The vocabulary of an imported model, in the order of ids that models have here, and the rows of its matrices.

Imported models have their special pieces anywhere; here PAD, UNK, BOS and EOS come first (tokens.py). Marian's have
neither PAD nor BOS: their decoder begins with an embedding of zeros. Hugging Face's have a <pad>, which their decoder
begins with.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models.imported.errors import ImportedModelError

NAMES = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}  # of the special ids here
NO_ROW = -1


class Vocabulary(NamedTuple):
    """The pieces of a side by their ids in the imported model, and which ids are special.

    start: the id with whose embedding the decoder begins; None: with zeros.
    scores_pad: whether <pad> is among the classes of the logits.
    """

    pieces: Sequence[str]
    unk: int
    eos: int
    pad: int | None = None
    start: int | None = None
    scores_pad: bool = True

    @classmethod
    def of_pieces(cls, pieces: Sequence[str], path: object, **ids: int) -> "Vocabulary":
        """Find the special pieces by name, but for those whose ids are given; `path` is what an error names.

        Raises ImportedModelError if there is no <unk> or </s>, or an id is beyond the vocabulary.
        """
        named = {"unk": NAMES[UNK], "eos": NAMES[EOS]}
        for name, piece in named.items():
            if name not in ids:
                if piece not in pieces:
                    raise ImportedModelError(f"{path} has no piece {piece}, which every model needs.")
                ids[name] = pieces.index(piece)
        for number in ids.values():
            if not 0 <= number < len(pieces):
                raise ImportedModelError(f"{path} has {len(pieces):,} pieces: there is none with the id {number}.")
        return cls(pieces, ids["unk"], ids["eos"], ids.get("pad"), ids.get("start"))

    def special(self) -> set[int | None]:
        """Return the ids of pieces that have a place of their own here."""
        return {self.unk, self.eos, self.pad, self.own_start}

    @property
    def own_start(self) -> int | None:
        """The id of a piece <s> that the decoder begins with: it is BOS. Any other first piece is also itself."""
        if self.start in (None, self.unk, self.eos, self.pad) or self.pieces[self.start] != NAMES[BOS]:
            return None
        return self.start

    def inputs(self, pieces: Sequence[str]) -> np.ndarray:
        """Return for each of these pieces, by ids here, the row that embeds it: that of <unk> if it is not known."""
        return self._rows(pieces, self.unk, {PAD: self.pad, BOS: self.start})

    def labels(self, pieces: Sequence[str]) -> np.ndarray:
        """Return for each of these pieces, by ids here, the row that scores it; NO_ROW if it cannot be written."""
        return self._rows(pieces, None, {PAD: self.pad if self.scores_pad else None, BOS: self.own_start})

    def _rows(self, pieces: Sequence[str], unknown: int | None, special: dict[int, int | None]) -> np.ndarray:
        special = {UNK: self.unk, EOS: self.eos, **special}
        places = {name: number for number, name in enumerate(self.pieces) if number not in self.special()}
        rows = [special[number] for number in range(len(NAMES))]
        rows += [places.get(original(piece), unknown) for piece in pieces[len(NAMES) :]]
        return np.array([NO_ROW if row is None else row for row in rows])


def pieces_here(source: Vocabulary, target: Vocabulary) -> list[str]:
    """Return the pieces of both sides by their ids here: special ones, those of the source, others of the target."""
    rest = {}
    for side in (source, target):
        rest |= {renamed(piece): None for number, piece in enumerate(side.pieces) if number not in side.special()}
    return [NAMES[number] for number in range(len(NAMES))] + list(rest)


def renamed(piece: str) -> str:
    """Return the name here of a piece that is not special in the imported model: another one if it is special here."""
    return f"{piece}'" if piece.rstrip("'") in NAMES.values() else piece


def original(piece: str) -> str:
    """The inverse of `renamed`."""
    return piece[:-1] if piece.endswith("'") and piece.rstrip("'") in NAMES.values() else piece
