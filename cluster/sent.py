"""What Spark sends to the workers: this project's Python in one file, and the export in another."""

import pathlib
import zipfile

import keras_transformer
from keras_transformer.ground.files import files_in


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
