"""The steps of a run, from the last checkpoint to the last step."""

import logging

from train.batches import training_dataset
from train.callbacks import LogProgress, Progress, SaveCheckpoints, StopOnDivergence, StopWhenAsked, Validate, duration
from train.checkpoints import Checkpoints
from train.interruption import Interrupted, StopRequest
from train.metrics import MetricsLog

log = logging.getLogger("train")


def fit(config, folder, data, model, validation_loss, validation_text):
    """Train from the last checkpoint, if there is one, to the last step. Returns the Progress."""
    training = config.training
    checkpoints = Checkpoints(folder.checkpoints, training.keep_checkpoints)
    progress = Progress(**(checkpoints.restore_latest(model, model.optimizer) or {}))
    if progress.step:
        log.info("going on from the checkpoint of step %d", progress.step)
    if progress.step >= training.steps:
        log.info("all %d steps are done", training.steps)
        return progress
    metrics = MetricsLog(folder, progress.step)
    with StopRequest().listening() as stop:
        model.fit(
            training_dataset(data.batches, progress.step, training.steps),
            steps_per_epoch=training.steps - progress.step,  # one "epoch" of Keras: ours are the data's, in `batches`
            shuffle=False,
            verbose=0,
            callbacks=[
                StopOnDivergence(progress, is_scaled=training.precision == "mixed_float16"),
                LogProgress(progress, metrics, training.steps, training.log_every),
                Validate(progress, metrics, validation_loss, validation_text, training.steps, training.validate_every),
                StopWhenAsked(stop),
                SaveCheckpoints(progress, checkpoints, training.steps, training.checkpoint_every),
            ],
        )
    metrics.close()
    if progress.step < training.steps:
        raise Interrupted(progress.step)
    log.info("trained %d steps in %s", progress.step, duration(progress.seconds))
    return progress
