"""A trial: one training of a series that is compared on the validation set. What has ended is not trained again."""

import itertools
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.errors import BenchmarkError
from benchmarks.trials.outcome import Outcome, Trial, outcome_of_run, read_outcome, step_seconds, write_outcome
from benchmarks.trials.settings import OF_SELECTION, check_settings, has_begun
from keras_transformer.commands.console import INTERRUPTED
from keras_transformer.commands.signals import handling
from keras_transformer.ground.errors import Interrupted
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import RUN_OPTIONS
from train.config.run import load_config
from train.report.curves import read_curves
from train.workers.tf_config import ONLY_WORKER

CALIBRATION_STEPS = 60  # whose median says how long a step takes
TRANSLATIONS = "validation.hyp.txt"

Folder = Annotated[pathlib.Path, typer.Option(help="Folder of the runs; a run that is there is continued.")]
Only = Annotated[str | None, typer.Option(metavar="NAME,NAME", help="Train these alone; the table has all.")]
Measure = Callable[[pathlib.Path], dict[str, Any]]  # of a run folder: what JSON keeps beside scores and curves


def trained(trial: Trial, folder: pathlib.Path, kept: pathlib.Path, measure: Measure | None = None) -> Outcome:
    """Train a trial to its end, or go on with it, translate the validation set with it, and keep what it came to.

    folder: of the run folders. kept: of the outcomes; a trial that has one there is not trained.
    Unless `measure` reads it, the test set is never read: the scores of report.md are those of the validation set.
    Raises BenchmarkError if the training fails, or has begun with other settings, Interrupted if it is stopped.
    """
    if outcome := read_outcome(trial, kept):
        return outcome
    path = folder / trial.name
    check_begun(trial, folder)
    if trial.same_updates_as and not has_begun(path):
        copy_updates(folder / trial.same_updates_as, path)
    if not RunFolder(path).scores.exists():
        python(folder / f"{trial.name}.log", "train", *training_arguments(trial, path))
    translations = path / TRANSLATIONS
    if not translations.exists():
        translation = load_config(RunFolder(path).config).translation
        options = translation.search_options(translation.beam_size)
        values = {f"--{name.replace('_', '-')}": str(getattr(options, name)) for name in RUN_OPTIONS}
        search = itertools.chain.from_iterable(values.items())
        unfinished = path / f"{TRANSLATIONS}.part"
        python(folder / f"{trial.name}.log", "train.evaluate", str(path), *search, "--output", str(unfinished))
        unfinished.replace(translations)
    outcome = outcome_of_run(path, translations, measure(path) if measure else {})
    write_outcome(outcome, trial.name, kept)
    return outcome


def check_begun(trial: Trial, folder: pathlib.Path) -> None:
    """Raises BenchmarkError if the run of a trial, or the one whose updates it would copy, has other settings."""
    path = folder / trial.name
    check_settings(path, trial.config, trial.settings)
    if trial.same_updates_as and not has_begun(path):
        check_settings(folder / trial.same_updates_as, trial.config, trial.settings, OF_SELECTION)


def copy_updates(source: pathlib.Path, path: pathlib.Path) -> None:
    """Begin a run after the last update of another one; without it, it begins at the first."""
    if has_begun(source):
        run, unfinished = RunFolder(source), path.with_name(f"{path.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)  # of a copy that was stopped
        ignored = shutil.ignore_patterns(run.scores.name, run.lock.name, f"{TRANSLATIONS}*")
        shutil.copytree(source, unfinished, ignore=ignored)
        shutil.rmtree(path, ignore_errors=True)  # of a run that has not begun, as of a copy that was stopped before
        unfinished.replace(path)


def training_arguments(trial: Trial, path: pathlib.Path) -> list[str]:
    """The arguments of `keras-transformer train`: without a test set, into `path`."""
    settings = [*trial.settings, f"run_folder={json.dumps(str(path))}"]
    return [str(trial.config), *(part for setting in settings for part in ("--set", setting))]


def steps_in(trial: Trial, minutes: float, folder: pathlib.Path) -> int:
    """How many steps the trial trains in so many minutes on this machine, see `seconds_per_step`.

    Raises BenchmarkError if it has no checkpoint by then.
    """
    seconds, first = (
        seconds_per_step(trial, folder),
        load_config(trial.config, trial.overrides).training.checkpoint_every,
    )
    if (steps := round(60 * minutes / seconds)) < first:
        raise BenchmarkError(
            f"In {minutes:g} minutes, {trial.name} trains {steps:,} steps here, and its first checkpoint is after "
            f"{first:,}: give at least {math.ceil(first * seconds / 60)} minutes."
        )
    return steps


def seconds_per_step(trial: Trial, folder: pathlib.Path) -> float:
    """The median on this machine, by a short training of its own."""
    path = folder / f"{trial.name}_calibration"
    short = [f"training.steps={CALIBRATION_STEPS}", f"training.checkpoint_every={CALIBRATION_STEPS}"]
    short += ["training.validate_every=1000000", "training.cooldown_steps=0"]
    short += ["translation.validation_sentences=1", "translation.beam_size=1"]
    calibration = trial._replace(overrides=(*trial.overrides, *short))
    check_settings(path, calibration.config, calibration.settings)
    metrics = RunFolder(path).metrics
    if len(read_curves(metrics).get("train/seconds_in_step", ())) < CALIBRATION_STEPS:
        python(folder / f"{trial.name}.log", "train", *training_arguments(calibration, path))
    return float(np.median(step_seconds(read_curves(metrics))))


def python(log: pathlib.Path, module: str, *arguments: str) -> None:
    """Run a command of this project with its output in a log. A signal to stop is passed on to it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf-8") as file:
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=file, stderr=file)
        with handling(lambda *_: process.send_signal(signal.SIGTERM)):  # which ends in its own way
            code = process.wait()
    if code in (INTERRUPTED, -signal.SIGTERM, -signal.SIGINT):
        raise Interrupted(f"Stopped. The same command goes on with {module} {arguments[0]}.")
    if code < 0:
        name = signal.Signals(-code).name
        why = " (the system does that when memory is exhausted)" if name == "SIGKILL" else ""
        raise BenchmarkError(f"`python -m {module} {arguments[0]}` was ended by {name}{why}, see {log}.")
    if code:
        last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
        raise BenchmarkError(f"`python -m {module} {arguments[0]}` failed, see {log}: {last}")


def selected(trials: Iterable[Trial], only: str | None) -> list[Trial]:
    """Return the trials that --only names, or all. Raises BenchmarkError for a name that no trial has."""
    trials = list(trials)
    if only is None:
        return trials
    known = [trial.name for trial in trials]
    if unknown := [name for name in only.split(",") if name not in known]:
        raise BenchmarkError(f"There is no trial {unknown[0]!r}; there are {', '.join(known)}.")
    return [trial for trial in trials if trial.name in only.split(",")]


def check_configuration(trial: Trial) -> None:
    """Raises ConfigError if the configuration of a trial is invalid, BenchmarkError if its text is of no files."""
    source = load_config(trial.config, trial.overrides).data.source
    if source != "files":
        raise BenchmarkError(
            f"{trial.config} has data.source = {source!r}. Trials are compared on the validation set and leave the "
            'test set unread, which needs a configuration with data.source = "files".'
        )
    load_config(trial.config, trial.settings)


def check_trainable(trial: Trial) -> None:
    """Raises ConfigError or CorpusError for what a training would refuse before its first step."""
    from train.data.prepare import load_corpus  # which loads TensorFlow
    from train.record.changes import check_start  # and these Keras
    from train.record.opened_run import check_training

    config = load_config(trial.config, trial.settings)
    check_training(config)
    check_start(RunFolder(os.devnull), config, ONLY_WORKER)
    load_corpus(config.data)


def train_all(
    trials: Iterable[Trial], only: str | None, folder: pathlib.Path, kept: pathlib.Path
) -> dict[str, Outcome]:
    """Train the selected trials one after the other. Return what all trials that have ended came to, by their names.

    Raises BenchmarkError or ConfigError before any training if one of them was trained with other settings or
    cannot be trained.
    """
    trials = list(trials)
    chosen = selected(trials, only)
    check_all(trials, chosen, folder, kept)
    for trial in chosen:
        print(f"{trial.name}: {' '.join(trial.overrides) or trial.config}", file=sys.stderr, flush=True)
        trained(trial, folder, kept)
    return {trial.name: outcome for trial in trials if (outcome := read_outcome(trial, kept))}


def check_all(trials: Iterable[Trial], chosen: Collection[Trial], folder: pathlib.Path, kept: pathlib.Path) -> None:
    """Check all trials now, not after hours of training. Raises as `train_all` does. chosen: those that will train."""
    for trial in chosen:
        check_configuration(trial)
    for trial in trials:
        if not read_outcome(trial, kept) and trial in chosen:
            check_begun(trial, folder)
            check_trainable(trial)
