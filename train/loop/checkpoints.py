"""Checkpoints: model, optimizer and step in one file each; the last ones averaged into what translation uses."""

import json
import logging
import pathlib
import re
import zipfile
import zlib

import numpy as np

from keras_transformer.errors import UserError
from keras_transformer.files import write_atomically

log = logging.getLogger("train")

NAME = re.compile(r"step-(\d{8})\.npz")


class CheckpointError(UserError):
    """A checkpoint that cannot be used; the message says which and why."""


class Checkpoints:
    """The folder `checkpoints/` of a run: step-00001000.npz and so on, the last `keep` of them.

    A file holds every weight under "model/<path>", every optimizer variable (the count of updates among them) under
    "optimizer/<path>", and `progress` (JSON of a Progress). It is written aside and renamed, so a file
    under its own name is whole; a zip archive carries a checksum for each array, so a torn one is noticed when read.
    """

    def __init__(self, folder, keep=5):
        self.folder, self.keep = pathlib.Path(folder), keep
        self.folder.mkdir(parents=True, exist_ok=True)

    def paths(self):
        """All checkpoints, oldest first."""
        return sorted(path for path in self.folder.iterdir() if NAME.fullmatch(path.name))

    def save(self, step, model, optimizer, progress):
        """Write the checkpoint of `step`, then remove those before the last `keep`. Returns its path."""
        path = self.folder / f"step-{step:08d}.npz"
        arrays = {name: np.asarray(variable.value) for name, variable in named_variables(model, optimizer).items()}
        arrays["progress"] = np.array(json.dumps({**progress, "step": step}))
        write_atomically(path, lambda file: np.savez(file, **arrays))
        for old in self.paths()[: -self.keep]:
            old.unlink()
        return path

    def restore_latest(self, model, optimizer):
        """Load the newest whole checkpoint into model and optimizer. Returns its progress, or None if there is none.

        A damaged one is set aside under another name, and said; the one before it is used. Raises CheckpointError for
        one of another model, and where there are checkpoints but none is whole.
        """
        damaged = None
        while paths := self.paths():
            try:
                arrays = read_checkpoint(paths[-1])
            except CheckpointError as error:
                damaged = paths[-1].rename(paths[-1].with_name(paths[-1].name + ".damaged"))
                log.warning("%s It is now %s; the one before it is used.", error, damaged.name)
                continue
            assign(paths[-1], arrays, named_variables(model, optimizer))
            return json.loads(str(arrays["progress"]))
        if damaged:
            raise CheckpointError(f"No checkpoint in {self.folder} is whole. To begin again, use another run_folder.")
        return None

    def average(self, count):
        """Mean of the weights of the last `count` checkpoints (section 6.1), but for untrained ones, of step 0.

        Returns a dict from weight path to array, and the paths of the checkpoints used.
        """
        trained = [path for path in self.paths() if int(NAME.fullmatch(path.name)[1])]
        paths, total = trained[-count:], {}
        for path in paths:
            for name, array in read_checkpoint(path, "model/").items():
                total[name] = total.get(name, 0.0) + array.astype("float64")
        means = {name.removeprefix("model/"): (array / len(paths)).astype("float32") for name, array in total.items()}
        return means, paths


def assign(path, arrays, variables):
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


def named_variables(model, optimizer):
    named = {f"model/{variable.path}": variable for variable in model.weights}
    return named | {f"optimizer/{variable.path}": variable for variable in optimizer.variables}


def read_checkpoint(path, prefix=""):
    """The arrays of a checkpoint whose name starts with `prefix`. Raises CheckpointError for a damaged file."""
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files if name.startswith(prefix)}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}.") from None


def assign_weights(model, arrays):
    """Assign a dict from weight path to array."""
    for variable in model.weights:
        variable.assign(arrays[variable.path])


def restore_everywhere(checkpoints, model, broadcast):
    """Load the chief's newest whole checkpoint on every worker. Returns its progress, or None if there is none."""
    if not broadcast.worker.is_chief:
        if copy := broadcast.file(None, checkpoints.folder):
            progress = checkpoints.restore_latest(model, model.optimizer)
            copy.unlink()
            return progress
        return None
    progress = checkpoints.restore_latest(model, model.optimizer)
    broadcast.file(checkpoints.paths()[-1] if progress else None, checkpoints.folder)
    return progress
