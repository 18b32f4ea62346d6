"""What Spark sends to the workers: this project's Python in one file, and the export in another."""

import os
import pathlib
import zipfile

import keras_transformer
from keras_transformer.ground.files import files_in
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.runs.run_folder import SAVED_MODEL, refuse_run

from .errors import ClusterError


def found_export(folder: str | os.PathLike) -> pathlib.Path:
    """Return the folder of a LiteRT model or of a SavedModel: `folder` or its newest numbered version.

    Raises ClusterError if there is none.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise ClusterError(
            f"{folder} {kind}; it must be a folder that `keras-transformer export RUN --to FOLDER` wrote."
        )
    if is_lite_folder(folder) or (folder / SAVED_MODEL).is_file():
        return folder
    versions = [path for path in folder.iterdir() if path.name.isdecimal() and (path / SAVED_MODEL).is_file()]
    if not versions:
        refuse_run(folder, ClusterError)
        raise ClusterError(
            f"{folder} holds no exported version. `keras-transformer export RUN --to {folder}` writes one."
        )
    return max(versions, key=lambda path: int(path.name))


def zip_export(export: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    """Write the files of an export into a zip at `path`, uncompressed: weights hardly shrink. Returns the path."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in files_in(export):
            archive.write(file, file.relative_to(export))
    return path


def zip_project(path: pathlib.Path) -> pathlib.Path:
    """Write the modules of this project that workers import into a zip at `path`. Returns the path.

    In a checkout this package stands beside keras_transformer, otherwise inside it.
    """
    library, own = pathlib.Path(keras_transformer.__file__).parent, pathlib.Path(__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (library,) if own.parent == library else (library, own):
            for file in files_in(folder, "*.py"):
                archive.write(file, file.relative_to(folder.parent))
    return path
