"""The end of a run: which attention aligns words best."""

import itertools
import logging
from collections.abc import Sequence

import keras

from keras_transformer.runs.aligned_by import LAST_BUT_ONE
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.alignment_choice import MOST_PAIRS, Rate, adopt_best, error_rates
from keras_transformer.translation.translator import Translator

from ..data.prepare import PreparedData

log = logging.getLogger("train")


def choose_alignment(folder: RunFolder, data: PreparedData, transformer: keras.Model, is_guided: bool) -> None:
    """Write into inference.json which attention of the transformer aligns words, as `keras-transformer align` does.

    If too few words certainly translate each other, as in text without spaces, it stays as it is.

    is_guided: an attention was taught to, and is taken.
    """
    told = list(itertools.islice(data.corpus.train.with_codes(), MOST_PAIRS))
    greedy = SearchOptions(beam_size=1)
    translator = Translator(transformer, data.tokenizer, greedy, languages=data.languages)
    codes = [of_pair for _, of_pair in told] if data.languages.are_told else ()
    rates = error_rates(translator, [pair for pair, _ in told], codes)
    if not (rates := eligible(rates, translator.attentions, is_guided)):
        return
    best = adopt_best(folder, rates)
    log.info(
        "words are aligned by decoder block %d in the step that %s them: %.1f per cent of %d certain links are missed",
        best.aligned_by.block,
        "reads" if best.aligned_by.reads else "writes",
        100 * best.error,
        best.links,
    )


def eligible(rates: Sequence[Rate], attentions: int, is_guided: bool) -> list[Rate]:
    """Return the rates among which to choose, of a model with so many blocks that attend to the source."""
    taught = LAST_BUT_ONE.in_model(attentions)
    return [rate for rate in rates if rate.aligned_by == taught or not is_guided]
