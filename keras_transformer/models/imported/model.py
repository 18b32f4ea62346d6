"""An imported model, whichever format it came in: what a run folder of it needs."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.pieces.language_marks import NO_LANGUAGES, TARGET, Languages
from keras_transformer.pieces.languages import CODE
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.inference import Inference

if TYPE_CHECKING:  # it imports Keras
    from keras_transformer.model import Transformer

log = logging.getLogger("keras_transformer")


def languages_of_tags(pieces: Iterable[str], pair: Sequence[str | None]) -> Languages:
    """Return the languages of a model of Marian, whose source begins with a tag such as >>deu<< if it writes several.

    pair: the codes of both sides, as its files tell them; what is no code is not known.
    """
    source, target = ({code: ""} if code and CODE.fullmatch(code) else {} for code in pair)
    if tags := {piece[2:-2]: piece for piece in pieces if is_tag(piece)}:
        return Languages(source, tags, source_first=TARGET)
    return Languages(source, target) if source and target else NO_LANGUAGES


def is_tag(piece: str) -> bool:
    """Return whether a piece names the language to be written, as >>deu<< does."""
    return piece.startswith(">>") and piece.endswith("<<")


class ImportedModel(NamedTuple):
    """A model of another system, in the terms of this one.

    values: the weights of its Transformer, by their path.
    tokenizer: with the vocabulary of `config`.
    search: how that system searches, by fields of SearchOptions.
    kind: which system it is of.
    notes: sentences about what was chosen or left out.
    languages: which it reads and writes, and how it is told them.
    """

    config: TransformerConfig
    values: Mapping[str, np.ndarray]
    tokenizer: Tokenizer | PairTokenizer
    search: Mapping[str, Any]
    kind: str
    notes: tuple[str, ...] = ()
    languages: Languages = NO_LANGUAGES

    def transformer(self) -> "Transformer":
        """Build the Transformer with these weights, in float32."""
        from keras_transformer.model import Transformer

        transformer = Transformer(self.config, dtype="float32")
        for weight in transformer.weights:
            weight.assign(self.values[weight.path])
        return transformer

    def inference(self) -> Inference:
        """Return what its inference.json says."""
        return Inference(search=self.search, languages=self.languages)

    def log_notes(self) -> None:
        """Log what was chosen or left out, if no command does."""
        if self.notes:
            log.warning("imported, %s", "; ".join(self.notes))

    def tags(self) -> list[str]:
        """Return the pieces that name the language to be written, such as >>deu<<."""
        return list(filter(is_tag, self.tokenizer.pieces()))
