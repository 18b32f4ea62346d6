"""The numbered versions of an export, as whoever opens one finds them: FOLDER/1, FOLDER/2, ..."""

import os
import pathlib

from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.runs.run_folder import SAVED_MODEL, refuse_run

HIGHEST = 2**63 - 1  # the highest version that the messages of TensorFlow Serving can hold
LANGUAGES = "assets.extra/languages.json"  # the path in a version of what its model is told languages by, if known
MOST_BYTES = 1 << 20  # of a file that a version has beside its graph
CERTIFICATE = "certificate.json"  # in a version, if it was compared with its run
LITERT = "assets.extra/litert"  # the path in a version of a LiteRT model, which TensorFlow Serving does not read
WARM_UP_REQUESTS = "assets.extra/tf_serving_warmup_requests"  # the path in a version that TensorFlow Serving reads
UNFINISHED = ".unfinished-"  # how the name of a version begins while it is written


class ExportError(UserError):
    """An export that cannot be written or used; the message gives the reason."""


def numbered_versions(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """Return the folder of each version in `folder` by its number, ascending, incomplete versions included.

    The name may begin with zeros, as in `00000123`. Of two names of a number, the shorter one counts.
    """
    names = sorted((child.name for child in pathlib.Path(folder).iterdir()), key=len, reverse=True)
    paths = {int(name): pathlib.Path(folder) / name for name in names if is_number(name)}
    return dict(sorted(paths.items()))


def version_numbers(folder: str | os.PathLike) -> list[int]:
    """Return the version numbers in `folder`, ascending, incomplete versions included."""
    return list(numbered_versions(folder))


def is_number(name: str) -> bool:
    """Return whether the name of a folder is the number of a version: digits, of a number that has 64 bits."""
    return name.isascii() and name.isdigit() and int(name) <= HIGHEST


def find_version(folder: str | os.PathLike) -> pathlib.Path:
    """Return `folder` itself if it is a version, else the newest version in it. Raises ExportError if it has none."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise ExportError(
            f"{folder} {kind}; it must be a folder that `keras-transformer export RUN --to FOLDER` wrote."
        )
    if is_version(folder):
        return folder
    complete = [path for path in numbered_versions(folder).values() if is_version(path)]
    if not complete:
        refuse_run(folder, ExportError)
        if is_lite_folder(folder):
            raise ExportError(
                f"{folder} is a LiteRT model alone, which servers do not read: `keras-transformer export RUN --to "
                "FOLDER --litert` puts one beside the graph that they read."
            )
        raise ExportError(
            f"{folder} holds no exported version. `keras-transformer export RUN --to {folder}` writes one."
        )
    return complete[-1]


def find_export(folder: str | os.PathLike) -> pathlib.Path:
    """Return `folder` if it is a LiteRT model, else what `find_version` returns."""
    return pathlib.Path(folder) if is_lite_folder(folder) else find_version(folder)


def is_version(folder: pathlib.Path) -> bool:
    """Return whether a folder is an exported version."""
    return (folder / SAVED_MODEL).is_file()


def languages_in(version: str | os.PathLike) -> Languages:
    """Return the languages of a version's model, if it says them. Raises ExportError if the file is damaged."""
    path = pathlib.Path(version) / LANGUAGES
    try:
        with path.open("rb") as file:
            return Languages.of(json_of(file.read(MOST_BYTES)))
    except FileNotFoundError:
        return NO_LANGUAGES
    except (OSError, ValueError, UserError) as error:
        raise ExportError(f"{path} cannot be read: {first_line_of(error)} Export the run again.") from None
