"""A profile of a few training steps for TensorBoard's profile tab."""

import logging
import pathlib
from collections.abc import Sequence

import keras
import tensorflow as tf

from .progress import Progress

log = logging.getLogger("train")


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
