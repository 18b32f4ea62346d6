"""The steps of a run, from the last checkpoint to the last step."""

import contextlib
import logging

from train import callbacks
from train.batches import training_dataset
from train.callbacks import Progress, duration
from train.checkpoints import Checkpoints
from train.divergence import StopOnDivergence, train_with_rewinds
from train.interruption import Interrupted, StopRequest
from train.metrics import MetricsLog

log = logging.getLogger("train")


def fit(config, folder, data, model, validation_loss, validation_text):
    """Train from the last checkpoint, if there is one, to the last step. Returns the Progress.

    Raises DivergenceError, CheckpointError, and Interrupted where it was asked to stop before the last step.
    """
    training = config.training
    checkpoints = Checkpoints(folder.checkpoints, training.keep_checkpoints)
    progress = Progress(**(checkpoints.restore_latest(model, model.optimizer) or {}))
    if progress.step:
        log.info("going on from the checkpoint of step %d", progress.step)
    if progress.step >= training.steps:
        log.info("all %d steps are done", training.steps)
        return progress
    compilation = callbacks.LogCompilation(data.batches)
    steps, is_scaled = training.steps, training.precision == "mixed_float16"

    def train_from(progress):
        """Until the last step or a StopRequest; counts on in `progress`."""
        with contextlib.closing(MetricsLog(folder, progress.step)) as metrics:
            model.fit(
                training_dataset(data.batches, progress.step, steps, tuple(progress.skipped)),
                steps_per_epoch=steps - progress.step,  # one "epoch" of Keras: ours are the data's, in `batches`
                shuffle=False,
                verbose=0,
                callbacks=[
                    compilation,
                    StopOnDivergence(progress, data.batches, data.tokenizer.vocab_size, is_scaled),
                    callbacks.LogProgress(progress, metrics, steps, training.log_every),
                    callbacks.Validate(
                        progress, metrics, validation_loss, validation_text, steps, training.validate_every
                    ),
                    callbacks.StopWhenAsked(stop),
                    callbacks.SaveCheckpoints(progress, checkpoints, steps, training.checkpoint_every),
                ],
            )

    with StopRequest().listening() as stop:
        if training.on_divergence == "rewind":
            progress = train_with_rewinds(train_from, checkpoints, model, progress)
        else:
            train_from(progress)
    if progress.step < steps:
        raise Interrupted(progress.step)
    left_out = f"; batches left out: {len(progress.skipped)}" if progress.skipped else ""
    log.info("trained %d steps in %s%s", progress.step, duration(progress.seconds), left_out)
    return progress
