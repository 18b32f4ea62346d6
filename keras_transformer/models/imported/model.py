"""An imported model, whichever format it came in: what a run folder of it needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.inference import Inference

if TYPE_CHECKING:  # it imports Keras
    from keras_transformer.model import Transformer


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

    def tags(self) -> list[str]:
        """Return the pieces that name the language to be written, such as >>deu<<."""
        return [piece for piece in self.tokenizer.pieces() if piece.startswith(">>") and piece.endswith("<<")]
