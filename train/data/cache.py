"""The cache of encoded text: ids on disk, found again by what they were made from, and read without being loaded.

An entry is a folder with one `.bin` file per array of EncodedPairs and with meta.json: what the entry was made from,
the dtype of each array, the size and checksum of each file.
"""

import collections
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import pathlib
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.training import RowLengths
from .corpus import CorpusError, Split
from .encoding import EncodedPairs, MarksOf, Sentences, encoded_chunks, nothing_left, unmarked

log = logging.getLogger("train")

FORMAT = 3  # of an entry and of the encoding; a change of either needs another number, and so makes other names
ARRAYS = ("source_ids", "source_offsets", "target_ids", "target_offsets", "keys")
SAMPLE = 2**16  # bytes at the beginning, in the middle and at the end of a file that are checked when it is opened
REPORT_EVERY = 1_000_000  # pairs


class DamagedError(Exception):
    """An entry that is not as it was written; the message says what differs."""


class CorpusCache:
    """A folder of encoded splits, one folder per split, which runs may share. Deleting one costs only time."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = pathlib.Path(folder)

    def encoded(
        self, split: Split, tokenizer: Tokenizer, row_lengths: RowLengths, marks_of: MarksOf = unmarked
    ) -> EncodedPairs:
        """The EncodedPairs of `split`, memory-mapped: found in the cache, or encoded now. Logs which.

        The name of an entry is a hash of everything that decides its content: the fingerprint of the split, the bytes
        of the tokenizer, the row lengths, the marks of its languages and `FORMAT`. One process at a time writes an
        entry; other processes that need it wait, then find it. Raises CorpusError if no pair is left, or if the folder
        cannot be written.
        """
        origin = {
            "format": FORMAT,
            "split": split.fingerprint(),
            "tokenizer": hashlib.sha256(tokenizer.model_bytes).hexdigest(),
            "row_lengths": row_lengths,
        }
        of_entries = list(map(marks_of, split.told))
        if any(map(any, of_entries)):
            origin["marks"] = of_entries
        entry = self.folder / hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:32]
        if (pairs := _open_if_intact(entry)) is None:
            with self._exclusive(entry):
                if (pairs := _open_if_intact(entry, log.warning)) is None:
                    return self._encode(entry, split, encoded_chunks(split, tokenizer, row_lengths, marks_of), origin)
        log.info("%s: %s pairs, found encoded in %s", split.name, f"{len(pairs):,}", entry)
        return pairs

    def _encode(self, entry: pathlib.Path, split: Split, chunks: Iterable[EncodedPairs], origin: dict) -> EncodedPairs:
        started = time.monotonic()
        with self._staging_folder(entry) as folder:
            write_entry(folder, _log_progress(split.name, chunks), split, origin)
        pairs, seconds = open_entry(entry), time.monotonic() - started
        log.info("%s: %s pairs, encoded in %.1f s into %s", split.name, f"{len(pairs):,}", seconds, entry)
        return pairs

    @contextlib.contextmanager
    def _exclusive(self, entry: pathlib.Path) -> Iterator[None]:
        """Hold the lock of the entry. The operating system releases it, however the process ends."""
        with self._as_corpus_error():
            self.folder.mkdir(parents=True, exist_ok=True)
            file = open(entry.with_suffix(".lock"), "ab")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("another process is encoding the same text: waiting for it to write %s", entry)
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                raise CorpusError(
                    f"cache_folder {self.folder} cannot be locked against other processes: {error.strerror}. Set it to "
                    "a file system that has flock, such as a local disk."
                ) from None
            yield

    @contextlib.contextmanager
    def _staging_folder(self, entry: pathlib.Path) -> Iterator[pathlib.Path]:
        """A new folder that is renamed to `entry` once it is complete, and deleted if it is not completed."""
        part = entry.with_suffix(".part")
        try:
            with self._as_corpus_error():
                for old in (part, entry):  # left by a process that was killed; damaged
                    shutil.rmtree(old, ignore_errors=True)
                part.mkdir()
                yield part
                part.replace(entry)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @contextlib.contextmanager
    def _as_corpus_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CorpusError(
                f"The encoded corpus cannot be written to {self.folder}: {error.strerror or error}. It takes about as "
                "much room as the text: make room, or set cache_folder to a place that has it."
            ) from None


def write_entry(folder: pathlib.Path, chunks: Iterable[EncodedPairs], split: Split, origin: dict) -> None:
    """Append the arrays of each of `chunks`, the EncodedPairs of `split`, to the files in `folder`; then meta.json.

    Holds one chunk in memory at a time. origin: what the entry was made from, for a reader of meta.json. Raises
    CorpusError if no pair is left, and OSError if the disk is full.
    """
    skipped, too_long = collections.Counter(), collections.Counter()
    pairs, source_tokens, target_tokens = 0, 0, 0
    dtypes = {"source_offsets": "int64", "target_offsets": "int64", "keys": "uint64"}
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(_array_path(folder, name), "wb")) for name in ARRAYS}
        for name in ("source_offsets", "target_offsets"):
            files[name].write(np.zeros(1, np.int64).data)
        for chunk in chunks:
            files["source_ids"].write(chunk.source.ids.data)
            files["source_offsets"].write((chunk.source.offsets[1:] + source_tokens).data)
            files["target_ids"].write(chunk.target.ids.data)
            files["target_offsets"].write((chunk.target.offsets[1:] + target_tokens).data)
            files["keys"].write(chunk.keys.data)
            dtypes["source_ids"], dtypes["target_ids"] = str(chunk.source.ids.dtype), str(chunk.target.ids.dtype)
            source_tokens += chunk.source_tokens
            target_tokens += chunk.target_tokens
            skipped += chunk.skipped
            too_long += chunk.too_long
            pairs += len(chunk)
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    skipped += split.skipped
    if not pairs:
        raise nothing_left(split, skipped, too_long)
    checksums = {name: _size_and_checksum(_array_path(folder, name)) for name in ARRAYS}
    counts = {"pairs": pairs, "skipped": skipped, "too_long": sorted(too_long.items()), "examples": split.examples}
    meta = {"origin": origin, **counts, "dtypes": dtypes, "files": checksums}
    with open(folder / "meta.json", "w", encoding="utf-8") as meta_file:
        json.dump(meta | {"checksum": _checksum(meta)}, meta_file, indent=1)
        meta_file.flush()
        os.fsync(meta_file.fileno())


def open_entry(folder: pathlib.Path) -> EncodedPairs:
    """The EncodedPairs in `folder`. Their arrays are memory-mapped, so that only what is used is read.

    Raises DamagedError if a file is missing, has another size, or differs in its first, middle or last `SAMPLE` bytes,
    or if meta.json differs in anything. The other bytes of a large file are not read: reading gigabytes at every start
    would cost what the cache saves.
    """
    try:
        meta = json_of((folder / "meta.json").read_text(encoding="utf-8"))
        checksum = meta.pop("checksum")
        if checksum != _checksum(meta):
            raise DamagedError("meta.json has another checksum")
        for name in ARRAYS:
            if _size_and_checksum(_array_path(folder, name)) != meta["files"][name]:
                raise DamagedError(f"{name}.bin has another size or checksum")
        arrays = {
            name: np.asarray(np.memmap(_array_path(folder, name), meta["dtypes"][name], mode="r")) for name in ARRAYS
        }
    except OSError as error:
        raise DamagedError(f"{os.path.basename(error.filename or '')}: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:  # what json, NumPy and a strange meta.json raise
        raise DamagedError(f"{type(error).__name__}: {error}") from None
    source = Sentences(arrays["source_ids"], arrays["source_offsets"])
    target = Sentences(arrays["target_ids"], arrays["target_offsets"])
    skipped, too_long = collections.Counter(meta["skipped"]), collections.Counter(dict(meta["too_long"]))
    examples = meta.get("examples", {})  # entries of earlier versions have none
    return EncodedPairs(source, target, skipped, arrays["keys"], too_long=too_long, examples=examples)


def _open_if_intact(entry: pathlib.Path, warn=lambda *_: None) -> EncodedPairs | None:
    """The EncodedPairs of the entry; None if there is none, or if it is damaged, which `warn` reports."""
    if not entry.exists():
        return None
    try:
        return open_entry(entry)
    except DamagedError as error:
        warn("%s is damaged (%s): encoding the text again", entry, error)
        return None


def _log_progress(name: str, chunks: Iterable[EncodedPairs]) -> Iterator[EncodedPairs]:
    """Yield the chunks, and log a line for every `REPORT_EVERY` pairs."""
    pairs, reported = 0, 0
    for chunk in chunks:
        yield chunk
        pairs += len(chunk)
        if pairs // REPORT_EVERY > reported:
            reported = pairs // REPORT_EVERY
            log.info("%s: %s pairs encoded so far", name, f"{pairs:,}")


def _array_path(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f"{name}.bin"


def _size_and_checksum(path: pathlib.Path) -> list[int]:
    """[bytes, CRC of the first, middle and last `SAMPLE` of them]"""
    size, checksum = path.stat().st_size, 0
    with open(path, "rb") as file:
        for start in (0, size // 2, max(0, size - SAMPLE)):
            file.seek(start)
            checksum = zlib.crc32(file.read(SAMPLE), checksum)
    return [size, checksum]


def _checksum(meta: dict) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
