"""Validation: loss, scores and sample translations on text that the model is not trained on."""

import itertools
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.config import SearchOptions
from keras_transformer.inspection.bleu import Scores
from keras_transformer.inspection.callbacks import BleuScore
from keras_transformer.inspection.samples import Sample
from keras_transformer.losses import TokenSums, perplexity, token_sums
from train.config import TranslationConfig
from train.data.batches import padded_batches
from train.data.encoding import EncodedPairs
from train.data.prepare import Data

ROWS = 64  # sentence pairs per validation batch


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
        texts = itertools.islice(data.corpus.validation, translation.validation_sentences)
        options = SearchOptions(translation.validation_beam_size, translation.length_penalty)
        self.bleu = BleuScore(transformer, data.tokenizer, texts, options, translation.batch_size)

    def __call__(self) -> Validation:
        sums = total_sums(self.sums_of_batch, self.pairs)
        scores = self.bleu.inspect()
        return Validation(
            loss=sums.loss / sums.tokens,
            perplexity=perplexity(sums.nll / sums.tokens),
            token_accuracy=sums.correct / sums.tokens,
            scores=scores,
            samples=self.bleu.samples,
        )


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
