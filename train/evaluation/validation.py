"""How good the model is on text it does not train on: loss, BLEU, sample translations."""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding import SearchOptions
from keras_transformer.losses import TokenSums, token_sums
from keras_transformer.translator import Translator
from train.data.batches import padded_batches
from train.evaluation.bleu import score

ROWS = 64  # sentences of a validation batch


class Sample(NamedTuple):
    source: str
    reference: str
    translation: str


class ValidationLoss:
    """Loss and perplexity of the model, as its weights are, over all pairs of an EncodedPairs."""

    def __init__(self, model, pairs, label_smoothing, xla):
        self.pairs = pairs

        def sums(batch):
            logits = model({name: batch[name] for name in model.input}, training=False)
            return token_sums(logits, batch["labels"], batch["target_segments"], label_smoothing)

        self.sums = tf.function(sums, jit_compile=xla)

    def __call__(self):
        """Returns TokenSums of floats over the whole set."""
        totals = [0.0] * len(TokenSums._fields)
        for _, batch in padded_batches(self.pairs, ROWS):
            sums = self.sums({name: tf.constant(ids) for name, ids in batch.items()})
            totals = [total + float(value) for total, value in zip(totals, sums, strict=True)]
        return TokenSums(*totals)


class ValidationText:
    """BLEU and samples of the model, as its weights are, over the first pairs of a split."""

    def __init__(self, transformer, tokenizer, split, settings, xla):
        pairs = [pair for pair, _ in zip(split, range(settings.validation_sentences), strict=False)]
        self.sources, self.references = [source for source, _ in pairs], [target for _, target in pairs]
        options = SearchOptions(beam_size=settings.validation_beam_size, length_penalty=settings.length_penalty)
        self.translator = Translator(transformer, tokenizer, options, settings.batch_size, xla=xla)

    def __call__(self):
        """Returns Scores, and a Sample of every sentence."""
        translations = [translation.text for translation in self.translator.translate(self.sources)]
        samples = [Sample(*texts) for texts in zip(self.sources, self.references, translations, strict=True)]
        return score(translations, self.references), samples
