"""What happens beside the steps of `model.fit`: progress, metrics, validation, checkpoints."""

import logging
import math
import time

import keras

log = logging.getLogger("train")


class Progress(keras.callbacks.Callback):
    """Logs every step to the metrics, and one line to the console every `log_every` steps."""

    def __init__(self, metrics, first_step, last_step, log_every):
        super().__init__()
        self.metrics, self.step, self.last_step, self.log_every = metrics, first_step, last_step, log_every
        self.first_step = first_step
        self.tokens_since, self.paused = 0, 0.0

    def on_train_begin(self, logs=None):
        self.started = self.previous = self.line_started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        logs = {name: float(value) for name, value in logs.items()}
        self.step += 1
        now = time.perf_counter()
        rate = logs["tokens"] / (now - self.previous)
        self.previous = now
        self.tokens_since += logs["tokens"]
        self.metrics.write(
            self.step,
            **{
                "train/loss": logs["loss"],
                "train/perplexity": math.exp(min(logs["nll"], 700.0)),
                "train/token_accuracy": logs["accuracy"],
                "train/learning_rate": logs["learning_rate"],
                "train/gradient_norm": logs["gradient_norm"],
                "train/tokens_per_second": rate,
            },
        )
        if self.step == self.first_step + 1:
            log.info("step %d took %.1f s, compilation included", self.step, now - self.started)
            self.tokens_since, self.line_started = 0, now
            self.after_first = now
        elif self.step % self.log_every == 0 or self.step == self.last_step:
            self._line(logs, now)

    def _line(self, logs, now):
        steps_done = self.step - self.first_step - 1
        left = (now - self.after_first) / steps_done * (self.last_step - self.step)
        log.info(
            "step %d/%d  loss %.3f  perplexity %.2f  accuracy %.1f%%  %s target tokens/s  %s left",
            self.step, self.last_step, logs["loss"], math.exp(min(logs["nll"], 700.0)), 100 * logs["accuracy"],
            f"{self.tokens_since / (now - self.line_started):,.0f}", duration(left),
        )  # fmt: skip
        self.tokens_since, self.line_started = 0, now


class SaveCheckpoints(keras.callbacks.Callback):
    """Writes a checkpoint every `every` steps and at the last one."""

    def __init__(self, checkpoints, first_step, last_step, every, progress):
        super().__init__()
        self.checkpoints, self.step, self.last_step, self.every = checkpoints, first_step, last_step, every
        self.progress = progress

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        if self.step % self.every == 0 or self.step == self.last_step:
            self.checkpoints.save(self.step, self.model, self.model.optimizer, self.progress())


def duration(seconds):
    """3725 -> "1 h 02 min"; 65 -> "1 min 05 s"; 9 -> "9 s"."""
    seconds = int(round(seconds))
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
