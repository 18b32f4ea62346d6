"""The callbacks of `model.fit`: what follows each update, and what the first step of a process compiles."""

import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import psutil

from keras_transformer.ground.errors import first_line_of
from keras_transformer.inspection.callbacks import Inspection
from keras_transformer.losses import perplexity, perplexity_text
from keras_transformer.search.scores import NotFiniteError

from ..config.training import TrainingConfig
from ..data.batches import ShardedBatches
from ..step.layer_charts import histograms, update_ratios
from ..step.schedule_free import evaluation_weights
from ..workers.workers import Workers
from .best import basis_of, count_validation, has_score, has_stopped_early, is_better_than_kept, score_of, share_best
from .checkpoints import CheckpointError, Checkpoints
from .divergence import DivergenceCheck, DivergenceError
from .metrics_log import MetricsLog
from .progress import Progress, Stopwatch, time_left, times_left
from .stopping import StopRequest
from .symptoms import symptoms

log = logging.getLogger("train")


class Records(NamedTuple):
    """What the chief alone keeps of a run, and the validation and the inspections that it alone does."""

    metrics: MetricsLog
    checkpoints: Checkpoints
    validate: Callable[[], Any]  # returns a train.validation.validation.Validation
    inspections: Sequence[Inspection] = ()  # what looks at the model after each validation


class AfterEachUpdate(keras.callbacks.Callback):
    """What follows an update, in this order: each line relies on those above it.

    records: None on every worker but the chief, for which the others wait: in each validation, whose verdict `workers`
    sends them, and in their next update.
    """

    def __init__(
        self,
        training: TrainingConfig,
        progress: Progress,
        check_divergence: DivergenceCheck,
        stop_request: StopRequest,
        records: Records | None,
        workers: Workers,
    ):
        super().__init__()
        self.training, self.progress, self.records, self.workers = training, progress, records, workers
        self.check_divergence, self.stop_request = check_divergence, stop_request

    def on_train_batch_end(self, batch: int, logs: dict):
        logs = {name: float(value) for name, value in logs.items()}  # waits for the update
        self.check_divergence(self.progress, logs)  # raises before the update is counted, recorded or saved
        seconds = self.count(logs["tokens"])
        self.write_metrics(logs, seconds)
        self.write_inspection()
        self.log_progress(logs)
        self.model.stop_training = self.stop_request.ends_training(logs["stop_requests"])
        is_validated, is_due = self.is_due(self.training.validate_every), self.is_due(self.training.checkpoint_every)
        is_suspected = self.progress.step <= self.check_divergence.suspected_until
        if is_suspected or is_validated or is_due or self.model.stop_training:
            self.check_weights()
        if is_validated:
            try:
                with self.stopwatch.timing("validation"):
                    self.validate()
            except DivergenceError:
                raise  # nobody shall go on from these weights
            except Exception:  # the steps since the last checkpoint shall not be lost with a validation
                self.save(is_interim=not is_due)
                raise
            is_due = is_due or has_stopped_early(self.progress, self.training)
            self.model.stop_training = self.model.stop_training or has_stopped_early(self.progress, self.training)
        if is_due or self.model.stop_training:
            self.save(is_interim=not is_due)

    def check_weights(self) -> None:
        """Raise DivergenceError, on every worker, if the update left weights that are not finite or have exploded.

        The loss of the next step would tell it, after the checkpoint, and its batch would be taken for the cause.
        """
        for weight in self.model.weights:
            is_number = keras.backend.is_float_dtype(weight.dtype)
            if is_number and not bool(keras.ops.all(keras.ops.isfinite(weight))):
                raise self.check_divergence.of_weights(self.progress, f"weights that are not finite: {weight.path}")
        self.check_divergence.after_update(self.progress, self.model.loss_after_update())

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.stopwatch, self.process = Stopwatch(), psutil.Process()

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        if self.stop_request.is_made:
            self.model.wants_to_stop = True
        if (every := self.training.histograms_every) and self.records is not None:
            self.model.inspects = (self.progress.step + 1) % every == 0
        self.stopwatch.begin_update()

    def is_due(self, every: int) -> bool:
        """True if the step is a multiple of `every`, or the last step."""
        return self.progress.step % every == 0 or self.progress.step == self.training.steps

    def count(self, tokens: float) -> float:
        """Count the update. Returns its seconds."""
        seconds, since_last = self.stopwatch.end_update(tokens)
        self.progress.count(tokens, since_last)
        return seconds

    def write_metrics(self, logs: dict[str, float], seconds: float) -> None:
        if self.records is None:
            return
        waiting = float(self.model.seconds_waiting)
        values = {
            "train/loss": logs["loss"],
            "train/perplexity": perplexity(logs["nll"]),
            "train/token_accuracy": logs["accuracy"],
            "train/learning_rate": logs["learning_rate"],
            "train/gradient_norm": logs["gradient_norm"],
            "train/tokens_per_second": logs["tokens"] / seconds,
            "train/seconds_in_step": seconds - waiting,
            "train/seconds_waiting": waiting,  # for the batch
            "train/resident_bytes": float(self.process.memory_info().rss),
        }
        if "alignment_loss" in logs:
            values["train/alignment_loss"] = logs["alignment_loss"]
        if self.training.precision == "mixed_float16":
            updates = int(self.model.optimizer.iterations)  # without those that the loss scale refused
            values["train/overflow_share"] = 1 - updates / self.progress.step
        self.records.metrics.write(self.progress.step, values)

    def write_inspection(self) -> None:
        """Write what an inspected step kept, and release its memory, which is twice that of the weights."""
        inspected, self.model.inspected = self.model.inspected, None
        if inspected is None or self.records is None:
            return
        self.records.metrics.write(self.progress.step, update_ratios(self.model, inspected))
        self.records.metrics.add("train", self.progress.step, histograms(self.model, inspected))

    def log_progress(self, logs: dict[str, float]) -> None:
        step, steps = self.progress.step, self.training.steps
        if not self.is_due(self.training.log_every) or (rates := self.stopwatch.report()) is None:
            return
        tokens_per_second, seconds_per_update = rates
        log.info(
            "step %d/%d  loss %.3f  perplexity %s  accuracy %.1f%%  %s target tokens/s  %s left",
            step,
            steps,
            logs["loss"],
            perplexity_text(perplexity(logs["nll"]), 2),
            100 * logs["accuracy"],
            f"{tokens_per_second:,.0f}",
            time_left(seconds_per_update * (steps - step), self.still_to_come(), self.stopwatch.last),
        )

    def still_to_come(self) -> dict[str, int]:
        """How many validations and checkpoints are due from this update on."""
        every = {"validation": self.training.validate_every, "checkpoint": self.training.checkpoint_every}
        return {what: times_left(self.progress.step, self.training.steps, every[what]) for what in every}

    def validate(self) -> None:
        """Validate the weights that would translate, and count whether they are the best so far.

        Raises DivergenceError, on every worker, if the validation finds something that is not finite.
        """
        validation, finding = None, ""
        if self.records is not None:
            try:
                with evaluation_weights(self.model):
                    validation = self.records.validate()
            except NotFiniteError as error:
                finding = first_line_of(error)
        if finding := self.workers.text_of_chief(finding):
            raise self.check_divergence.of_validation(self.progress, finding)
        if self.records is not None:
            self.write_validation(self.records.metrics, validation)
            with evaluation_weights(self.model):
                self.inspect(self.records.inspections)
            if (self.training.patience or self.training.keep_best) and not has_score(validation, self.training):
                log.warning(
                    "the %s of this validation is undefined, so that it counts neither for training.patience nor for "
                    'training.keep_best: set training.best_metric to "chrf" or "loss"',
                    self.training.best_metric,
                )
            count_validation(self.progress, validation, self.training.best_metric)
            if self.training.keep_best and has_score(validation, self.training):
                self.keep_best(self.records.checkpoints, validation)
        if self.training.patience is not None:
            share_best(self.progress, self.workers)

    def inspect(self, inspections: Sequence[Inspection]) -> None:
        """Run the inspections. One that fails is logged, and training continues: hours must not end with a picture."""
        for inspection in inspections:
            try:
                inspection.inspect(self.progress.step)
            except Exception:  # logged with its traceback; whatever it is, the weights are as they were
                name = type(inspection).__name__
                log.exception("%s failed at step %d; training continues without it.", name, self.progress.step)

    def write_validation(self, metrics: MetricsLog, validation: Any) -> None:
        """Log loss, scores and one translation."""
        step = self.progress.step
        values = {f"validation/{name}": value for name, value in validation.plotted().items()}
        metrics.write(step, values)
        log.info(
            "validation at step %d: loss %.3f  perplexity %s  %s  exact %.1f%%  e.g. %r",
            step,
            validation.loss,
            perplexity_text(validation.perplexity, 2),
            validation.scores.quality_text,
            validation.scores.exact,
            validation.samples[0].translation,
        )
        for sentence in symptoms(validation, self.progress):
            log.warning(sentence)

    def keep_best(self, checkpoints: Checkpoints, validation: Any) -> None:
        """Write the best checkpoint, if this validation is better than that of the one there is, or there is none.

        On a full disk log the error and keep training, as `save` does: the checkpoint there is stays.
        """
        metric = self.training.best_metric
        if not is_better_than_kept(self.progress, validation, metric) and not checkpoints.lacks_best(self.progress):
            return
        progress = dataclasses.replace(
            self.progress,
            kept_metric=metric,
            kept_basis=basis_of(validation, metric),
            kept_score=score_of(validation, metric),
            kept_step=self.progress.step,
        )
        try:
            checkpoints.save_best(self.model, self.model.optimizer, progress)
            vars(self.progress).update(vars(progress))
        except OSError as error:
            log.error(
                "The best checkpoint, of step %d, could not be written: %s Training continues; make room.",
                self.progress.step,
                first_line_of(error),
            )

    def save(self, is_interim: bool) -> None:
        """Write a checkpoint. On a full disk log the error and keep training, but raise for the last checkpoint.

        Without the last one the steps since the one before it would be lost. The time up to here is counted first:
        nothing else counts a validation after the last update.
        """
        self.progress.count_time(self.stopwatch.uncounted())
        if self.records is None:
            return
        step = self.progress.step
        try:
            progress = dataclasses.replace(self.progress, is_interim=is_interim)
            with self.stopwatch.timing("checkpoint"):
                self.records.checkpoints.save(self.model, self.model.optimizer, progress)
        except OSError as error:
            reason = first_line_of(error)
            message = f"The checkpoint of step {step} could not be written: {reason} Earlier ones are unchanged."
            if step == self.training.steps or self.model.stop_training:
                raise CheckpointError(
                    f"{message} Make room, then run the same command again to continue from the newest of them."
                ) from None
            log.error("%s Training continues; make room before the next checkpoint.", message)


class LogCompilation(keras.callbacks.Callback):
    """Logs what the first step of a process compiles, and how long that step takes."""

    def __init__(self, batches: ShardedBatches):
        super().__init__()
        self.batches, self.is_compiled = batches, False

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        if self.is_compiled:
            return
        rows, model = self.batches.rows_per_batch, self.model
        log.info(
            "compiling the training step %s XLA: %d of the %d rows of a batch at once, %d source and %d target "
            "positions per row, %s parameters ...",
            "with" if model.xla else "without",
            rows // (model.distribute_strategy.num_replicas_in_sync * model.micro_batches),
            rows,
            *self.batches.row_lengths,
            f"{model.count_params():,}",
        )
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: dict):
        if not self.is_compiled:
            float(logs["loss"])  # waits for the step
            log.info("the first step took %.1f s, compilation included", time.perf_counter() - self.began)
            self.is_compiled = True
