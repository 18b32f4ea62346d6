"""A RUN of the command line as a folder."""

import pathlib

from keras_transformer.ground.files import sha256_of
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.models.hub import download, is_on_hub
from keras_transformer.runs.run_folder import RunFolder


def opened(run: str) -> pathlib.Path:
    """Return the folder of a RUN: itself, or for hf://USER/MODEL[@REVISION] what is downloaded from there.

    Raises UserError if it cannot be had from the hub. Whether a folder holds a run is for others to see.
    """
    if not is_on_hub(run):
        return pathlib.Path(run)
    folder = download(run)
    with quiet_imports(without=UNUSED_IN_TRANSLATION):
        from keras_transformer.models.presets import run_in
        from keras_transformer.translation.parallel import tune_for_translation

    tune_for_translation()  # before TensorFlow is used to import a MarianMT model
    return run_in(folder)


def sums_of(run: pathlib.Path, shortlist: bool, calibration: bool) -> dict[str, str]:
    """Return the SHA-256 of each file of a run, by its name, that decides outputs beside weights and options.

    `shortlist` and `calibration`: whether the run's own is used.
    """
    folder = RunFolder(run)
    used = [path for path, is_used in ((folder.shortlist, shortlist), (folder.calibration, calibration)) if is_used]
    return {path.name: sha256_of(path) for path in used if path.exists()}
