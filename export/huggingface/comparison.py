"""Whether a Hugging Face folder computes what the run computes, found out without transformers."""

import logging
import pathlib
from typing import Any

import keras
import numpy as np

from keras_transformer.models.imported.folder import import_folder
from keras_transformer.pieces.language_marks import SIDES, SOURCE
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator

from ..certificate.agreement import TIES, ScoreComparison

log = logging.getLogger("export")

OTHER_EPSILON = 0.01  # by how much a score may differ because the class has another epsilon than the run
MOST_ROUNDING = 0.01  # by how much it may differ in a model that amplifies the last bits of its weights
LAST_BITS = 4  # times what moving every weight by its last bit changes


def compare(folder: pathlib.Path, model: keras.Model, translator: Translator, lines: list[str]) -> ScoreComparison:
    """Import the folder, and let the imported model score the run's translations of `lines` as the run does.

    An import of such a folder computes what transformers does (tests/library/test_huggingface.py). Raises ExportError
    if a score differs by more than rounding, or by more than LayerNorm's epsilon explains if it is another. How much
    rounding changes depends on the model: a folder has an embedding divided by sqrt(d_model), which float32 does not
    hold to the last bit, and large weights amplify that. So a difference is compared with what the last bits change.
    """
    imported, languages = import_folder(folder), translator.languages
    codes: dict[str, Any] = {}
    if languages.needs(SOURCE):
        codes = {f"{side}_language": languages.default(side) or next(iter(getattr(languages, side))) for side in SIDES}
    translations = [translation.text for translation in translator.translate(lines, **codes)]

    def scored(model: keras.Model, tokenizer: Tokenizer) -> list[float]:
        scorer = Scorer(model, tokenizer, max_source_tokens=translator.max_source_tokens, languages=languages)
        return [pair.score for pair in scorer.score(lines, translations, **codes)]

    other = imported.transformer()
    scores = scored(other, imported.tokenizer)
    comparison = ScoreComparison.of(lines, scores, scored(model, translator.tokenizer))
    epsilon, written = model.model_config.norm_epsilon, imported.config.norm_epsilon
    if epsilon == written:
        tie = TIES["float32"]
        if not comparison.share < tie:
            move_last_bits(other)
            of_last_bits = ScoreComparison.of(lines, scored(other, imported.tokenizer), scores)
            tie = max(tie, min(LAST_BITS * of_last_bits.share, MOST_ROUNDING))
        comparison.refuse_beyond(tie)
    else:
        comparison.refuse_beyond(OTHER_EPSILON)
        log.warning(
            "LayerNorm's epsilon is %s in the run and always %s in transformers: scores differ by at most %.6f",
            epsilon,
            written,
            comparison.worst,
        )
    return comparison


def move_last_bits(model: keras.Model) -> None:
    """Replace every weight by the next larger number."""
    for weight in model.weights:
        weight.assign(np.nextafter(np.asarray(weight), np.float32(np.inf)))
