"""The steps of a run, from the last checkpoint to the last step."""

import contextlib
import logging

from keras_transformer.errors import Interrupted
from train.data.batches import training_dataset
from train.loop import callbacks
from train.loop.checkpoints import Checkpoints, restore_everywhere
from train.loop.divergence import StopOnDivergence, save_start, train_with_rewinds
from train.loop.metrics_log import MetricsLog, NoMetrics
from train.loop.progress import Progress, duration
from train.loop.stopping import StopRequest
from train.workers.strategy import distributed

log = logging.getLogger("train")


def fit(config, folder, data, model, validator, broadcast):
    """Train from the last checkpoint, if there is one, to the last step. Returns the Progress.

    Every worker takes every step; the chief alone validates and keeps metrics and checkpoints, and the others wait for
    it in their next step. Raises DivergenceError, CheckpointError, and Interrupted where it was asked to stop before
    the last step.
    """
    training, worker = config.training, broadcast.worker
    checkpoints = Checkpoints(folder.checkpoints, training.keep_checkpoints)

    def restored():
        """The Progress of the last checkpoint, after it is loaded on every worker; None if there is none."""
        values = restore_everywhere(checkpoints, model, broadcast)
        return values and Progress(**values)

    progress = restored() or Progress()
    if progress.step:
        log.info("going on from the checkpoint of step %d", progress.step)
    if progress.step >= training.steps:
        log.info("all %d steps are done", training.steps)
        return progress
    compilation, stop_request = callbacks.LogCompilation(data.batches), StopRequest()
    steps, is_scaled = training.steps, training.precision == "mixed_float16"

    def train_from(progress):
        """Until the last step or a StopRequest; counts on in `progress`."""
        with contextlib.closing(MetricsLog(folder, progress.step) if worker.is_chief else NoMetrics()) as metrics:
            of_chief = [
                callbacks.Validate(progress, metrics, validator, steps, training.validate_every),
                callbacks.SaveCheckpoints(progress, checkpoints, steps, training.checkpoint_every),
            ]
            model.fit(
                distributed(
                    training_dataset(data.batches, progress.step, steps, tuple(progress.skipped)), broadcast.strategy
                ),
                steps_per_epoch=steps - progress.step,  # one "epoch" of Keras: ours are the data's, in `batches`
                shuffle=False,
                verbose=0,
                callbacks=[
                    compilation,
                    StopOnDivergence(progress, data.batches, data.tokenizer.vocab_size, is_scaled),
                    callbacks.LogProgress(progress, metrics, steps, training.log_every),
                    callbacks.StopWhenAsked(stop_request, is_alone=worker.count == 1),
                    *(of_chief if worker.is_chief else ()),
                ],
            )

    with stop_request.listening():
        if training.on_divergence == "rewind":
            if worker.is_chief and not checkpoints.paths():
                save_start(checkpoints, model, progress)
            progress = train_with_rewinds(train_from, restored, progress)
        else:
            train_from(progress)
    broadcast.wait()  # until the chief has written the last checkpoint
    if progress.step < steps:
        raise Interrupted(progress.step)
    left_out = f"; batches left out: {len(progress.skipped)}" if progress.skipped else ""
    log.info("trained %d steps in %s%s", progress.step, duration(progress.seconds), left_out)
    return progress
