"""Validation: loss, scores and sample translations on text that the model is not trained on."""

import itertools
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.config import SearchOptions
from keras_transformer.losses import TokenSums, perplexity, token_sums
from keras_transformer.translator import Translator
from train.config import TranslationConfig
from train.data.batches import padded_batches
from train.data.encoding import EncodedPairs
from train.data.prepare import Data
from train.evaluation.bleu import Scores, score

ROWS = 64  # sentence pairs per validation batch


class Sample(NamedTuple):
    """One sentence of the validation text, its reference, and what the model makes of it."""

    source: str
    reference: str
    translation: str


class Validation(NamedTuple):
    """What one set of weights achieves on the validation split."""

    loss: float  # label-smoothed cross-entropy, nats per target token
    perplexity: float  # exp(negative log-likelihood per target token)
    token_accuracy: float  # share of target tokens that have the highest logit, in [0, 1]
    scores: Scores  # of the translations of the first sentences
    samples: list[Sample]  # those sentences and their translations


class Validator:
    """Validates the transformer with the weights that it has when called.

    Loss, perplexity and accuracy are of all pairs of the validation split; scores and samples of its first
    `translation.validation_sentences`. `xla`: compile the computation of the loss.
    """

    def __init__(self, transformer: keras.Model, data: Data, translation: TranslationConfig, xla: bool):
        self.pairs = data.validation
        self.sums_of_batch = batch_sums(transformer, xla)
        self.texts = list(itertools.islice(data.corpus.validation, translation.validation_sentences))
        options = SearchOptions(translation.validation_beam_size, translation.length_penalty)
        self.translator = Translator(transformer, data.tokenizer, options, translation.batch_size, precision=None)

    def __call__(self) -> Validation:
        sums = total_sums(self.sums_of_batch, self.pairs)
        samples = translate_pairs(self.translator, self.texts)
        _, references, translations = zip(*samples, strict=True)
        return Validation(
            loss=sums.loss / sums.tokens,
            perplexity=perplexity(sums.nll / sums.tokens),
            token_accuracy=sums.correct / sums.tokens,
            scores=score(translations, references),
            samples=samples,
        )


def translate_pairs(translator: Translator, pairs: list[tuple[str, str]]) -> list[Sample]:
    """Translate the source of each (source, reference). Returns one Sample per pair."""
    translations = translator.translate([source for source, _ in pairs])
    return [Sample(*pair, translation.text) for pair, translation in zip(pairs, translations, strict=True)]


def batch_sums(transformer: keras.Model, xla: bool):
    """A compiled function from a batch to its TokenSums, without dropout, smoothed as the training loss is."""
    smoothing = transformer.transformer_config.label_smoothing

    def sums(batch):
        logits = transformer({name: batch[name] for name in transformer.input}, training=False)
        return token_sums(logits, batch["labels"], batch["target_segments"], smoothing)

    return tf.function(sums, jit_compile=xla)


def total_sums(sums_of_batch, pairs: EncodedPairs) -> TokenSums:
    """The sum of `sums_of_batch` over all pairs, as TokenSums of Python floats."""
    totals = [0.0] * len(TokenSums._fields)
    for _, batch in padded_batches(pairs, ROWS):
        sums = sums_of_batch({name: tf.constant(ids) for name, ids in batch.items()})
        totals = [total + float(value) for total, value in zip(totals, sums, strict=True)]
    return TokenSums(*totals)
