"""Which kind of folder a path is: a run, a preset, an export of any format; each is then looked at as such."""

import pathlib
from collections.abc import Iterator

from keras_transformer.doctor.exports import ctranslate2_model, lite_model, saved_models, transformers_model, version
from keras_transformer.doctor.finding import Finding, missing, ok
from keras_transformer.doctor.runs import run
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.runs.run_folder import SAVED_MODEL, RunFolder, holds_preset


def folder(path: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on whether the run or the export at `path` is whole."""
    if not path.exists():
        yield missing(f"there is no {path}", "check the name: RUN is what train wrote, EXPORT what export --to wrote")
    elif not path.is_dir():
        yield missing(f"{path} is a file", "give the folder of a run or an export")
    elif (path / SAVED_MODEL).exists():
        yield from version(path)
    elif is_lite_folder(path):
        yield from lite_model(path)
    elif (path / "model.bin").exists():
        yield from ctranslate2_model(path)
    elif holds_preset(path) or is_run(RunFolder(path)):
        yield ok(f"{path} is a {'preset' if holds_preset(path) else 'run folder'}")
        yield from run(RunFolder(path))
    elif (path / "config.json").exists():
        yield from transformers_model(path)
    elif any(child.name.isdigit() and child.is_dir() for child in path.iterdir()):
        yield from saved_models(path)
    else:
        yield missing(f"{path} is neither a run folder nor an export", "give what train, import or export wrote")


def is_run(run_folder: RunFolder) -> bool:
    """Return whether a folder holds a run, finished or not."""
    return any(file.exists() for file in (run_folder.model, run_folder.config, run_folder.weights)) or (
        run_folder.has_begun()
    )
