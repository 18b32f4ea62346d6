"""Files of arrays: model.safetensors of Hugging Face and model.npz of Marian, read without their packages."""

import functools
import math
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.ground.notations import json_of
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage

FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # as safetensors names them; in little endian
LONGEST_HEADER = 100_000_000  # bytes, as the package safetensors has it
MOST_UNPACKED = 20  # times the size of a file: no weights are compressed so far


class StoredArrays(Mapping[str, np.ndarray]):
    """Arrays by name that are read when they are asked for, and not kept: a model need not fit into memory twice.

    read: what reads each of them.
    """

    def __init__(self, read: Mapping[str, Callable[[], np.ndarray]]):
        self._read = dict(read)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._read[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)

    def __or__(self, other: "StoredArrays") -> "StoredArrays":
        return StoredArrays(self._read | other._read)


def read_safetensors(path: str | os.PathLike) -> StoredArrays:
    """Return the arrays of a model.safetensors, as float32.

    The file is a length of 8 bytes, so many bytes of JSON, and the raw arrays. Raises ImportedModelError if it is
    damaged or has an array of other numbers than floats, and OSError if it cannot be read.
    """
    with refusing_damage(path, "a file of safetensors"):
        if os.path.getsize(path) < 8:
            raise ValueError("it has fewer than 8 bytes")
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(LONGEST_HEADER, size - 8):
                raise ValueError(f"its header has {length:,} bytes, and the file {size:,}")
            header = json_of(file.read(length).decode("utf-8"))
        if not isinstance(header, dict):
            raise ValueError("its header is not an object of JSON")
        first, entries = 8 + length, {name: entry for name, entry in header.items() if name != "__metadata__"}
        for name, entry in entries.items():
            check_entry(entry, size - first, name)
        return StoredArrays({name: functools.partial(array_of, entry, path, first) for name, entry in entries.items()})


def check_entry(entry: dict, size: int, name: str) -> None:
    """Raises ValueError if an entry of the header describes no array of floats in `size` bytes."""
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in FLOATS:
        raise ImportedModelError(f"The array {name} is of type {dtype}: only weights that are floats can be imported.")
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError(f"the array {name} has the shape {shape} from byte {start} to {end}")
    expected = math.prod(shape) * np.dtype(FLOATS[dtype]).itemsize
    if not start <= end <= size or end - start != expected:
        raise ValueError(
            f"the array {name} needs {expected:,} bytes, from {start:,} to {end:,} of the {size:,} that there are"
        )


def array_of(entry: dict, path: str | os.PathLike, first: int) -> np.ndarray:
    """Read the array that an entry of the header describes, as float32; the data of the file start at byte `first`.

    It is not mapped: the pages of a mapped file count as memory of the process.
    """
    with refusing_damage(path, "a file of safetensors"):
        count, offset = math.prod(entry["shape"]), first + entry["data_offsets"][0]
        return as_float32(np.fromfile(path, FLOATS[entry["dtype"]], count, offset=offset).reshape(entry["shape"]))


def as_float32(array: np.ndarray) -> np.ndarray:
    """Return floats as float32; whole numbers of 16 bits are the bits of bfloat16, the upper half of a float32."""
    if array.dtype == np.dtype("<u2"):
        return (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):  # infinity is found where weights are checked
        return np.asarray(array, np.float32)


def read_npz(path: str | os.PathLike) -> StoredArrays:
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
            return StoredArrays({name: functools.partial(array_in_npz, path, name) for name in archive.files})


def array_in_npz(path: str | os.PathLike, name: str) -> np.ndarray:
    """Read an array of a model.npz: floats as float32, others as they are."""
    with refusing_damage(path, "an .npz file of arrays"), np.load(path, allow_pickle=False) as archive:
        array = archive[name]
    return as_float32(array) if array.dtype.kind == "f" else array


def read_json(path: str | os.PathLike) -> dict:
    """Return the object in a file of JSON. Raises ImportedModelError if it is damaged, OSError if it cannot be read."""
    with refusing_damage(path, "an object of JSON"):
        values = json_of(pathlib.Path(path).read_bytes().decode("utf-8-sig"))
        if not isinstance(values, dict):
            raise ValueError("it holds something else")
        return values


def read_settings(path: pathlib.Path) -> dict[str, Any]:
    """Return the keys of a file of JSON and their values, without those of null, which are as left out."""
    return {name: value for name, value in read_json(path).items() if value is not None}
