"""Which weights translation shall use: the average of the last checkpoints, or the last one."""

import logging
from typing import NamedTuple

from keras_transformer.losses import perplexity
from train.loop.checkpoints import Checkpoints, assign_weights

log = logging.getLogger("train")


class Measured(NamedTuple):
    """What a set of weights achieves on the validation set; the greater tuple is the better one."""

    bleu: float  # in hundredths of a point as printed; 0 for both where references are shorter than four words
    negative_loss: float  # nats a token
    perplexity: float

    def __str__(self):
        return f"validation BLEU {self.bleu:.2f}, loss {-self.negative_loss:.4f}"


class Choice(NamedTuple):
    """What was kept in model.weights.h5, as a sentence, and what both candidates achieved."""

    sentence: str
    average: Measured
    last: Measured

    @property
    def perplexity(self):
        return max(self.average, self.last).perplexity


def choose_weights(config, folder, transformer, validation_loss, validation_text):
    """Keep the better of the two on validation (section 6.1 averages 5 checkpoints for base, 20 for big).

    The better has the higher BLEU or, where that is the same, the lower loss. Label smoothing makes the loss of an
    average, which is less sure of itself, look worse than its translations are.
    """
    checkpoints = Checkpoints(folder.checkpoints, config.training.keep_checkpoints)
    average_weights, paths = checkpoints.average(config.training.average_checkpoints)
    last_weights, _ = checkpoints.average(1)
    average = measure(transformer, average_weights, validation_loss, validation_text)
    last = measure(transformer, last_weights, validation_loss, validation_text)
    candidates = [
        (average, f"the average of the last {len(paths)} checkpoints", average_weights),
        (last, "the last checkpoint", last_weights),
    ]
    (best, kept, weights), (other, left, _) = candidates if average >= last else candidates[::-1]
    sentence = f"kept {kept}: {best}; {left}: {other}"
    log.info(sentence)
    assign_weights(transformer, weights)
    aside = folder.weights.with_name("writing.weights.h5")
    transformer.save_weights(aside)
    aside.replace(folder.weights)
    return Choice(sentence, average, last)


def measure(transformer, weights, validation_loss, validation_text):
    assign_weights(transformer, weights)
    sums, (scores, _) = validation_loss(), validation_text()
    return Measured(round(scores.bleu, 2), -sums.loss / sums.tokens, perplexity(sums.nll / sums.tokens))
