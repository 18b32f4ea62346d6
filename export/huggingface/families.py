"""The families of models that a folder for transformers can be of, and which one a run belongs to."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.tokenizer import Tokenizer

from .m2m import arrays_of_m2m, check_m2m, write_m2m
from .settings import Beside, write_beside_marian
from .weights import arrays_of, refuse_other_models


class Family(NamedTuple):
    """How models of a family are written.

    model_type: in config.json. model_class: in transformers. check: raises ExportError for what that cannot express.
    arrays: by its names. write: writes the files beside the weights. special: what its model card says of special
    pieces in a text.
    """

    model_type: str
    model_class: str
    check: Callable[[BaseModelConfig, Tokenizer], None]
    arrays: Callable[[keras.Model, Tokenizer], dict[str, np.ndarray]]
    write: Callable[[Beside], None]
    special: str


MARIAN = Family(
    "marian",
    "MarianMTModel",
    lambda config, tokenizer: refuse_other_models(config),
    lambda model, tokenizer: arrays_of(model),
    write_beside_marian,
    "`</s>`, `<unk>` and `<pad>` inside a text are special tokens to MarianTokenizer, and text to the run. It also "
    "takes\n  `>>xx<<` at the beginning of a text for the name of a language.",
)
M2M = Family(
    "m2m_100",
    "M2M100ForConditionalGeneration",
    check_m2m,
    arrays_of_m2m,
    write_m2m,
    "`</s>`, `<unk>`, `<pad>` and pieces of languages inside a text are special tokens there, and text to the run.",
)


def family_of(config: BaseModelConfig, languages: Languages) -> Family:
    """Return the family that a model is written as, which may refuse it."""
    return M2M if languages.target_first else MARIAN
