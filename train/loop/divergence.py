"""Training that diverges: how it is noticed, and how a run goes back and leaves the batch out that did it."""

import dataclasses
import logging
import math

import keras

from keras_transformer.errors import UserError
from train.loop.checkpoints import CheckpointError

log = logging.getLogger("train")

REWINDS = 10  # to one checkpoint; where training diverges on more batches than that, it is not the batches
GENTLER = 'Lower training.learning_rate_factor, raise training.warmup_steps, or try model.norm = "pre"'


class DivergenceError(UserError):
    """A loss or gradient that is no number any more, or a loss that explodes.

    `finding`: when, on which batch, and what was seen. The message also says what to do.
    """

    def __init__(self, finding, advice):
        super().__init__(f"{finding} {advice}")
        self.finding = finding


def has_exploded(loss, vocab_size, has_learned):
    """Whether a loss, in nats a token, is above twice what guessing costs, in a run that was once below guessing.

    To guess, to give every token the same probability, costs log(vocab_size), with label smoothing and without. A run
    may well begin above that: for 8,000 tokens guessing costs 8.99, and what is above 17.97 has exploded.
    """
    return has_learned and loss > 2 * math.log(vocab_size)


class StopOnDivergence(keras.callbacks.Callback):
    """Ends `fit` at the first loss or gradient that is not finite, and at a loss that explodes: a DivergenceError.

    Stands before SaveCheckpoints, so that no checkpoint keeps the weights of that step. `batches`: PackedBatches.
    `is_scaled`: gradients are scaled, as in float16; then a single overflow is skipped by the optimizer, and normal.
    """

    def __init__(self, progress, batches, vocab_size, is_scaled):
        super().__init__()
        self.progress, self.batches, self.vocab_size, self.is_scaled = progress, batches, vocab_size, is_scaled

    def on_train_batch_end(self, batch, logs=None):
        loss, norm = float(logs["loss"]), float(logs["gradient_norm"])
        is_finite = math.isfinite(loss) and (self.is_scaled or math.isfinite(norm))
        if not is_finite or has_exploded(loss, self.vocab_size, self.progress.has_learned):
            raise DivergenceError(
                self._finding(loss, norm),
                f"Training has diverged; the last checkpoint is from before. {GENTLER}; then start again to go on from "
                'that checkpoint. Where it is the batch, training.on_divergence = "rewind" goes on without it.',
            )
        self.progress.has_learned |= loss < math.log(self.vocab_size)

    def _finding(self, loss, norm):
        number, rows = self.progress.batch, self.batches.rows_per_batch
        epoch, batch_of_epoch = divmod(number, self.batches.steps_per_epoch)
        return (
            f"Step {self.progress.step + 1}, on batch {number} of the stream (counted from 0; epoch {epoch}, {rows} "
            f"rows from row {batch_of_epoch * rows} on), had a loss of {loss:.4g} and a gradient norm of {norm:.4g}, "
            f"where to guess costs {math.log(self.vocab_size):.4g}."
        )


def train_with_rewinds(train_from, restored, progress):
    """Train, and where that diverges, go back to the last checkpoint and leave that batch out of the stream.

    `train_from`: function from a Progress that trains on from there, and raises DivergenceError. `restored`: function
    that loads the last checkpoint and returns its Progress. Returns the Progress at the end. What happens after a
    checkpoint is a function of it: a process that is killed after a rewind and started again diverges on the same
    batch, and rewinds again. Of several workers all see the same losses, and so rewind together.
    """
    while True:
        try:
            train_from(progress)
            return progress
        except DivergenceError as divergence:
            progress = rewind(restored, progress, divergence)


def save_start(checkpoints, model, progress):
    """Write the checkpoint of step 0, so that there always is one to go back to."""
    try:
        checkpoints.save(progress.step, model, model.optimizer, dataclasses.asdict(progress))
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint of step 0, to go back to, could not be written: {error}. Make room, and start again."
        ) from None


def rewind(restored, diverged, divergence):
    """Load the last checkpoint. Returns its Progress, with the batch at which `diverged` stands left out as well.

    Raises DivergenceError if that would leave out more than REWINDS batches since that checkpoint.
    """
    if (progress := restored()) is None:
        raise CheckpointError(f"{divergence.finding} There is no checkpoint any more to go back to.")
    skipped = sorted([*diverged.skipped, diverged.batch])
    if len(skipped) - len(progress.skipped) > REWINDS:
        remove = f" If its weights are bad already, remove step-{progress.step:08d}.npz first." if progress.step else ""
        raise DivergenceError(
            f"{divergence.finding} {REWINDS} batches have been left out since the checkpoint of step {progress.step}.",
            f"It is not the batches: training has diverged. {GENTLER}; then start again to go on from that checkpoint."
            f"{remove}",
        )
    log.warning(
        "%s Going back to step %d, and on without batch %d; batches left out: %d",
        divergence.finding, progress.step, diverged.batch, len(skipped),
    )  # fmt: skip
    progress.skipped = skipped
    return progress
