"""pytorch_model.bin, read without PyTorch: weights are floats and names, so nothing else in such a file is followed.

What `torch.save` writes is a pickle, and unpickling calls what the file names. Here it may name three functions that
say where an array lies, and nothing else. Two formats are read: the archive of PyTorch 1.6 and later, and the one
before it, which many models of 2020 have.
"""

import functools
import math
import os
import pickle
import zipfile
from collections.abc import Callable
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from keras_transformer.models.imported.arrays import StoredArrays, as_float32
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage

ZIP = b"PK\x03\x04"
BEFORE_1_6 = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # a pickle of PyTorch's magic number
DTYPES = {"DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "BFloat16Storage": "<u2"}


class Storage(NamedTuple):
    """The floats that lie in one piece in a file, by the key that the file has for them."""

    key: str
    dtype: str


class View(NamedTuple):
    """An array: where it begins in a storage, its shape, and how many floats lie between neighbours of each axis."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class StorageType(NamedTuple):
    """What `torch.FloatStorage` and its like become."""

    dtype: str


class Function(NamedTuple):
    """What a pickle may call. A tuple, so that the pickle cannot change it."""

    function: Callable

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


class Weights(dict):
    """What becomes of an OrderedDict: a dict that has no attributes, whatever the pickle wants to give it."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        """Ignore the attribute _metadata, which PyTorch sets."""


FUNCTIONS = {
    ("collections", "OrderedDict"): Function(Weights),
    ("torch._utils", "_rebuild_tensor_v2"): Function(
        lambda storage, offset, shape, strides, *_: View(storage, offset, shape, strides)
    ),
    ("torch._utils", "_rebuild_parameter"): Function(lambda view, *_: view),
}


class WeightsUnpickler(pickle.Unpickler):
    """Unpickles a dict of Views, and refuses a pickle that names anything else."""

    def __init__(self, file: IO[bytes]):
        super().__init__(file)
        self.storages = {}  # by key

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in DTYPES:
            return StorageType(DTYPES[name])
        if (module, name) not in FUNCTIONS:
            raise ImportedModelError(f"It names {module}.{name}, which is no part of weights that are floats: refused.")
        return FUNCTIONS[module, name]

    def persistent_load(self, parts: tuple) -> Storage:
        _, storage_type, key, *_ = parts
        if not isinstance(storage_type, StorageType) or not isinstance(key, str):
            raise ValueError("it describes a storage otherwise than PyTorch")
        return self.storages.setdefault(key, Storage(key, storage_type.dtype))


def read_torch(path: str | os.PathLike) -> StoredArrays:
    """Return the arrays of a pytorch_model.bin, as float32.

    Raises ImportedModelError if the file is damaged, or holds anything but arrays of floats by name, and OSError if it
    cannot be read.
    """
    with refusing_damage(path, "a file of PyTorch's weights"), open(path, "rb") as file:
        beginning = file.read(len(BEFORE_1_6))
        file.seek(0)
        if beginning.startswith(ZIP):
            views, read = views_in_archive(file)
        elif beginning == BEFORE_1_6:
            views, read = views_before_1_6(file)
        else:
            raise ValueError("it begins otherwise")
        if not isinstance(views, dict):
            raise ValueError("it holds no arrays by name")
        arrays = {name: functools.partial(array_as_float32, path, view, name, read) for name, view in views.items()}
        return StoredArrays(arrays)


def array_as_float32(path: str | os.PathLike, view: View, name: Any, read: Callable[[Storage], bytes]) -> np.ndarray:
    """Read the array that a view describes, as float32."""
    with refusing_damage(path, "a file of PyTorch's weights"):
        return as_float32(array_of(view, name, read))


def views_in_archive(file: BinaryIO) -> tuple[dict, Callable[[Storage], bytes]]:
    """Return the pickled dict of an archive, and the function that reads a storage."""
    archive = zipfile.ZipFile(file.name)  # which opens the file anew when an array is read
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its part {member.filename} is compressed")
    [pickled] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    folder = pickled.removesuffix("data.pkl")
    if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") != b"little":
        raise ValueError("its numbers are in big endian")
    with archive.open(pickled) as part:
        views = WeightsUnpickler(part).load()
    return views, lambda storage: archive.read(f"{folder}data/{storage.key}")


def views_before_1_6(file: BinaryIO) -> tuple[dict, Callable[[Storage], bytes]]:
    """Return the pickled dict of a file that an older PyTorch wrote, and the function that reads a storage.

    The file is five pickles, of a magic number, a version, the machine, the dict and the keys of storages, and then
    for each key a number of floats and these floats.
    """
    for _ in range(3):
        WeightsUnpickler(file).load()
    unpickler = WeightsUnpickler(file)
    views, keys, raw = unpickler.load(), WeightsUnpickler(file).load(), {}
    for key in keys:
        count = int.from_bytes(file.read(8), "little")
        raw[key] = file.read(count * np.dtype(unpickler.storages[key].dtype).itemsize)
    return views, lambda storage: raw[storage.key]


def array_of(view: View, name: Any, read: Callable[[Storage], bytes]) -> np.ndarray:
    """Return the array that a view describes. Raises ValueError if it reaches beyond its storage."""
    if not isinstance(name, str):
        raise ValueError("it has an array without a name")
    if not isinstance(view, View) or not isinstance(view.storage, Storage):
        raise ValueError(f"what it has under {name!r:.60} is no array")
    floats = np.frombuffer(read(view.storage), view.storage.dtype)
    if not all(type(number) is int and number >= 0 for number in (view.offset, *view.shape, *view.strides)):
        raise ValueError(f"the array {name} has a place or a shape that is not of whole numbers")
    last = view.offset + sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    if last >= len(floats) or math.prod(view.shape) > len(floats):
        raise ValueError(f"the array {name} reaches to its float {last + 1:,}, and there are {len(floats):,}")
    steps = [stride * floats.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(floats[view.offset :], view.shape, steps).copy()
