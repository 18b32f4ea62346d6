"""What happens beside the steps of `model.fit`: progress, metrics, validation, checkpoints."""

import dataclasses
import logging
import time

import keras

from keras_transformer.losses import perplexity
from train.loop.checkpoints import CheckpointError
from train.loop.markdown import samples_table
from train.loop.progress import duration

log = logging.getLogger("train")


class LogCompilation(keras.callbacks.Callback):
    """Says what the first step of a process compiles, and how long that step took."""

    def __init__(self, batches):
        super().__init__()
        self.batches, self.is_compiled = batches, False

    def on_train_batch_begin(self, batch, logs=None):
        if self.is_compiled:
            return
        rows, parts = self.batches.rows_per_batch, self.model.micro_batches
        log.info(
            "compiling the training step %s XLA: %d of a batch's %d rows, of %d source and %d target positions, "
            "through %s parameters ...",
            "with" if self.model.xla else "without",
            rows // (self.model.distribute_strategy.num_replicas_in_sync * parts), rows,
            *self.batches.row_lengths, f"{self.model.count_params():,}",
        )  # fmt: skip
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if not self.is_compiled:
            float(logs["loss"])  # waits for the step
            log.info("the first step took %.1f s, compilation included", time.perf_counter() - self.began)
            self.is_compiled = True


class LogProgress(keras.callbacks.Callback):
    """Counts steps, tokens and time; every step goes to the metrics, every `log_every`th to the console."""

    def __init__(self, progress, metrics, last_step, log_every):
        super().__init__()
        self.progress, self.metrics = progress, metrics
        self.last_step, self.log_every = last_step, log_every

    def on_train_begin(self, logs=None):
        self.previous = time.perf_counter()
        self.is_first = True
        self.rates = []  # (tokens, seconds) of the steps since the last line, without what happened between them

    def on_train_batch_begin(self, batch, logs=None):
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        logs = {name: float(value) for name, value in logs.items()}  # waits for the step
        now = time.perf_counter()
        seconds = now - self.began
        self.progress.step += 1
        self.progress.seconds += now - self.previous
        self.progress.target_tokens += logs["tokens"]
        self.previous = now
        train_perplexity = perplexity(logs["nll"])
        self.metrics.write(
            self.progress.step,
            {
                "train/loss": logs["loss"],
                "train/perplexity": train_perplexity,
                "train/token_accuracy": logs["accuracy"],
                "train/learning_rate": logs["learning_rate"],
                "train/gradient_norm": logs["gradient_norm"],
                "train/tokens_per_second": logs["tokens"] / seconds,
            },
        )
        if self.is_first:
            self.is_first = False
            return
        self.rates.append((logs["tokens"], seconds))
        if self.progress.step % self.log_every == 0 or self.progress.step == self.last_step:
            tokens, seconds = (sum(column) for column in zip(*self.rates, strict=True))
            left = seconds / len(self.rates) * (self.last_step - self.progress.step)
            log.info(
                "step %d/%d  loss %.3f  perplexity %.2f  accuracy %.1f%%  %s target tokens/s  %s left",
                self.progress.step, self.last_step, logs["loss"], train_perplexity, 100 * logs["accuracy"],
                f"{tokens / seconds:,.0f}", duration(left),
            )  # fmt: skip
            self.rates.clear()


class Validate(keras.callbacks.Callback):
    """Validation loss, BLEU and sample translations every `every` steps and after the last one."""

    SAMPLES = 5

    def __init__(self, progress, metrics, validator, last_step, every):
        super().__init__()
        self.progress, self.metrics, self.last_step, self.every = progress, metrics, last_step, every
        self.validator = validator

    def on_train_batch_end(self, batch, logs=None):
        step = self.progress.step
        if step % self.every and step != self.last_step:
            return
        validation = self.validator()
        scores, samples = validation.scores, validation.samples
        values = {
            "validation/loss": validation.loss,
            "validation/perplexity": validation.perplexity,
            "validation/token_accuracy": validation.token_accuracy,
            "validation/bleu": scores.bleu,
            "validation/exact": scores.exact,
        }
        self.metrics.write(step, {**values, "validation/samples": samples_table(samples[: self.SAMPLES])})
        log.info(
            "validation at step %d: loss %.3f  perplexity %.2f  BLEU %.2f  exact %.1f%%  e.g. %r",
            step, values["validation/loss"], values["validation/perplexity"], scores.bleu, scores.exact,
            samples[0].translation,
        )  # fmt: skip


class StopWhenAsked(keras.callbacks.Callback):
    """Ends `fit` after the step during which a StopRequest was made; stands before SaveCheckpoints.

    Of several workers each must end after the same step: there the sum of all requests that the step itself has made
    decides, and a request made amid a step is in the sum of the next.
    """

    def __init__(self, request, is_alone=True):
        super().__init__()
        self.request, self.is_alone = request, is_alone

    def on_train_batch_begin(self, batch, logs=None):
        if self.request.is_made:
            self.model.wants_to_stop = True

    def on_train_batch_end(self, batch, logs=None):
        if self.request.is_made if self.is_alone else float(logs["stop_requests"]) > 0:
            self.model.stop_training = True


class SaveCheckpoints(keras.callbacks.Callback):
    """Writes a checkpoint every `every` steps, at the last one, and when training is told to stop."""

    def __init__(self, progress, checkpoints, last_step, every):
        super().__init__()
        self.progress, self.checkpoints, self.last_step, self.every = progress, checkpoints, last_step, every

    def on_train_batch_end(self, batch, logs=None):
        step = self.progress.step
        if step % self.every == 0 or step == self.last_step or self.model.stop_training:
            self._save(step)

    def _save(self, step):
        """A full disk is said and survived, but for the last checkpoint, without which the steps since are lost."""
        try:
            self.checkpoints.save(step, self.model, self.model.optimizer, dataclasses.asdict(self.progress))
        except OSError as error:
            message = f"The checkpoint of step {step} could not be written: {error}. Earlier ones are as they were."
            if step == self.last_step or self.model.stop_training:
                raise CheckpointError(f"{message} Make room, and start again to go on from the last one.") from None
            log.error("%s Training goes on; make room before step %d.", message, step + self.every)
