"""The callback after each update, with collaborators that note what is done, under a clock that a test moves."""

import dataclasses
import errno
import time
import types

from tests.support.training import scores_of
from train.config.training import TrainingConfig
from train.loop.callbacks import AfterEachUpdate, Records
from train.loop.divergence import DivergenceError
from train.loop.progress import Progress
from train.loop.stopping import StopRequest
from train.validation.validation import Sample, Validation
from train.workers.workers import Workers

LOGS = {
    "loss": 2.0, "nll": 0.0, "accuracy": 0.5, "learning_rate": 0.1, "gradient_norm": 3.0, "tokens": 70.0,
    "stop_requests": 0.0,
}  # fmt: skip
TRAINING = {"steps": 100, "validate_every": 100, "checkpoint_every": 100, "log_every": 100}


class Clock:
    """Stands for time.perf_counter: stands still until it is moved."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def validation(**scores):
    scores = scores_of(**{"bleu": 12.0, "chrf": 34.0, "exact": 25.0} | scores)
    return Validation(1.5, 1.0, 0.25, scores, [Sample("a", "b", "c")])


class CheckOf:
    """Stands for the DivergenceCheck of a Run."""

    suspected_until = 0

    def __init__(self, run):
        self.run = run

    def __call__(self, progress, logs):
        self.run.done.append(("check", progress.step))
        if self.run.is_diverged:
            raise DivergenceError("Step", "advice")

    def after_update(self, progress, loss):
        self.run.done.append(("check weights", progress.step))


class Run:
    """An AfterEachUpdate whose collaborators note what is done, in `done`: (what, step, ...)."""

    def __init__(self, progress=None, is_chief=True, is_full=False, is_diverged=False, is_alone=True, **training):
        self.progress, self.done, self.saved, self.written = progress or Progress(), [], [], []
        self.is_full, self.is_diverged, self.scores = is_full, is_diverged, {}
        self.request = StopRequest(is_alone)
        self.model = types.SimpleNamespace(
            stop_training=False, wants_to_stop=False, optimizer=None, weights=[], seconds_waiting=0.25, inspected=None
        )
        self.model.loss_after_update = lambda: LOGS["loss"]
        self.callback = AfterEachUpdate(
            TrainingConfig(**TRAINING | training),
            self.progress,
            CheckOf(self),
            self.request,
            Records(self, self, self.validate, [self]) if is_chief else None,
            Workers(None),
        )
        self.callback.set_model(self.model)
        self.callback.on_train_begin()

    def write(self, step, values):
        self.done.append(("write", step))
        self.written.append((step, values))

    def validate(self):
        self.done.append(("validate", self.progress.step))
        return validation(**self.scores)

    def inspect(self, step):
        self.done.append(("inspect", step))

    def save(self, model, optimizer, progress):
        self.done.append(("save", progress.step))
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.saved.append(dataclasses.asdict(progress))

    def step(self, **logs):
        self.callback.on_train_batch_begin(0)
        self.callback.on_train_batch_end(0, LOGS | logs)

    def steps_of(self, what):
        return [step for name, step in self.done if name == what]
