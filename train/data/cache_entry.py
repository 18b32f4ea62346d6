"""An encoded split on disk: arrays that are written while they grow, and read without being loaded."""

import collections
import contextlib
import hashlib
import json
import os
import zlib

import numpy as np

from train.data.encoding import EncodedPairs, Sentences, nothing_left

ARRAYS = ("source_ids", "source_offsets", "target_ids", "target_offsets", "keys")
SAMPLE = 2**16  # bytes at the beginning, in the middle and at the end of a file that are checked when it is opened


class DamagedError(Exception):
    """An entry that is not as it was written; the message says in what."""


def write_entry(folder, chunks, split, origin):
    """Write the arrays while `chunks`, the EncodedPairs of `split`, come, holding one at a time; then meta.json.

    origin: what the entry was made from, for a reader of meta.json. Raises CorpusError if no pair is left, and OSError
    where there is no room.
    """
    skipped, pairs = collections.Counter(), 0
    with contextlib.ExitStack() as stack:
        arrays = {name: stack.enter_context(GrowingArray(folder / f"{name}.npy")) for name in ARRAYS}
        ends = dict.fromkeys(("source", "target"), 0)
        for side in ends:
            arrays[f"{side}_offsets"].append(np.zeros(1, np.int64))
        for chunk in chunks:
            for side in ends:
                sentences = getattr(chunk, side)
                arrays[f"{side}_ids"].append(sentences.ids)
                arrays[f"{side}_offsets"].append(sentences.offsets[1:] + ends[side])
                ends[side] += len(sentences.ids)
            arrays["keys"].append(chunk.keys)
            skipped += chunk.skipped
            pairs += len(chunk)
    skipped += split.skipped
    if not pairs:
        raise nothing_left(split, skipped)
    files = {f"{name}.npy": _size_and_checksum(folder / f"{name}.npy") for name in ARRAYS}
    meta = {"origin": origin, "pairs": pairs, "skipped": skipped, "files": files}
    text = json.dumps(meta | {"checksum": _checksum(meta)}, indent=1)
    with open(folder / "meta.json", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def open_entry(folder):
    """The EncodedPairs in `folder`; their arrays are mapped, so that only what is used is read.

    Raises DamagedError where a file is missing, has another size, or differs in the first, middle or last `SAMPLE`
    bytes, or where meta.json differs in anything. The other bytes of a large file are not looked at: reading gigabytes
    at every start would cost what the cache saves.
    """
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        checksum = meta.pop("checksum")
        if checksum != _checksum(meta):
            raise DamagedError("meta.json has another checksum")
        for name, expected in meta["files"].items():
            if _size_and_checksum(folder / name) != expected:
                raise DamagedError(f"{name} has another size or checksum")
        arrays = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ARRAYS}
    except OSError as error:
        raise DamagedError(f"{os.path.basename(error.filename or '')}: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:  # what json, NumPy and a strange meta.json raise
        raise DamagedError(f"{type(error).__name__}: {error}") from None
    source, target = (Sentences(arrays[f"{side}_ids"], arrays[f"{side}_offsets"]) for side in ("source", "target"))
    return EncodedPairs(source, target, collections.Counter(meta["skipped"]), arrays["keys"])


def _size_and_checksum(path):
    """[bytes, CRC of the first, middle and last `SAMPLE` of them]"""
    size, checksum = path.stat().st_size, 0
    with open(path, "rb") as file:
        for start in (0, size // 2, max(0, size - SAMPLE)):
            file.seek(start)
            checksum = zlib.crc32(file.read(SAMPLE), checksum)
    return [size, checksum]


def _checksum(meta):
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


class GrowingArray:
    """A .npy file of one dimension that is appended to. Its type is that of what comes first."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self._file, self._dtype, self._count = open(self.path, "w+b"), None, 0
        return self

    def append(self, values):
        if self._dtype is None:
            self._dtype = values.dtype
            self._write_header()
        self._file.write(np.ascontiguousarray(values).data)
        self._count += len(values)

    def __exit__(self, *_):
        with self._file:
            if self._dtype is not None:
                self._file.seek(0)
                self._write_header()
            self._file.flush()
            os.fsync(self._file.fileno())

    def _write_header(self):
        """Of the same size whatever the count: NumPy leaves room in it for an array to grow."""
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._count,)}
        np.lib.format.write_array_header_1_0(self._file, header)
