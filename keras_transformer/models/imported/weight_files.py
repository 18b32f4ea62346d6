"""The weights in a folder of Hugging Face: one file, or several and an index that tells which has which array."""

import functools
import operator
import pathlib
import re

from keras_transformer.models.imported.arrays import read_json, read_safetensors
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.families import INDEX, WEIGHTS
from keras_transformer.models.imported.torch_file import read_torch
from keras_transformer.models.imported.weights import Arrays

FILE = re.compile(r"[\w-][\w.-]*")  # beside the index, and no pattern of names


def read_weights(folder: pathlib.Path) -> Arrays:
    """Read the first of WEIGHTS that is there, as one file or as those of an index.

    Raises ImportedModelError if there is none, or it is damaged, and OSError if a file cannot be read.
    """
    for name, read in zip(WEIGHTS, (read_safetensors, read_torch), strict=True):
        path, index = folder / name, folder / (name + INDEX)
        if path.exists():
            return Arrays(read(path), path)
        if index.exists():
            files = files_of_arrays(index)
            arrays = functools.reduce(operator.or_, (read(folder / file) for file in sorted(set(files.values()))))
            if missing := sorted(files.keys() - arrays.keys()):
                raise ImportedModelError(f"{index} tells of an array {missing[0]}, which no file has. Copy all again.")
            return Arrays(arrays, index)
    raise ImportedModelError(f"{folder} has no {' or '.join(WEIGHTS)}: other files of weights cannot be imported.")


def files_of_arrays(index: pathlib.Path) -> dict[str, str]:
    """Return in which file each array is, by an index. Raises ImportedModelError if it tells of none, or of others'."""
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict) or not files or not all(map(is_beside, files.values())):
        raise ImportedModelError(f"{index} has no weight_map from arrays to names of files beside it: copy it again.")
    return files


def is_beside(name: object) -> bool:
    return isinstance(name, str) and FILE.fullmatch(name) is not None
