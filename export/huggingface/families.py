"""The families of models that a folder for transformers can be of, and which one a run belongs to."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.tokenizer import Tokenizer

from .m2m import arrays_of_m2m, check_m2m, write_m2m
from .mbart import NORM, arrays_of_mbart, check_mbart, write_mbart
from .settings import Beside, write_beside_marian
from .t5 import arrays_of_t5, check_t5, write_t5
from .weights import EPSILON, POSITIONS, arrays_of, refuse_other_models


class Family(NamedTuple):
    """How models of a family are written.

    model_type: in config.json. model_class: in transformers. check: raises ExportError for what that cannot express.
    arrays: by its names. write: writes the files beside the weights. special: what its model card says of special
    pieces in a text. epsilon: of all its norms; None: config.json tells it. positions: of its longest text, if
    config.json tells none; None: it has no limit.
    """

    model_type: str
    model_class: str
    check: Callable[[BaseModelConfig, Tokenizer], None]
    arrays: Callable[[keras.Model, Tokenizer, Languages], dict[str, np.ndarray]]
    write: Callable[[Beside], None]
    special: str
    epsilon: float | None = EPSILON
    positions: int | None = POSITIONS


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
T5 = Family(
    "t5",
    "T5ForConditionalGeneration",
    check_t5,
    lambda model, tokenizer, languages: arrays_of_t5(model, tokenizer),
    write_t5,
    "`</s>`, `<unk>`, `<pad>` and `<extra_id_0>` inside a text are special tokens there, and text to the run.\n"
    "  T5Tokenizer of transformers 5 makes `<unk>` of a character without a piece, which the run reads byte by byte if "
    "its\n  vocabulary has bytes.",
    epsilon=None,
    positions=None,
)
BART = MBART._replace(model_type="bart", model_class="BartForConditionalGeneration")


def family_of(config: BaseModelConfig, languages: Languages) -> Family:
    """Return the family that a model is written as, which may refuse it."""
    if getattr(config, "positions", "") == "relative":
        return T5
    if not (languages.target_first or languages.source_last):
        return MARIAN
    if getattr(config, "positions", "") != "learned":
        return M2M
    return BART if getattr(config, "norm", "") == NORM["bart"] else MBART
