"""The families of models that a folder for transformers can be of, and which one a run belongs to."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

from keras_transformer.model_config import BaseModelConfig
from keras_transformer.models.imported import t5
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.tokenizer import Tokenizer

from ..versions import ExportError
from .m2m import arrays_of_m2m, check_m2m, write_m2m
from .mbart import NORM, arrays_of_mbart, check_mbart, write_mbart
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
    arrays: Callable[[keras.Model, Tokenizer, Languages], dict[str, np.ndarray]]
    write: Callable[[Beside], None]
    special: str


MARIAN = Family(
    "marian",
    "MarianMTModel",
    lambda config, tokenizer: refuse_other_models(config),
    lambda model, tokenizer, languages: arrays_of(model),
    write_beside_marian,
    "`</s>`, `<unk>` and `<pad>` inside a text are special tokens to MarianTokenizer, and text to the run. It also "
    "takes\n  `>>xx<<` at the beginning of a text for the name of a language.",
)
SPECIAL_OF_FAIRSEQ = (
    "`</s>`, `<unk>`, `<pad>` and pieces of languages inside a text are special tokens there, and text to the run."
)
M2M = Family(
    "m2m_100",
    "M2M100ForConditionalGeneration",
    check_m2m,
    lambda model, tokenizer, languages: arrays_of_m2m(model, tokenizer),
    write_m2m,
    SPECIAL_OF_FAIRSEQ,
)
MBART = Family("mbart", "MBartForConditionalGeneration", check_mbart, arrays_of_mbart, write_mbart, SPECIAL_OF_FAIRSEQ)
BART = MBART._replace(model_type="bart", model_class="BartForConditionalGeneration")


def family_of(config: BaseModelConfig, languages: Languages) -> Family:
    """Return the family that a model is written as, which may refuse it.

    Raises ExportError for a model with the function of T5, which cannot be written.
    """
    if all(getattr(config, field, None) == value for field, value in t5.FUNCTION.items()):
        raise ExportError(
            "This run is a model of the T5 family (T5, mT5, MADLAD-400, ByT5), which --format huggingface does not "
            "write: export it with --format saved_model or litert."
        )
    if not (languages.target_first or languages.source_last):
        return MARIAN
    if getattr(config, "positions", "") != "learned":
        return M2M
    return BART if getattr(config, "norm", "") == NORM["bart"] else MBART
