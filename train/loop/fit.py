"""The steps of a run, from the last checkpoint to the last step."""

import contextlib
import functools
import logging
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.ground.durations import duration
from keras_transformer.ground.errors import ConfigError, Interrupted, first_line_of
from keras_transformer.inspection.callbacks import Inspection
from keras_transformer.runs.run_folder import RunFolder

from ..config.run import RunConfig
from ..config.training import TrainingConfig
from ..data.batches import ShardedBatches, training_dataset
from ..step.training_model import TrainingModel
from ..workers.strategy import distributed
from ..workers.workers import Workers
from .best import early_stop_sentence, has_stopped_early, is_done
from .callbacks import AfterEachUpdate, LogCompilation, Records
from .checkpoints import Checkpoints, restore_everywhere
from .divergence import DivergenceCheck, save_start, train_with_rewinds
from .graph import graph_summary
from .metrics_log import MetricsLog
from .progress import Progress
from .stopping import StopRequest

log = logging.getLogger("train")

Inspections = Callable[[MetricsLog], Sequence[Inspection]]  # what looks at the model and writes to a log


def fit(
    config: RunConfig,
    folder: RunFolder,
    batches: ShardedBatches,
    model: TrainingModel,
    validate: Callable[[], Any],
    workers: Workers,
    inspections: Inspections = lambda metrics: (),
) -> Progress:
    """Train from the last checkpoint, if there is one, to the last step or an early stop. Returns the Progress.

    Every worker takes every step; the chief alone calls `validate` (which returns a Validation), runs the `inspections`
    after it, and writes metrics and checkpoints, while the others wait for it in their next step.
    Raises DivergenceError, CheckpointError, and Interrupted if it is asked to stop, even if that is
    after the last step has begun: the work that follows is the report's.
    """
    training, checkpoints = config.training, Checkpoints(folder.checkpoints, config.training.keep_checkpoints)
    restore = functools.partial(restore_everywhere, checkpoints, model, workers)
    if workers.is_chief and (training.start_from or training.on_divergence == "rewind") and not checkpoints.paths():
        save_start(checkpoints, model, Progress())
    progress = restore() or Progress()
    log_start(progress, training)
    if is_done(progress, training):
        return progress
    log_compilation, stop_request = LogCompilation(batches), StopRequest(is_alone=workers.worker.count == 1)
    check_divergence = DivergenceCheck(batches, keras.tree.flatten(model.output)[0].shape[-1], training)

    def train_from(progress: Progress) -> None:
        profiled = training.profile_steps if workers.is_chief else None
        with (
            records_of(workers.is_chief, config, folder, progress.step, checkpoints, validate, inspections) as records,
            contextlib.closing(ProfileSteps(profiled, progress, folder.tensorboard)) as profile,
        ):
            if records is not None and progress.step == 0:
                graph = graph_summary(model, batches.rows_per_batch, batches.row_lengths)
                records.metrics.add("", 0, graph)
            after_each_update = AfterEachUpdate(training, progress, check_divergence, stop_request, records, workers)
            callbacks = [log_compilation, profile, after_each_update]
            fit_from(progress, training.steps, model, batches, workers.strategy, callbacks)

    with stop_request.listening():
        if training.on_divergence == "rewind":
            progress = train_with_rewinds(train_from, restore, progress, check_divergence)
        else:
            train_from(progress)
    workers.wait()  # until the chief has written the last checkpoint
    log_end(progress, training)
    if stop_request.is_made and workers.is_chief:  # too late for a step to be left out, but not for the report
        raise Interrupted(report_is_missing(folder))
    return progress


def report_is_missing(folder: RunFolder) -> str:
    """The message for a run that is stopped between its last step and its report."""
    return f"All steps of {folder.path} are done, its report is not: run the same command again."


def log_start(progress: Progress, training: TrainingConfig) -> None:
    if progress.step:
        log.info("continuing from the checkpoint of step %d", progress.step)
    if progress.step >= training.steps:
        log.info("all %d steps are done", training.steps)
    elif has_stopped_early(progress, training):
        log.info(early_stop_sentence(progress))


def fit_from(
    progress: Progress,
    last_step: int,
    model: TrainingModel,
    batches: ShardedBatches,
    strategy: tf.distribute.Strategy,
    callbacks: list[keras.callbacks.Callback],
) -> None:
    """Train from `progress` to the last step, or until a callback stops training; the callbacks count on in it."""
    dataset = training_dataset(batches, progress.step, last_step, tuple(progress.skipped))
    try:
        model.fit(
            distributed(dataset, strategy),
            steps_per_epoch=last_step - progress.step,  # one "epoch" of Keras; the epochs of the data are in `batches`
            shuffle=False,
            verbose=0,
            callbacks=[*callbacks, keras.callbacks.LambdaCallback(on_train_end=lambda logs: batches.give_up())],
        )  # before `fit` returns, since it waits for the thread that reads batches, which may wait for an epoch
    except tf.errors.ResourceExhaustedError as error:
        rows = batches.rows_per_batch // strategy.num_replicas_in_sync // model.micro_batches
        raise ConfigError(
            f"Memory was exhausted after step {progress.step}, with {rows} rows at once on each device: "
            f"{first_line_of(error)} Set training.micro_batches to more than {model.micro_batches}, a number that "
            "divides the rows, and training.find_micro_batches to false (true finds that number in a new run only); or "
            "if a validation did not fit, translation.batch_size to less. The same command continues from the last "
            "checkpoint."
        ) from None
    finally:
        batches.give_up()  # what was begun since, or if `fit` was left by an error


def log_end(progress: Progress, training: TrainingConfig) -> None:
    """Log what has been trained. Raises Interrupted if that is not everything."""
    if has_stopped_early(progress, training):
        log.info(early_stop_sentence(progress))
    elif progress.step < training.steps:
        raise Interrupted(
            f"Stopped after step {progress.step}; its checkpoint is written. Run the same command again to continue."
        )
    left_out = f"; batches left out: {len(progress.skipped)}" if progress.skipped else ""
    log.info("trained %d steps in %s%s", progress.step, duration(progress.seconds), left_out)


@contextlib.contextmanager
def records_of(
    is_chief: bool,
    config: RunConfig,
    folder: RunFolder,
    first_step: int,
    checkpoints: Checkpoints,
    validate: Callable[[], Any],
    inspections: Inspections,
) -> Iterator[Records | None]:
    """Open the Records of the chief, which go on after `first_step`; None for every other worker."""
    if not is_chief:
        yield None
        return
    with contextlib.closing(MetricsLog(folder, first_step, config)) as metrics:
        yield Records(metrics, checkpoints, validate, inspections(metrics))


class ProfileSteps(keras.callbacks.Callback):
    """Profiles the steps from the first to the last of `steps`, two numbers, into the folder of event files.

    A run that is continued within them profiles the rest, and one that is continued after them nothing. A profile that
    cannot be written is logged as an error, and training continues. Call `close` after `fit`, however that ends.
    """

    def __init__(self, steps: Sequence[int] | None, progress: Progress, folder: pathlib.Path):
        super().__init__()
        self.steps, self.progress, self.folder = steps or (), progress, folder
        self.is_running, self.marker = False, None

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        step = self.progress.step + 1
        if not self.steps or not self.steps[0] <= step <= self.steps[1]:
            return
        if not self.is_running:
            self.start()
        if self.is_running:  # the tab knows the steps by their markers
            self.marker = tf.profiler.experimental.Trace("train", step_num=step, _r=1)

    def on_train_batch_end(self, batch: int, logs: dict):
        if self.marker is None:
            return
        float(logs["loss"])  # waits for the step
        self.marker.__exit__(None, None, None)
        self.marker = None
        if self.progress.step + 1 >= self.steps[1]:
            self.close()

    def start(self) -> None:
        log.info("profiling steps %d to %d", self.progress.step + 1, self.steps[1])
        try:
            tf.profiler.experimental.start(str(self.folder))
            self.is_running = True
        except tf.errors.OpError as error:
            self.give_up(error)

    def close(self) -> None:
        """Write the profile, if one is running."""
        if not self.is_running:
            return
        self.is_running = False
        try:
            tf.profiler.experimental.stop()
            log.info("the profile is in %s; `tensorboard --logdir` shows it in the tab PROFILE", self.folder)
        except tf.errors.OpError as error:
            self.give_up(error)

    def give_up(self, error: tf.errors.OpError) -> None:
        log.error("The profile of the steps %s could not be made: %s. Training continues.", self.steps, error.message)
        self.steps = ()
