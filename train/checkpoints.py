"""Checkpoints: model, optimizer and step in one file each; the last ones averaged into what translation uses."""

import json
import os
import pathlib
import re
import zipfile

import numpy as np

NAME = re.compile(r"step-(\d{8})\.npz")


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says which and why."""


class Checkpoints:
    """The folder `checkpoints/` of a run: step-00001000.npz and so on, the last `keep` of them.

    A file holds every weight under "model/<path>", every optimizer variable (the count of updates among them) under
    "optimizer/<path>", and `progress` (JSON: step, best score). It is written aside and renamed, so a file under its
    own name is whole; a zip archive carries a checksum for each array, so a torn one is noticed when read.
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
        write_whole(path, lambda file: np.savez(file, **arrays))
        for old in self.paths()[: -self.keep]:
            old.unlink()
        return path

    def restore_latest(self, model, optimizer):
        """Load the newest checkpoint into model and optimizer. Returns its progress, or None if there is none."""
        paths = self.paths()
        if not paths:
            return None
        arrays = read_checkpoint(paths[-1])
        for name, variable in named_variables(model, optimizer).items():
            if name not in arrays:
                raise CheckpointError(f"{paths[-1]} has no {name}: it was written by another model or optimizer.")
            if arrays[name].shape != tuple(variable.shape):
                raise CheckpointError(
                    f"{paths[-1]} has {name} of shape {arrays[name].shape}; the configuration asks for "
                    f"{tuple(variable.shape)}. Use the configuration of that run, or another run folder."
                )
            variable.assign(arrays[name])
        return json.loads(str(arrays["progress"]))

    def average(self, count):
        """Mean of the weights of the last `count` checkpoints (section 6.1).

        Returns a dict from weight path to array, and the paths of the checkpoints used.
        """
        paths, total = self.paths()[-count:], {}
        for path in paths:
            for name, array in read_checkpoint(path, "model/").items():
                total[name] = total.get(name, 0.0) + array.astype("float64")
        means = {name.removeprefix("model/"): (array / len(paths)).astype("float32") for name, array in total.items()}
        return means, paths


def named_variables(model, optimizer):
    named = {f"model/{variable.path}": variable for variable in model.weights}
    return named | {f"optimizer/{variable.path}": variable for variable in optimizer.variables}


def read_checkpoint(path, prefix=""):
    """The arrays of a checkpoint whose name starts with `prefix`. Raises CheckpointError for a damaged file."""
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files if name.startswith(prefix)}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}). Remove it to go on from the one before.") from None


def write_whole(path, write):
    """Call `write(file)` on a file aside, flush it to the disk, and rename it to `path`."""
    aside = path.with_name(path.name + ".part")
    with open(aside, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def assign_weights(model, arrays):
    """Assign a dict from weight path to array."""
    for variable in model.weights:
        variable.assign(arrays[variable.path])
