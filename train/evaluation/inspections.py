"""What looks at the model after each validation: sample translations, and attention in a few short sentences."""

import logging
from collections.abc import Callable, Iterable

from keras_transformer.inspection.callbacks import AttentionPictures, Inspection, SampleTranslations
from keras_transformer.model import Transformer
from keras_transformer.tokenizer import Tokenizer
from train.config import TrainingConfig
from train.evaluation.validation import Validator
from train.loop.metrics_log import MetricsLog

log = logging.getLogger("train")

SHORT = 16  # pieces of a side, EOS included, so that a picture of all heads can be read


def inspections_of(
    training: TrainingConfig, transformer: Transformer, tokenizer: Tokenizer, validator: Validator
) -> Callable[[MetricsLog], list[Inspection]]:
    """Return what makes the inspections that write to a log: once per process, and once more after each rewind."""

    def inspections(metrics: MetricsLog) -> list[Inspection]:
        made = [SampleTranslations(validator.bleu, metrics)]
        if pairs := short_pairs(validator.bleu.pairs, tokenizer, training.picture_sentences):
            made.append(AttentionPictures(transformer, tokenizer, pairs, metrics))
        elif training.picture_sentences:
            log.info("no pictures of attention: no validated sentence pair has at most %d pieces per side", SHORT)
        return made

    return inspections


def short_pairs(pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, count: int) -> list[tuple[str, str]]:
    """Return the first `count` pairs of which neither side has more than SHORT pieces; fewer if there are fewer."""
    found = []
    for pair in pairs:
        if len(found) == count:
            break
        if all(len(ids) < SHORT for ids in tokenizer.encode_batch(pair)):
            found.append(pair)
    return found
