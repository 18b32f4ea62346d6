"""A corpus is encoded once: ids on disk, found again by what they were made from."""

import contextlib
import fcntl
import hashlib
import json
import logging
import pathlib
import shutil
import time

from train.data.cache_entry import DamagedError, open_entry, write_entry
from train.data.corpus import CorpusError
from train.data.encoding import encoded_chunks

log = logging.getLogger("train")

FORMAT = 1  # of an entry; what is written otherwise, or encoded otherwise, takes another number and so another key
REPORT_EVERY = 1_000_000  # pairs


class CorpusCache:
    """A folder of encoded splits, one folder each, that runs may share. Whoever deletes one loses only time."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def encoded(self, split, tokenizer, row_length, source_row_length=None):
        """The EncodedPairs of `split`, memory-mapped: found, or encoded now. Says in the log which.

        The name of an entry is a hash of what decides its content: the split's fingerprint, the tokenizer's bytes,
        the row lengths and `FORMAT`. One process at a time writes an entry; others that want it wait, then find it.
        Raises CorpusError if no pair is left, or if the folder cannot be written.
        """
        origin = {
            "format": FORMAT,
            "split": split.fingerprint(),
            "tokenizer": hashlib.sha256(tokenizer.model_bytes).hexdigest(),
            "row_length": row_length,
            "source_row_length": source_row_length or row_length,
        }
        entry = self.folder / hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:32]
        if (pairs := _whole(entry)) is None:
            with self._only_one(entry):
                if (pairs := _whole(entry, log.warning)) is None:
                    return self._write(entry, split, tokenizer, origin)
        log.info("%s: %s pairs, found encoded in %s", split.name, f"{len(pairs):,}", entry)
        return pairs

    def _write(self, entry, split, tokenizer, origin):
        started = time.monotonic()
        chunks = encoded_chunks(split, tokenizer, origin["row_length"], origin["source_row_length"])
        with self._written_aside(entry) as folder:
            write_entry(folder, _told(split.name, chunks), split, origin)
        pairs, seconds = open_entry(entry), time.monotonic() - started
        log.info("%s: %s pairs, encoded in %.1f s into %s", split.name, f"{len(pairs):,}", seconds, entry)
        return pairs

    @contextlib.contextmanager
    def _only_one(self, entry):
        """Hold the entry's lock, which the system lets go of however the process ends."""
        with self._one_sentence():
            self.folder.mkdir(parents=True, exist_ok=True)
            file = open(entry.with_suffix(".lock"), "ab")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("another process is encoding the same text: waiting for it to write %s", entry)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _written_aside(self, entry):
        """A new folder that takes the entry's name if it becomes whole, and goes if it does not."""
        part = entry.with_suffix(".part")
        try:
            with self._one_sentence():
                for old in (part, entry):  # of a process that was killed; damaged
                    shutil.rmtree(old, ignore_errors=True)
                part.mkdir()
                yield part
                part.replace(entry)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @contextlib.contextmanager
    def _one_sentence(self):
        try:
            yield
        except OSError as error:
            raise CorpusError(
                f"The encoded corpus cannot be written to {self.folder}: {error.strerror or error}. It takes about as "
                "much room as the text: make room, or set cache_folder to a place that has it."
            ) from None


def _whole(entry, warn=lambda *_: None):
    """The EncodedPairs of the entry; None where there is none, or where it is damaged."""
    if not entry.exists():
        return None
    try:
        return open_entry(entry)
    except DamagedError as error:
        warn("%s is damaged (%s): encoding anew", entry, error)
        return None


def _told(name, chunks):
    """The chunks, with a line in the log for every `REPORT_EVERY` pairs."""
    pairs = 0
    for chunk in chunks:
        yield chunk
        if pairs // REPORT_EVERY < (pairs := pairs + len(chunk)) // REPORT_EVERY:
            log.info("%s: %s pairs encoded so far", name, f"{pairs:,}")
