"""Checkpoints: weights, optimizer and progress in one file each; the last ones averaged into what translation uses."""

import collections
import dataclasses
import errno
import fnmatch
import hashlib
import json
import logging
import os
import pathlib
import re
import zipfile
from typing import Any

import keras
import numpy as np

from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.files import DAMAGED_ARCHIVE, write_atomically
from keras_transformer.ground.machine import processor_cores
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.run_folder import CHECKPOINTS

from ..step.lora import has_adapters
from ..step.schedule_free import BETA, Z, averages_in
from ..workers.workers import Workers
from .progress import Progress

log = logging.getLogger("train")

BASE = "base.npz"
BEST = re.compile(r"best-\d{8}\.npz")
NUMBERED = re.compile(r"(?<![^/])variable_\d+$")  # the end of the path of a variable that was given no name
PART = re.compile(r"(step|best)-\d{8}\.npz\.part")  # what a process that was killed had written of one


class CheckpointError(UserError):
    """A checkpoint that cannot be read or written; the message names it and the cause."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint whose content is not what was written."""


class Checkpoints:
    """The folder `checkpoints/` of a run: step-00001000.npz and so on, the last `keep` of them; and best-00000800.npz.

    One that was written because the run was stopped (`Progress.is_interim`) goes when the next one is written: so a run
    that was stopped and continued has the checkpoints, and their average, of one that was not.

    A file holds every weight under "model/<path>", every optimizer variable (the count of updates is one) under
    "optimizer/<path>", and `progress`, the JSON of a Progress. It is written atomically, so a file of that name is
    complete; and a zip archive has a checksum per array, so damage is noticed when it is read.

    Of a model with LoRA a checkpoint holds no weight that training leaves as it is. These are in `base.npz`, which is
    written once, before the first checkpoint; each checkpoint has its fingerprint as "base".
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 5):
        self.folder, self.keep = pathlib.Path(folder), keep
        self.base = self.folder / BASE
        self.folder.mkdir(parents=True, exist_ok=True)

    def paths(self) -> list[pathlib.Path]:
        """Return all checkpoints, the oldest first."""
        return sorted(path for path in self.folder.iterdir() if fnmatch.fnmatchcase(path.name, CHECKPOINTS))

    def save(self, model: keras.Model, optimizer: keras.optimizers.Optimizer, progress: Progress) -> None:
        """Write the checkpoint of `progress.step`, then remove those before the last `keep`."""
        path = self.folder / f"step-{progress.step:08d}.npz"
        interim = [other for other in self.paths() if other != path and is_interim(other)]
        self._write(path, model, optimizer, progress)
        for other in interim:
            other.unlink()
        for old in self.paths()[: -self.keep]:
            old.unlink()
        for best in self.best_paths():
            if step_of(best) <= progress.step and step_of(best) != progress.kept_step:  # a later one will come again
                best.unlink()

    def save_best(self, model: keras.Model, optimizer: keras.optimizers.Optimizer, progress: Progress) -> None:
        """Write the checkpoint of `progress.step` as the best one.

        The one that was the best before stays until the next `save`: training may go back to the last checkpoint.
        """
        last = [progress_in(path) for path in self.paths()[-1:]]
        path = self.folder / f"best-{progress.step:08d}.npz"
        self._write(path, model, optimizer, progress)
        kept = {progress.step, *(before.kept_step for before in last if before)}
        for other in self.best_paths():
            if step_of(other) not in kept:
                other.unlink()

    def best_paths(self) -> list[pathlib.Path]:
        """Return the best checkpoint, and the one that was the best at the last `save`; none if none is kept."""
        return sorted(path for path in self.folder.iterdir() if BEST.fullmatch(path.name))

    def lacks_best(self, progress: Progress) -> bool:
        """Return whether there is no best checkpoint of `progress.kept_step`.

        So it is if none was kept yet, and if the one there is is of steps that were done anew with other settings. One
        of a later step than `progress.step` was written by a process that was killed, and will come again.
        """
        steps = [step_of(path) for path in self.best_paths()]
        return progress.kept_step not in steps and all(step <= progress.step for step in steps)

    def _write(
        self, path: pathlib.Path, model: keras.Model, optimizer: keras.optimizers.Optimizer, progress: Progress
    ) -> None:
        base, variables = base_of(model), named_variables(model, optimizer)
        arrays: dict[str, Any] = {
            name: np.asarray(variable.value) for name, variable in variables.items() if name not in base
        }
        arrays["progress"] = np.array(json.dumps(dataclasses.asdict(progress)))
        if base:
            if not (self.paths() and self.base.exists()):  # one without a checkpoint may be of another start
                write_atomically(self.base, lambda file: np.savez(file, **base))  # NumPy reads one at a time
            arrays["base"] = np.array(fingerprint(self.base))
        write_atomically(path, lambda file: np.savez(file, **arrays))

    def restore_latest(self, model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Progress | None:
        """Load the newest intact checkpoint into model and optimizer. Returns its Progress, or None if there is none.

        A damaged checkpoint is renamed, with a warning, and the one before it is used. Raises CheckpointError if a
        checkpoint belongs to another model, or if there are checkpoints and all of them are damaged: these keep their
        names, so that the run still counts as begun. If the file system refuses to read a checkpoint, that raises
        CheckpointError too: it is not damaged. Parts of checkpoints, left by processes that were killed, are removed.
        """
        for path in self.folder.iterdir():
            if PART.fullmatch(path.name):
                path.unlink()
        damaged = []
        for path in reversed(self.paths()):
            try:
                arrays = read_checkpoint(path)
            except DamagedCheckpoint as error:
                damaged.append((path, error))
                continue
            for other, damage in damaged:
                aside = other.rename(other.with_name(other.name + ".damaged"))
                log.warning("%s Renamed it to %s; using a checkpoint before it.", damage, aside.name)
            base, variables = base_of(model), named_variables(model, optimizer)
            assign(path, arrays, {name: variable for name, variable in variables.items() if name not in base})
            if base:
                self._restore_base(path, arrays, base)
            return progress_of(arrays)
        if damaged:
            raise CheckpointError(
                f"All checkpoints in {self.folder} are damaged. To train from the beginning, use another run_folder."
            )
        return None

    def _restore_base(self, path: pathlib.Path, arrays: dict[str, np.ndarray], base: dict[str, keras.Variable]) -> None:
        """Load base.npz. Raises CheckpointError if it is gone, damaged, or not that of the checkpoint at `path`."""
        advice = "Put the right one back, or begin again in another run_folder."
        if not self.base.exists():
            raise CheckpointError(f"{self.base} is gone, the weights to which {path.name} adds its adapters. {advice}")
        if fingerprint(self.base) != str(arrays.get("base")):
            raise CheckpointError(f"{self.base} has other weights than those to which {path.name} belongs. {advice}")
        for name, variable in base.items():
            variable.assign(read_checkpoint(self.base, name)[name])

    def average(self, count: int) -> tuple[dict[str, np.ndarray], list[pathlib.Path]]:
        """Return the mean weights of the last `count` checkpoints (section 6.1), by weight path, and those checkpoints.

        With LoRA they are those that it trains: the mean of each of its matrices. The checkpoint of step 0, which is
        untrained, is in no average, and neither is a damaged one, which a warning names. Raises
        CheckpointError if all are damaged.
        """
        paths, total = [], {}
        for path in reversed([path for path in self.paths() if step_of(path) > 0]):
            try:
                weights = read_weights(path)
            except CheckpointError as error:
                log.warning("%s It is in no average.", error)
                continue
            paths.insert(0, path)
            for name, array in weights.items():
                total[name] = total.get(name, 0.0) + array.astype("float64")
            if len(paths) == count:
                break
        if not paths:
            raise CheckpointError(
                f"No checkpoint in {self.folder} can be read: there are no weights to translate with. To train from "
                "the beginning, use another run_folder."
            )
        return {name: (array / len(paths)).astype("float32") for name, array in total.items()}, paths


def step_of(path: pathlib.Path) -> int:
    """Return the step of a checkpoint, from its name."""
    return int(path.stem.rpartition("-")[2])


def last_progress(folder: str | os.PathLike) -> Progress | None:
    """Return the Progress of the newest intact checkpoint in a folder; None if there is none.

    Reads no weights, so that damage to these alone is not noticed. Raises CheckpointError if the file system refuses.
    """
    paths = sorted(pathlib.Path(folder).glob(CHECKPOINTS))
    for path in reversed(paths):
        try:
            return progress_at(path)
        except DamagedCheckpoint:
            continue
    return None


def progress_in(path: pathlib.Path) -> Progress | None:
    """Return the Progress that a checkpoint holds; None if it is damaged or cannot be read."""
    try:
        return progress_at(path)
    except CheckpointError:
        return None


def progress_at(path: pathlib.Path) -> Progress:
    """Return the Progress that a checkpoint holds. Raises as `read_checkpoint`, for a strange Progress too."""
    arrays = read_checkpoint(path, "progress")
    try:
        return progress_of(arrays)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DamagedCheckpoint(f"{path} is damaged: its progress cannot be read ({error}).") from None


def progress_of(arrays: dict[str, Any]) -> Progress:
    """The Progress among the arrays of a checkpoint. One of before cores were counted had the cores of now."""
    values = json_of(str(arrays["progress"]))
    values.setdefault("core_seconds", values["seconds"] * processor_cores())
    return Progress(**values)


def is_interim(path: pathlib.Path) -> bool:
    """Return whether a checkpoint was written because the run was stopped."""
    progress = progress_in(path)
    return progress is not None and progress.is_interim


def assign(path: pathlib.Path, arrays: dict[str, np.ndarray], variables: dict[str, keras.Variable]) -> None:
    """Assign the arrays of the checkpoint at `path` to variables by name. Raises CheckpointError if they do not fit."""
    for name in (*variables, "progress"):
        if name not in arrays:
            raise CheckpointError(f"{path} has no {name}: it was written by another model or optimizer.")
    for name, variable in variables.items():
        if arrays[name].shape != tuple(variable.shape):
            raise CheckpointError(
                f"{path} has {name} of shape {arrays[name].shape}; the configuration asks for "
                f"{tuple(variable.shape)}. Use the configuration of that run, or another run_folder."
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])


def named_variables(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> dict[str, keras.Variable]:
    """Return everything that a checkpoint holds beside the progress, by its name in the file.

    An optimizer may give two variables one path, as Keras' Adafactor does, or leave a path to Keras, which numbers it
    by what else the process has made. Such a variable also has its place among all of them in its name.
    """
    named = {f"model/{variable.path}": variable for variable in model.weights}
    counts = collections.Counter(variable.path for variable in optimizer.variables)
    for place, variable in enumerate(optimizer.variables):
        path = NUMBERED.sub("variable", variable.path)
        named[f"optimizer/{path}" if path == variable.path and counts[path] == 1 else f"optimizer/{path}/{place}"] = (
            variable
        )
    return named


def base_of(model: keras.Model) -> dict[str, keras.Variable]:
    """Return the weights that training with LoRA leaves as they are, by their names in base.npz; none without LoRA."""
    if not has_adapters(model):
        return {}
    return {f"model/{weight.path}": weight for weight in model.weights if not weight.trainable}


def fingerprint(path: pathlib.Path) -> str:
    """Return a hash of the names and checksums of the arrays in an archive; it reads none of them.

    Raises DamagedCheckpoint if that is no archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sums = [f"{member.filename} {member.CRC}" for member in archive.infolist()]
    except (OSError, *DAMAGED_ARCHIVE) as error:
        raise DamagedCheckpoint(f"{path} is damaged: {first_line_of(error)}") from None
    return hashlib.sha256("\n".join(sorted(sums)).encode()).hexdigest()


def read_checkpoint(path: pathlib.Path, prefix: str = "", ends: tuple[str, ...] = ("",)) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint whose names start with `prefix` and end with one of `ends`.

    Raises DamagedCheckpoint for a damaged file, and CheckpointError for one that the file system refuses to read.
    """
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files if name.startswith(prefix) and name.endswith(ends)}
    except (OSError, *DAMAGED_ARCHIVE) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: damage points elsewhere
            raise CheckpointError(
                f"{path} cannot be read: {error.strerror}. Run the same command again when it can be, or move it away "
                "to go on from the checkpoint before it."
            ) from None
        raise DamagedCheckpoint(f"{path} is damaged: {first_line_of(error)}") from None


def read_weights(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the weights of a checkpoint that translate, by weight path. Raises CheckpointError for a damaged file.

    They are the model's, or if the optimizer is schedule-free their average, for which it reads that one's arrays.
    """
    weights = {name.removeprefix("model/"): array for name, array in read_checkpoint(path, "model/").items()}
    return averages_in(weights, read_checkpoint(path, "optimizer/", (Z, BETA)))


def assign_weights(model: keras.Model, arrays: dict[str, np.ndarray]) -> None:
    """Assign arrays, by weight path, to weights of a model; those of which there is none stay as they are."""
    variables = {variable.path: variable for variable in model.weights}
    for path, array in arrays.items():
        variables[path].assign(array)


def restore_everywhere(checkpoints: Checkpoints, model: keras.Model, workers: Workers) -> Progress | None:
    """Load the chief's newest intact checkpoint on every worker. Returns its Progress, or None if there is none."""

    def send(*paths: pathlib.Path | None) -> list[pathlib.Path | None]:
        paths = paths if base_of(model) else paths[:1]
        return [workers.file_of_chief(path, checkpoints.folder) for path in paths]

    if workers.is_chief:
        progress = checkpoints.restore_latest(model, model.optimizer)
        send(*(checkpoints.paths()[-1], checkpoints.base) if progress else (None, None))
        return progress
    copies = [copy for copy in send(None, None) if copy]
    if not copies:
        return None
    progress = checkpoints.restore_latest(model, model.optimizer)
    for copy in copies:
        copy.unlink()
    return progress
