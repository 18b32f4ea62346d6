"""Which weights translation shall use: the average of the last checkpoints, or the last one."""

import logging
import math
from typing import NamedTuple

from train.checkpoints import Checkpoints, assign_weights

log = logging.getLogger("train")


class Choice(NamedTuple):
    """What was kept in model.weights.h5, and the validation losses (nats a token) that decided it."""

    sentence: str
    average_loss: float
    last_loss: float
    perplexity: float  # of what was kept, on the validation set


def choose_weights(config, folder, transformer, validation_loss):
    """Keep the better of the two on validation (section 6.1 averages 5 checkpoints for base, 20 for big)."""
    checkpoints = Checkpoints(folder.checkpoints, config.training.keep_checkpoints)
    last, paths = checkpoints.average(1)
    last_sums = measure(transformer, last, validation_loss)
    average, paths = checkpoints.average(config.training.average_checkpoints)
    average_sums = measure(transformer, average, validation_loss)
    losses = [sums.loss / sums.tokens for sums in (average_sums, last_sums)]
    is_average_better = losses[0] <= losses[1]
    names = f"the average of the last {len(paths)} checkpoints", "the last checkpoint"
    kept, other = names if is_average_better else names[::-1]
    sentence = f"kept {kept}: validation loss {min(losses):.4f}; {other}: {max(losses):.4f}"
    log.info(sentence)
    assign_weights(transformer, average if is_average_better else last)
    aside = folder.weights.with_name("writing.weights.h5")
    transformer.save_weights(aside)
    aside.replace(folder.weights)
    best = average_sums if is_average_better else last_sums
    return Choice(sentence, *losses, math.exp(min(best.nll / best.tokens, 700.0)))


def measure(transformer, weights, validation_loss):
    assign_weights(transformer, weights)
    return validation_loss()
