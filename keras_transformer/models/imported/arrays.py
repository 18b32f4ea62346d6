"""Files of arrays: model.safetensors of Hugging Face and model.npz of Marian, read without their packages."""

import math
import os
import pathlib
import zipfile

import numpy as np

from keras_transformer.ground.notations import json_of
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage

FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # as safetensors names them; in little endian
LONGEST_HEADER = 100_000_000  # bytes, as the package safetensors has it
MOST_UNPACKED = 20  # times the size of a file: no weights are compressed so far


def read_safetensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a model.safetensors, as float32.

    The file is a length of 8 bytes, so many bytes of JSON, and the raw arrays. Raises ImportedModelError if it is
    damaged or has an array of other numbers than floats, and OSError if it cannot be read.
    """
    with refusing_damage(path, "a file of safetensors"):
        if os.path.getsize(path) < 8:
            raise ValueError("it has fewer than 8 bytes")
        content = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(content[:8].tobytes(), "little")
        if length > min(LONGEST_HEADER, len(content) - 8):
            raise ValueError(f"its header has {length:,} bytes, and the file {len(content):,}")
        header = json_of(content[8 : 8 + length].tobytes().decode("utf-8"))
        if not isinstance(header, dict):
            raise ValueError("its header is not an object of JSON")
        data = content[8 + length :]
        return {name: array_of(entry, data, name) for name, entry in header.items() if name != "__metadata__"}


def array_of(entry: dict, data: np.ndarray, name: str) -> np.ndarray:
    """Return the array that an entry of the header describes, as float32. Raises ValueError if it cannot be."""
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in FLOATS:
        raise ImportedModelError(f"The array {name} is of type {dtype}: only weights that are floats can be imported.")
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError(f"the array {name} has the shape {shape} from byte {start} to {end}")
    expected = math.prod(shape) * np.dtype(FLOATS[dtype]).itemsize
    if not start <= end <= len(data) or end - start != expected:
        raise ValueError(
            f"the array {name} needs {expected:,} bytes, from {start:,} to {end:,} of the {len(data):,} that there are"
        )
    return as_float32(data[start:end].view(FLOATS[dtype]).reshape(shape))


def as_float32(array: np.ndarray) -> np.ndarray:
    """Return floats as float32; whole numbers of 16 bits are the bits of bfloat16, the upper half of a float32."""
    if array.dtype == np.dtype("<u2"):
        return (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):  # infinity is found where weights are checked
        return np.asarray(array, np.float32)


def read_npz(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a model.npz of Marian: floats as float32, others as they are.

    Raises ImportedModelError if the file is damaged or holds Python objects, and OSError if it cannot be read.
    """
    with refusing_damage(path, "an .npz file of arrays"):
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):  # NumPy would take it for a pickle, and advise to load that
                raise ValueError("it is no zip archive")
        with np.load(path, allow_pickle=False) as archive, zipfile.ZipFile(path) as members:
            unpacked = sum(member.file_size for member in members.infolist())
            if unpacked > MOST_UNPACKED * os.path.getsize(path):
                raise ValueError(f"it would unpack to {unpacked:,} bytes")
            arrays = {name: archive[name] for name in archive.files}
    return {name: as_float32(array) if array.dtype.kind == "f" else array for name, array in arrays.items()}


def read_json(path: str | os.PathLike) -> dict:
    """Return the object in a file of JSON. Raises ImportedModelError if it is damaged, OSError if it cannot be read."""
    with refusing_damage(path, "an object of JSON"):
        values = json_of(pathlib.Path(path).read_bytes().decode("utf-8-sig"))
        if not isinstance(values, dict):
            raise ValueError("it holds something else")
        return values
