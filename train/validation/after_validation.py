"""What looks at the model after each validation: translations, the residual stream, attention in a few sentences."""

import itertools
import logging
from collections.abc import Callable, Iterable

import keras
import numpy as np

from keras_transformer.inspection.callbacks import AttentionPictures, Inspection, SampleTranslations
from keras_transformer.inspection.residual_stream import ResidualStream
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.run import RunConfig
from ..config.training import RowLengths, TrainingConfig
from ..data.batches import Batch, lay_out
from ..data.encoding import EncodedPairs
from ..data.packing import Packing
from ..data.prepare import PreparedData
from ..loop.metrics_log import MetricsLog
from .validation import Validator

log = logging.getLogger("train")

MEASURED = 8  # sentence pairs on which the residual stream is measured: the first ones of the validation text
SHORT = 16  # pieces of a side, EOS included, so that a picture of all heads can be read


def validation_of(
    config: RunConfig, transformer: keras.Model, data: PreparedData, replicas: int
) -> tuple[Validator, Callable[[MetricsLog], list[Inspection]]]:
    """The validator of a run, and its `inspections_of`."""
    training = config.training
    most_positions = training.positions_at_once(replicas)
    validator = Validator(transformer, data, config.translation, training.xla, most_positions)
    return validator, inspections_of(training, transformer, data.tokenizer, validator)


def inspections_of(
    training: TrainingConfig, transformer: keras.Model, tokenizer: Tokenizer, validator: Validator
) -> Callable[[MetricsLog], list[Inspection]]:
    """Return a function from a log to the inspections that write to it: called once, and again after each rewind."""

    def inspections(metrics: MetricsLog) -> list[Inspection]:
        first_pairs = one_pair_per_row(validator.pairs, MEASURED)
        inspected = [SampleTranslations(validator.bleu, metrics)]
        if transformer.model_config.kind == "transformer":
            inspected.append(ResidualStream(transformer, first_pairs, metrics))
        if not transformer.model_config.memory_attentions:
            return inspected
        if pairs := short_pairs(validator.bleu.pairs, tokenizer, training.picture_sentences):
            codes = [validator.bleu.codes[validator.bleu.pairs.index(pair)] for pair in pairs]
            inspected.append(AttentionPictures(transformer, tokenizer, pairs, metrics, validator.languages, codes))
        elif training.picture_sentences:
            log.info("no pictures of attention: no validated sentence pair has at most %d pieces per side", SHORT)
        return inspected

    return inspections


def one_pair_per_row(pairs: EncodedPairs, count: int) -> Batch:
    """Return the first `count` pairs, or all if there are fewer, as a Batch that is as long as the longest."""
    numbers = np.arange(min(count, len(pairs)))
    longest = (int(side.lengths[numbers].max()) for side in (pairs.source, pairs.target))
    return lay_out(pairs, Packing(numbers, np.arange(len(numbers) + 1)), RowLengths(*longest))


def short_pairs(pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, count: int) -> list[tuple[str, str]]:
    """Return the first `count` pairs whose sides both have at most SHORT pieces, or fewer if there are no more."""

    def is_short(pair: tuple[str, str]) -> bool:
        source, target = pair
        return max(len(tokenizer.encode(source)), len(tokenizer.encode_target(target))) < SHORT

    return list(itertools.islice(filter(is_short, pairs), count))
