"""A trial: one training of a series that is compared on the validation set. What a trial has done is not done again."""

import json
import pathlib
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import typer

from benchmarks.trials.settings import check_settings
from benchmarks.worker import BenchmarkError
from keras_transformer.console import INTERRUPTED
from keras_transformer.errors import Interrupted
from keras_transformer.run_folder import RunFolder
from train.config import load_config
from train.evaluation.comparison import Run, read_run, score_text

CALIBRATION_STEPS = 60  # whose median says how long a step takes
TRANSLATIONS = "validation.hyp.txt"

Folder = Annotated[pathlib.Path, typer.Option(help="Where the runs are kept; a run that is there is continued.")]
Only = Annotated[str | None, typer.Option(metavar="NAME,NAME", help="Train these alone; the table has all.")]


class Trial(NamedTuple):
    """A configuration, with what this trial changes in it."""

    name: str  # of its run folder
    config: pathlib.Path
    overrides: tuple[str, ...] = ()  # "training.dropout=0.2", as --set takes them


class Outcome(NamedTuple):
    """What a trial that has ended came to, on the validation set."""

    trial: Trial
    run: Run
    translations: list[str]
    train_seconds: float  # of all steps: compilation included, validations and checkpoints not

    @property
    def perplexity(self) -> float:
        """Per token of the tokenizer."""
        return self.run.scores["validation_perplexity"]

    @property
    def parameters(self) -> int:
        return self.run.scores["parameters"]

    def bleu(self) -> str:
        """BLEU of raw text with half of its 95 per cent interval: "38.62 ± 1.31"."""
        return score_text(self.run, "BLEU", "raw text")


def trained(trial: Trial, folder: pathlib.Path) -> Outcome:
    """Train a trial to its end, or go on with it, and translate the validation set with it.

    The test set is never read: the scores of report.md are those of the validation set. Raises BenchmarkError if the
    training fails, or has begun with other settings, Interrupted if it is stopped.
    """
    path = folder / trial.name
    check_settings(path, trial.config, settings_of(trial))
    if not RunFolder(path).scores.exists():
        python(folder / f"{trial.name}.log", "train", *training_arguments(trial, path))
    if not (path / TRANSLATIONS).exists():
        options = load_config(RunFolder(path).config).translation
        search = ["--beam-size", str(options.beam_size), "--length-penalty", str(options.length_penalty)]
        unfinished = path / f"{TRANSLATIONS}.part"
        python(folder / f"{trial.name}.log", "train.evaluate", str(path), *search, "--output", str(unfinished))
        unfinished.replace(path / TRANSLATIONS)
    return outcome_of(trial, folder)


def training_arguments(trial: Trial, path: pathlib.Path) -> list[str]:
    """The arguments of `python -m train`: without a test set, into `path`."""
    settings = [*settings_of(trial), f"run_folder={json.dumps(str(path))}"]
    return [str(trial.config), *(part for setting in settings for part in ("--set", setting))]


def settings_of(trial: Trial) -> list[str]:
    """What a trial changes in its configuration, which has no test set for any of them."""
    return [*trial.overrides, "data.test=[]"]


def has_ended(trial: Trial, folder: pathlib.Path) -> bool:
    """Whether a run is there that has been trained and translated to its end."""
    return (folder / trial.name / TRANSLATIONS).exists()


def outcome_of(trial: Trial, folder: pathlib.Path) -> Outcome | None:
    """What the trial came to; None if it has not ended. Raises BenchmarkError if that was with other settings."""
    path = folder / trial.name / TRANSLATIONS
    if not has_ended(trial, folder):
        return None
    check_settings(path.parent, trial.config, settings_of(trial))
    translations = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return Outcome(trial, read_run(path.parent), translations, sum(step_seconds(path.parent)))


def steps_in(trial: Trial, minutes: float, folder: pathlib.Path) -> int:
    """How many steps the trial trains in so many minutes on this machine, by a short training of its own."""
    path = folder / f"{trial.name}_calibration"
    config = load_config(trial.config, trial.overrides)
    short = [f"training.steps={CALIBRATION_STEPS}", f"training.checkpoint_every={CALIBRATION_STEPS}"]
    short += ["training.validate_every=1000000", "training.cooldown_steps=0"]
    short += ["translation.validation_sentences=1", "translation.beam_size=1"]
    calibration = trial._replace(overrides=(*trial.overrides, *short))
    check_settings(path, calibration.config, settings_of(calibration))
    if not RunFolder(path).metrics.exists() or len(step_seconds(path)) < CALIBRATION_STEPS:
        python(folder / f"{trial.name}.log", "train", *training_arguments(calibration, path))
    steps = round(60 * minutes / statistics.median(step_seconds(path)))
    return max(config.training.checkpoint_every, steps)


def step_seconds(path: pathlib.Path) -> list[float]:
    """How long each step of a run took."""
    records = map(json.loads, RunFolder(path).metrics.read_text(encoding="utf-8").splitlines())
    return [
        record["train/seconds_in_step"] + record["train/seconds_waiting"]
        for record in records
        if "train/seconds_in_step" in record
    ]


def python(log: pathlib.Path, module: str, *arguments: str) -> None:
    """Run a command of this project with its output in a log. A signal to stop is passed on to it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf-8") as file:
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=file, stderr=file)
        with passing_signals_to(process):
            code = process.wait()
    if code == INTERRUPTED or code < 0:
        raise Interrupted(f"Stopped. The same command goes on with {module} {arguments[0]}.")
    if code:
        last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
        raise BenchmarkError(f"`python -m {module} {arguments[0]}` failed, see {log}: {last}")


@contextmanager
def passing_signals_to(process: subprocess.Popen) -> Iterator[None]:
    """Until the end of the block, SIGTERM and SIGINT go to the process, which ends in its own way."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: process.send_signal(signal.SIGTERM))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def selected(trials: Iterable[Trial], only: str | None) -> list[Trial]:
    """The trials that --only names, or all. Raises BenchmarkError for a name that there is not."""
    trials = list(trials)
    if only is None:
        return trials
    known = [trial.name for trial in trials]
    if unknown := [name for name in only.split(",") if name not in known]:
        raise BenchmarkError(f"There is no trial {unknown[0]!r}; there are {', '.join(known)}.")
    return [trial for trial in trials if trial.name in only.split(",")]


def train_all(trials: Iterable[Trial], only: str | None, folder: pathlib.Path) -> list[Outcome]:
    """Train the selected trials one after the other. Return what all trials that have ended came to.

    Raises BenchmarkError before any training if one of them was trained with other settings.
    """
    trials = list(trials)
    chosen = selected(trials, only)
    for trial in trials:
        if trial in chosen or has_ended(trial, folder):  # now, not after hours of training
            check_settings(folder / trial.name, trial.config, settings_of(trial))
    for trial in chosen:
        print(f"{trial.name}: {' '.join(trial.overrides) or trial.config}", file=sys.stderr, flush=True)
        trained(trial, folder)
    return [outcome for trial in trials if (outcome := outcome_of(trial, folder))]
