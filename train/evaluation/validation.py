"""Validation: loss, scores and sample translations on text that the model is not trained on."""

import math
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.inspection.bleu import Scores
from keras_transformer.inspection.callbacks import BleuScore
from keras_transformer.inspection.samples import Sample
from keras_transformer.losses import TokenSums, perplexity, token_sums
from train.config import TranslationConfig
from train.data.batches import padded_batches
from train.data.encoding import EncodedPairs
from train.data.prepare import Data
from train.evaluation.brackets import BracketingScores, bracketing_scores
from train.evaluation.spread import spread

ROWS = 64  # sentence pairs per validation batch


class Validation(NamedTuple):
    """What one set of weights achieves on the validation split."""

    loss: float  # label-smoothed cross-entropy, nats per target token
    perplexity: float  # exp(negative log-likelihood per target token)
    token_accuracy: float  # share of target tokens that have the highest logit, in [0, 1]
    scores: Scores  # of the translations of the sample
    samples: list[Sample]  # its sentences and their translations
    brackets: BracketingScores | None = None  # of the trees that these translations are; None if they are no trees

    @property
    def quality(self) -> float:
        """What decides first which weights are better: BLEU, or F1 of the brackets of trees."""
        return self.scores.bleu if self.brackets is None else self.brackets.f1.value

    @property
    def quality_text(self) -> str:
        """The same as logs show it."""
        return f"BLEU {self.scores.bleu_text}" if self.brackets is None else f"F1 {self.brackets.f1}"

    def plotted(self) -> dict[str, float]:
        """All numbers for metrics.jsonl, by name."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "token_accuracy": self.token_accuracy,
            **self.scores.plotted(),
            **(self.brackets.plotted() if self.brackets else {}),
        }


class Validator:
    """Validates the transformer with the weights that it has when called.

    Loss, perplexity and accuracy are of all pairs of the validation split; scores and samples of
    `translation.validation_sentences` of them at equal distances, so that of several files each has its part. `xla`:
    compile the computation of the loss. most_positions: that fit in memory at once, such as those of a training step.
    """

    def __init__(
        self,
        transformer: keras.Model,
        data: Data,
        translation: TranslationConfig,
        xla: bool,
        most_positions: float = math.inf,
    ):
        self.pairs, self.most_positions = data.validation, most_positions
        self.sums_of_batch = batch_sums(transformer, xla)
        texts = spread(list(data.corpus.validation), translation.validation_sentences)
        self.trees = spread(data.corpus.validation.trees or [], translation.validation_sentences)
        options = translation.search_options(translation.validation_beam_size)
        language = data.corpus.target_language
        self.bleu = BleuScore(transformer, data.tokenizer, texts, options, translation.batch_size, language)

    def __call__(self) -> Validation:
        sums = total_sums(self.sums_of_batch, self.pairs, self.most_positions)
        scores = self.bleu.inspect()
        return Validation(
            loss=sums.loss / sums.tokens,
            perplexity=perplexity(sums.nll / sums.tokens),
            token_accuracy=sums.correct / sums.tokens,
            scores=scores,
            samples=self.bleu.samples,
            brackets=self.brackets(),
        )

    def brackets(self) -> BracketingScores | None:
        """The scores of the latest translations as trees; None if the text is no treebank."""
        if not self.trees:
            return None
        return bracketing_scores(self.trees, [sample.translation for sample in self.bleu.samples])


def batch_sums(transformer: keras.Model, xla: bool):
    """A compiled function from a batch to its TokenSums, without dropout, smoothed as the training loss is."""
    smoothing = transformer.model_config.label_smoothing

    def sums(batch):
        logits = transformer({name: batch[name] for name in transformer.input}, training=False)
        return token_sums(logits, batch["labels"], batch["target_segments"], smoothing)

    return tf.function(sums, jit_compile=xla)


def total_sums(sums_of_batch, pairs: EncodedPairs, most_positions: float = math.inf) -> TokenSums:
    """The sum of `sums_of_batch` over all pairs, as TokenSums of Python floats."""
    totals = [0.0] * len(TokenSums._fields)
    for _, batch in padded_batches(pairs, ROWS, most_positions=most_positions):
        sums = sums_of_batch({name: tf.constant(ids) for name, ids in batch.items()})
        totals = [total + float(value) for total, value in zip(totals, sums, strict=True)]
    return TokenSums(*totals)
