"""Training that diverges: how it is noticed, and how a run goes back to a checkpoint and leaves that batch out."""

import collections
import logging
import math
from collections.abc import Callable

import keras

from keras_transformer.ground.errors import UserError, first_line_of

from ..config.training import TrainingConfig
from ..data.batches import ShardedBatches
from .checkpoints import CheckpointError, Checkpoints
from .progress import Progress

log = logging.getLogger("train")

REWINDS = 10  # to one checkpoint; if training diverges on more batches than that, the batches are not the cause
GENTLER = {  # by training.schedule
    "paper": "Lower training.learning_rate_factor or raise training.warmup_steps",
    "constant": "Lower training.learning_rate",
    "warmup": "Lower training.learning_rate or raise training.warmup_steps",
    "cosine": "Lower training.learning_rate or raise training.warmup_steps",
}
CONTINUE = "then run the same command again: it continues from the last checkpoint, or begins anew if there is none"
ANOTHER_MODEL = 'A Transformer with model.norm = "pre", in another run_folder, takes higher rates.'


class DivergenceError(UserError):
    """A loss, a gradient or a validation that is NaN or infinite, or a loss that explodes.

    finding: the step, its batch, and the values. The message also says what to do.
    """

    def __init__(self, finding: str, advice: str):
        super().__init__(f"{finding} {advice}")
        self.finding = finding


def has_exploded(loss: float, vocab_size: int, has_learned: bool) -> bool:
    """Return whether a loss, in nats per token, is above twice that of guessing, in a run that was once below guessing.

    Guessing gives every token the same probability and costs log(vocab_size), with label smoothing and without: 8.99
    for 8,000 tokens, so that a loss above 17.97 has exploded. A run may start above that, before it has learned.
    """
    return has_learned and loss > 2 * math.log(vocab_size)


class DivergenceCheck:
    """Raises DivergenceError for the first loss or gradient that is not finite, and for a loss that explodes.

    If gradients are scaled, as in float16, an overflow is normal, and the optimizer skips that update.

    suspected_until: updates up to this one are checked with the weights that they leave. The loss of a batch tells of
    the weights before its update, so that a batch which explodes is found only once the next one has been blamed.
    """

    def __init__(self, batches: ShardedBatches, vocab_size: int, training: TrainingConfig):
        self.batches, self.vocab_size, self.schedule = batches, vocab_size, training.schedule
        self.is_scaled = training.precision == "mixed_float16"
        self.suspected_until = 0

    def __call__(self, progress: Progress, logs: dict[str, float]) -> None:
        """Check the logs of the update that follows `progress`, which does not count it yet."""
        loss, gradient_norm = logs["loss"], logs["gradient_norm"]
        is_finite = math.isfinite(loss) and (self.is_scaled or math.isfinite(gradient_norm))
        if not is_finite or has_exploded(loss, self.vocab_size, progress.has_learned):
            raise self._error(
                progress,
                f"had a loss of {loss:.4g} and a gradient norm of {gradient_norm:.4g}, while guessing costs "
                f"{math.log(self.vocab_size):.4g}.",
            )
        progress.has_learned = progress.has_learned or loss < math.log(self.vocab_size)

    def after_update(self, progress: Progress, loss: float) -> None:
        """Check the loss that the weights have after the update that `progress` counts last."""
        if not math.isfinite(loss) or has_exploded(loss, self.vocab_size, progress.has_learned):
            raise self.of_weights(
                progress,
                f"weights with a loss of {loss:.4g} on the same rows, while guessing costs "
                f"{math.log(self.vocab_size):.4g}",
            )

    def of_validation(self, progress: Progress, finding: str) -> DivergenceError:
        """Return the error for the weights after an update, with which validation finds something that is not finite.

        `progress` counts that update, and does so no longer: a rewind leaves out its batch.
        """
        progress.step -= 1
        return self._error(progress, f"left weights with which validation fails: {finding}")

    def of_weights(self, progress: Progress, finding: str) -> DivergenceError:
        """Return the error for an update that left weights from which nobody shall go on; it counts no longer."""
        progress.step -= 1
        return self._error(progress, f"left {finding}.")

    def _error(self, progress: Progress, finding: str) -> DivergenceError:
        return DivergenceError(
            f"Step {progress.step + 1}, on batch {progress.batch} of the stream (counted from 0, of "
            f"{self.batches.rows_per_batch} rows), {finding}",
            f"Training has diverged. {GENTLER[self.schedule]}; {CONTINUE}. {ANOTHER_MODEL} If a batch is the "
            'cause, that one or one before it, training.on_divergence = "rewind" finds it and leaves it out.',
        )


def train_with_rewinds(
    train_from: Callable[[Progress], None],
    restore: Callable[[], Progress | None],
    progress: Progress,
    check_divergence: DivergenceCheck,
) -> Progress:
    """Train; whenever that diverges, go back to the last checkpoint and leave that batch out. Returns the Progress.

    train_from: trains on from a Progress, and raises DivergenceError.
    restore: loads the last checkpoint and returns its Progress.

    The updates that are done once more are each checked. If one before the batch left out proves to have exploded, its
    batch is left out, and the later ones, which were blamed for its weights, come back.

    Everything after a checkpoint is a function of it: a process that is killed after a rewind and started again
    diverges on the same batch and rewinds again. All workers see the same losses, so they rewind together.
    """
    rewinds_to = collections.Counter()  # from the step of a checkpoint
    while True:
        try:
            train_from(progress)
            return progress
        except DivergenceError as divergence:
            diverged, restored = progress, restore()
            if restored is None:
                raise CheckpointError(f"{divergence.finding} The checkpoint to go back to is gone.") from None
            progress = restored
            rewinds_to[progress.step] += 1
            if rewinds_to[progress.step] > REWINDS:
                raise too_many_rewinds(divergence, progress.step, check_divergence.schedule) from None
            check_divergence.suspected_until = max(check_divergence.suspected_until, diverged.step)
            blamed = [batch for batch in diverged.skipped if batch > diverged.batch]
            progress.skipped = sorted({*diverged.skipped, diverged.batch} - {*blamed})
            progress.seconds, progress.core_seconds = diverged.seconds, diverged.core_seconds  # spent, if in vain
            log.warning(
                "%s Going back to step %d and leaving out batch %d%s; batches left out: %d",
                divergence.finding,
                progress.step,
                diverged.batch,
                "".join(f", and batch {batch} no longer" for batch in blamed),
                len(progress.skipped),
            )


def too_many_rewinds(divergence: DivergenceError, step: int, schedule: str) -> DivergenceError:
    """The error of a run that has gone back to the checkpoint of `step` REWINDS times."""
    remove = f" If its weights are bad already, remove step-{step:08d}.npz first." if step else ""
    return DivergenceError(
        f"{divergence.finding} {REWINDS} batches have been left out since the checkpoint of step {step}.",
        f"The batches are not the cause: training has diverged. {GENTLER[schedule]}; {CONTINUE}.{remove}",
    )


def save_start(checkpoints: Checkpoints, model: keras.Model, progress: Progress) -> None:
    """Write the checkpoint of step 0: every worker begins with it, and there always is one to go back to."""
    try:
        checkpoints.save(model, model.optimizer, progress)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint of step 0, to go back to, could not be written: {first_line_of(error)} Make room, and "
            "start again."
        ) from None
