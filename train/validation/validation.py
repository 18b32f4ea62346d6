"""Validation: loss, scores and sample translations on text that the model is not trained on."""

import hashlib
import math
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.inspection.callbacks import BleuScore
from keras_transformer.inspection.samples import Sample
from keras_transformer.layers.embedding import logits_bias
from keras_transformer.losses import TokenSums, perplexity, shares, token_sums
from keras_transformer.search.options import OPTIONS
from keras_transformer.search.scores import NotFiniteError

from ..config.translation import TranslationConfig
from ..data.batches import padded_batches
from ..data.encoding import EncodedPairs, Sentences
from ..data.prepare import PreparedData
from ..data.spread import spread
from ..scoring.card import OutputScores
from ..scoring.outputs import SCORED

ROWS = 64  # sentence pairs per validation batch, at most
NORMAL_95 = 1.959964  # within so many standard errors 95 per cent of a normal distribution lie


class Validation(NamedTuple):
    """What one set of weights achieves on the validation split."""

    loss: float  # label-smoothed cross-entropy, nats per target token
    perplexity: float  # exp(negative log-likelihood per target token)
    token_accuracy: float  # share of target tokens that have the highest logit, in [0, 1]
    scores: OutputScores  # of the outputs for the sample
    samples: list[Sample]  # its sentences and the outputs for them
    perplexity_interval: tuple[float, float] | None = None  # of 95 per cent; None of a single sentence
    loss_basis: str = ""  # digest of text and loss; losses with another digest cannot be compared
    scores_basis: str = ""  # the same for the scores: digest of the sample and of the search

    def plotted(self) -> dict[str, float]:
        """All numbers for metrics.jsonl, by name."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "token_accuracy": self.token_accuracy,
            **self.scores.plotted(),
        }


class Validator:
    """Validates the transformer with the weights that it has when called.

    Loss, perplexity and accuracy are those of all pairs of the validation split that fit into a row. Scores and samples
    are those of `translation.validation_sentences` pairs at equal distances, so that every file of the split has its
    share. xla: whether the computation of the loss is compiled. most_positions: how many fit in memory at once, such as
    those of a training step.
    """

    def __init__(
        self,
        transformer: keras.Model,
        data: PreparedData,
        translation: TranslationConfig,
        xla: bool,
        most_positions: float = math.inf,
    ):
        self.pairs, self.most_positions, self.languages = data.validation, most_positions, data.languages
        self.sums_of_rows = row_sums(transformer, xla)
        split, count = data.corpus.validation, translation.validation_sentences
        texts, codes = zip(*spread(list(split.with_codes()), count), strict=True)
        self.output_scores = SCORED[data.corpus.outputs].validation(split, count)
        options = translation.search_options(translation.validation_beam_size)
        language = data.corpus.target_language
        self.bleu = BleuScore(
            transformer, data.tokenizer, texts, options, translation.batch_size, language, data.languages, codes
        )
        self.loss_basis = digest(
            *map(ids_of, (self.pairs.source, self.pairs.target)), transformer.model_config.label_smoothing
        )
        newer = {name: getattr(options, name) for name in ("coverage_penalty", "length_normalization")}
        changed = [value for name, value in newer.items() if value != OPTIONS[name].default]  # older digests have none
        search = options.beam_size, options.length_penalty, options.extra_length, *changed
        self.scores_basis = digest(self.bleu.pairs, search, language)

    def __call__(self) -> Validation:
        """Raises NotFiniteError if the loss, or what a search computes, is NaN or infinite."""
        of_pairs = sums_of_pairs(self.sums_of_rows, self.pairs, self.most_positions)
        sums = TokenSums(*of_pairs.sum(0).tolist())
        if not math.isfinite(sums.loss):
            raise NotFiniteError(f"The loss of the validation text is {sums.loss:.4g}.")
        text_scores = self.bleu.inspect()
        return Validation(
            loss=sums.loss / sums.tokens,
            perplexity=perplexity(sums.nll / sums.tokens),
            token_accuracy=sums.correct / sums.tokens,
            scores=self.output_scores(text_scores, self.bleu.samples),
            samples=self.bleu.samples,
            perplexity_interval=perplexity_interval(*TokenSums(*of_pairs.T)[1::2]),
            loss_basis=self.loss_basis,
            scores_basis=self.scores_basis,
        )


def ids_of(sentences: Sentences) -> tuple[bytes, bytes]:
    """The ids of sentences and where each of them begins, as bytes."""
    return sentences.ids.tobytes(), sentences.offsets.tobytes()


def digest(*parts: Any) -> str:
    """A short text that is the same for equal parts alone, in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def row_sums(transformer: keras.Model, xla: bool):
    """Return a compiled function from a batch to the TokenSums (B,) of its rows, without dropout, with smoothing."""
    smoothing = transformer.model_config.label_smoothing

    def sums(batch):
        logits = transformer({name: batch[name] for name in transformer.input}, training=False)
        of_classes = shares(smoothing, logits_bias(transformer))
        return token_sums(logits, batch["labels"], batch["target_segments"], of_classes, by_row=True)

    return tf.function(sums, jit_compile=xla)


def sums_of_pairs(sums_of_rows, pairs: EncodedPairs, most_positions: float) -> np.ndarray:
    """The TokenSums of every pair, in their order: float64 (pairs, 4)."""
    sums_of = np.zeros((len(pairs), len(TokenSums._fields)))
    for indices, batch in padded_batches(pairs, ROWS, most_positions=most_positions):
        sums = sums_of_rows({name: tf.constant(ids) for name, ids in batch.items()})
        sums_of[indices] = np.stack(sums, axis=1)[: len(indices)]
    return sums_of


def perplexity_interval(nll: np.ndarray, tokens: np.ndarray) -> tuple[float, float] | None:
    """The 95 per cent confidence interval of exp(sum nll / sum tokens), if the sentences are a random sample.

    nll, tokens: those of each sentence, (n,). The ratio r of two sums over n sentences has the standard error
    sqrt(n / (n - 1) sum_i (nll_i - r tokens_i)^2) / sum_i tokens_i (Cochran 1977, theorem 2.5). None for one sentence.
    """
    if len(nll) < 2:
        return None
    ratio = nll.sum() / tokens.sum()
    error = math.sqrt(len(nll) / (len(nll) - 1) * ((nll - ratio * tokens) ** 2).sum()) / tokens.sum()
    return perplexity(ratio - NORMAL_95 * error), perplexity(ratio + NORMAL_95 * error)
