"""Whether a Hugging Face folder computes what the run computes, found out without transformers."""

import logging
import pathlib
from typing import Any

import keras

from keras_transformer.models.imported.folder import import_folder
from keras_transformer.pieces.language_marks import SIDES, SOURCE
from keras_transformer.translation.scorer import ScoredPair, Scorer
from keras_transformer.translation.translator import Translator

from ..certificate.agreement import TIES, ScoreComparison

log = logging.getLogger("export")

OTHER_EPSILON = 0.01  # by how much a score may differ because the class has another epsilon than the run


def compare(folder: pathlib.Path, model: keras.Model, translator: Translator, lines: list[str]) -> ScoreComparison:
    """Import the folder, and let the imported model score the run's translations of `lines` as the run does.

    An import of such a folder computes what transformers does (tests/library/test_huggingface.py). Raises ExportError
    if a score differs by more than rounding, or by more than LayerNorm's epsilon explains if it is another.
    """
    imported, languages = import_folder(folder), translator.languages
    codes: dict[str, Any] = {}
    if languages.needs(SOURCE):
        codes = {f"{side}_language": languages.default(side) or next(iter(getattr(languages, side))) for side in SIDES}
    translations = [translation.text for translation in translator.translate(lines, **codes)]

    def scored(scorer: Scorer) -> list[ScoredPair]:
        return scorer.score(lines, translations, **codes)

    longest = translator.max_source_tokens
    expected = scored(Scorer(model, translator.tokenizer, max_source_tokens=longest, languages=languages))
    scores = scored(Scorer(imported.transformer(), imported.tokenizer, max_source_tokens=longest, languages=languages))
    comparison = ScoreComparison.of(lines, (pair.score for pair in scores), (pair.score for pair in expected))
    epsilon, written = model.model_config.norm_epsilon, imported.config.norm_epsilon
    if epsilon == written:
        comparison.refuse_beyond(TIES["float32"])
    else:
        comparison.refuse_beyond(OTHER_EPSILON)
        log.warning(
            "LayerNorm's epsilon is %s in the run and always %s in transformers: scores differ by at most %.6f",
            epsilon,
            written,
            comparison.worst,
        )
    return comparison
