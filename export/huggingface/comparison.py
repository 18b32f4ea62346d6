"""Whether a Hugging Face folder computes what the run computes, found out without transformers."""

import logging
import pathlib

import keras

from keras_transformer.models.imported.folder import import_folder
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator

from ..certificate.agreement import TIES, ScoreComparison
from .weights import EPSILON

log = logging.getLogger("export")

OTHER_EPSILON = 0.01  # by how much a score may differ because MarianMTModel has another epsilon than the run


def compare(folder: pathlib.Path, model: keras.Model, translator: Translator, lines: list[str]) -> ScoreComparison:
    """Import the folder, and let the imported model score the run's translations of `lines` as the run does.

    An import of such a folder computes what MarianMTModel does (tests/library/test_huggingface.py). Raises ExportError
    if a score differs by more than rounding, or by more than LayerNorm's epsilon explains if it is another.
    """
    imported = import_folder(folder)
    translations = [translation.text for translation in translator.translate(lines)]
    longest = translator.max_source_tokens
    expected = Scorer(model, translator.tokenizer, max_source_tokens=longest).score(lines, translations)
    scores = Scorer(imported.transformer(), imported.tokenizer, max_source_tokens=longest).score(lines, translations)
    comparison = ScoreComparison.of(lines, (pair.score for pair in scores), (pair.score for pair in expected))
    epsilon = model.model_config.norm_epsilon
    if epsilon == EPSILON:
        comparison.refuse_beyond(TIES["float32"])
    else:
        comparison.refuse_beyond(OTHER_EPSILON)
        log.warning(
            "LayerNorm's epsilon is %s in the run and always %s in MarianMTModel: scores differ by at most %.6f",
            epsilon,
            EPSILON,
            comparison.worst,
        )
    return comparison
