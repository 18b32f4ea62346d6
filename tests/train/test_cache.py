"""Text is encoded once for everything that decides its ids, and whatever happens to the cache, the ids are right."""

import concurrent.futures
import errno
import fcntl
import logging
import os
import re
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from tests.support.processes import python
from train.config.sources.files import FilesData
from train.config.training import RowLengths
from train.data.cache import CorpusCache
from train.data.corpus import CorpusError, Split
from train.data.encoding import encode_corpus
from train.data.prepare import load_corpus

ROWS = RowLengths(64, 64)
LINES = [f"{word} {number}" for number in range(40) for word in ("one", "two two", "three three three")]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(LINES, path, 290)
    return Tokenizer(path)


@pytest.fixture
def files(tmp_path):
    """FilesData of two aligned files in `tmp_path`, with an empty line and lines that are too long."""
    for name in ("en", "de"):
        lines = ["", *(f"{line} {name}" for line in LINES), "x" * 99]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    pair = [str(tmp_path / "en"), str(tmp_path / "de")]
    return FilesData(source="files", train=[pair], validation=[pair])


@pytest.fixture
def cache(tmp_path):
    return CorpusCache(tmp_path / "cache")


def entries(cache):
    return {path for path in cache.folder.iterdir() if path.suffix != ".lock"}


def assert_same_pairs(one, other):
    for side in ("source", "target"):
        np.testing.assert_array_equal(getattr(one, side).ids, getattr(other, side).ids)
        np.testing.assert_array_equal(getattr(one, side).offsets, getattr(other, side).offsets)
    np.testing.assert_array_equal(one.keys, other.keys)
    assert (one.skipped, one.too_long) == (other.skipped, other.too_long) and len(one) == len(other) > 0


def test_what_the_cache_gives_is_what_encoding_gives(cache, files, tokenizer):
    split = load_corpus(files).train
    expected = encode_corpus(split, tokenizer, ROWS)
    assert expected.skipped == {"longer than 64 tokens": 1, "empty source": 1}
    for _ in range(2):
        found = cache.encoded(split, tokenizer, ROWS)
        assert_same_pairs(found, expected)
        assert found.source.ids.dtype == expected.source.ids.dtype == np.uint16


def test_the_second_time_no_text_is_read_no_array_is_loaded_and_nothing_is_locked(cache, tokenizer, monkeypatch):
    """So that a cache on a disk that is mounted for reading alone serves as well."""
    reads = [iter([("one", "two"), ("three", "one two")])]  # of which a second one would raise IndexError
    split = Split("data.train", lambda: reads.pop(), lambda: "text 1")
    first = cache.encoded(split, tokenizer, ROWS)
    monkeypatch.setattr(cache, "_exclusive", None)
    second = cache.encoded(split, tokenizer, ROWS)
    assert_same_pairs(first, second)
    for array in (second.source.ids, second.source.offsets, second.target.ids, second.target.offsets, second.keys):
        assert isinstance(array.base, np.memmap)


# what decides the ids


def test_the_same_text_is_one_entry_by_whatever_path_it_is_named(cache, files, tokenizer, tmp_path):
    for _ in range(2):
        cache.encoded(load_corpus(files).train, tokenizer, ROWS)
    again = files.model_copy(update={"train": [[f"{tmp_path}/../{tmp_path.name}/{name}" for name in ("en", "de")]]})
    cache.encoded(load_corpus(again).train, tokenizer, ROWS)
    assert len(entries(cache)) == 1


def test_a_changed_file_tokenizer_or_row_length_is_another_entry(cache, files, tokenizer, tmp_path):
    def found(tokenizer=tokenizer, row_lengths=ROWS):
        cache.encoded(load_corpus(files).train, tokenizer, row_lengths)
        return len(entries(cache))

    other = tmp_path / "other.model"
    train_tokenizer(LINES[::2], other, 289)
    rows = RowLengths(63, 63), RowLengths(63, 64)
    assert [found(), found(Tokenizer(other)), *(found(tokenizer, each) for each in rows)] == [1, 2, 3, 4]
    path = tmp_path / "en"
    path.write_text(path.read_text(encoding="utf-8").replace("one", "two"), encoding="utf-8")  # as long as before
    assert found() == 5
    changed = path.stat()
    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns + 1))
    assert found() == 6


def test_a_longer_file_with_the_old_time_is_another_entry(cache, files, tokenizer, tmp_path):
    cache.encoded(load_corpus(files).train, tokenizer, ROWS)
    for name in ("en", "de"):
        path = tmp_path / name
        before = path.stat()
        path.write_text(path.read_text(encoding="utf-8") + "one more\n", encoding="utf-8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(cache.encoded(load_corpus(files).train, tokenizer, ROWS)) == len(LINES) + 1
    assert len(entries(cache)) == 2


def test_another_tokenizer_of_the_same_size_is_another_entry(cache, files, tokenizer, tmp_path):
    train_tokenizer([line[::-1] for line in LINES], tmp_path / "other.model", tokenizer.vocab_size)
    other = Tokenizer(tmp_path / "other.model")
    assert other.vocab_size == tokenizer.vocab_size
    split = load_corpus(files).train
    first, second = cache.encoded(split, tokenizer, ROWS), cache.encoded(split, other, ROWS)
    assert len(entries(cache)) == 2
    assert other.decode(second.source[0].tolist()) == tokenizer.decode(first.source[0].tolist()) == f"{LINES[0]} en"


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32), (70_000, np.int32)])
def test_ids_of_any_vocabulary_survive_in_the_fewest_bytes(cache, vocab_size, dtype):
    def numbers_in(texts):
        return [[int(word) for word in text.split()] for text in texts]

    how = {"encode_batch": numbers_in, "encode_target_batch": numbers_in}
    large = SimpleNamespace(vocab_size=vocab_size, model_bytes=b"numbers", **how)
    pair = f"4 {vocab_size - 1}", f"{vocab_size - 1}"  # the largest number is the last id of the vocabulary
    split = Split("data.train", lambda: iter([pair]), lambda: "one pair")
    for pairs in (cache.encoded(split, large, ROWS), encode_corpus(split, large, ROWS)):
        assert pairs.source[0].tolist() == [4, vocab_size - 1, EOS]
        assert pairs.target[0].tolist() == [vocab_size - 1, EOS]
        assert pairs.source.ids.dtype == pairs.target.ids.dtype == dtype


# what may happen to it


def test_every_file_is_on_the_disk_in_full_before_the_entry_has_its_name(cache, files, tokenizer, monkeypatch):
    """A machine that loses its power would otherwise keep the name, and zeros behind it."""
    synced, fsync = {}, os.fsync

    def recorded(file):
        assert not [path for path in entries(cache) if path.suffix != ".part"]
        fsync(file)
        status = os.fstat(file)
        synced[status.st_ino] = status.st_size

    monkeypatch.setattr(os, "fsync", recorded)
    cache.encoded(load_corpus(files).train, tokenizer, ROWS)
    (entry,) = entries(cache)
    assert len(sizes := {path.stat().st_ino: path.stat().st_size for path in entry.iterdir()}) == 6
    assert synced == sizes


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "a missing array": lambda entry: (entry / "target_ids.bin").unlink(),
    "a cut array": lambda entry: os.truncate(entry / "source_ids.bin", 200),
    "a changed byte": lambda entry: flip(entry / "keys.bin", -1),
    "a changed first byte": lambda entry: flip(entry / "source_offsets.bin", 0),
    "a changed count": lambda entry: flip(entry / "meta.json", -20),
    "another count": lambda entry: flip(path := entry / "meta.json", path.read_bytes().index(b'"pairs": ') + 10),
    "no meta.json": lambda entry: (entry / "meta.json").unlink(),
    **{text: lambda entry, text=text: (entry / "meta.json").write_text(text) for text in ("{", "{}", "[]", "3")},
    "an empty folder": lambda entry: [path.unlink() for path in entry.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_entry_is_named_and_encoded_again(cache, files, tokenizer, caplog, damage):
    split = load_corpus(files).train
    expected = encode_corpus(split, tokenizer, ROWS)
    cache.encoded(split, tokenizer, ROWS)
    (entry,) = entries(cache)
    damage(entry)
    with caplog.at_level(logging.INFO, "train"):
        for _ in range(2):
            assert_same_pairs(cache.encoded(split, tokenizer, ROWS), expected)
    named, encoded, found = caplog.messages
    assert named.startswith(f"{entry} is damaged (") and "): " in named
    assert re.search(r", encoded in \d\.\d s into ", encoded) and "found encoded" in found


def test_an_error_leaves_nothing_and_what_a_killed_process_left_is_no_obstacle(cache, files, tokenizer, tmp_path):
    path = tmp_path / "de"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[:-90], encoding="utf-8")
    path.write_bytes(path.read_bytes() + b"\n\xe4\n")
    with pytest.raises(CorpusError, match="not UTF-8"):
        cache.encoded(load_corpus(files).train, tokenizer, ROWS)
    assert not entries(cache)
    path.write_text(whole, encoding="utf-8")
    cache.encoded(load_corpus(files).train, tokenizer, ROWS)
    (entry,) = entries(cache)
    entry.rename(entry.with_suffix(".part"))
    (entry.with_suffix(".part") / "more").mkdir()
    assert len(cache.encoded(load_corpus(files).train, tokenizer, ROWS)) == len(LINES)
    assert entries(cache) == {entry}


def test_damage_in_the_middle_of_a_large_file_is_noticed(cache, files, tokenizer, monkeypatch, caplog):
    monkeypatch.setattr("train.data.cache.SAMPLE", 8)
    split = load_corpus(files).train
    cache.encoded(split, tokenizer, ROWS)
    (path,) = cache.folder.glob("*/source_ids.bin")
    flip(path, path.stat().st_size // 2)
    assert_same_pairs(cache.encoded(split, tokenizer, ROWS), encode_corpus(split, tokenizer, ROWS))
    assert "is damaged" in caplog.text


def test_no_pair_left_is_an_error_and_no_entry(cache, files, tokenizer):
    with pytest.raises(CorpusError, match="data.train has no sentence pair left.*longer than 3 tokens.*row_length"):
        cache.encoded(load_corpus(files).train, tokenizer, RowLengths(3, 3))
    assert not entries(cache)


PROGRAM = """
import logging, resource, sys
from keras_transformer.commands.console import exit_codes
from keras_transformer.pieces.tokenizer import Tokenizer
from train.data.cache import CorpusCache
from train.config.sources.files import FilesData
from train.config.training import RowLengths
from train.data.corpus import CorpusError
from train.data.prepare import load_corpus

folder, model, limit = sys.argv[1:]
logging.basicConfig(level="INFO", format="%(message)s")
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
pair = [f"{folder}/en", f"{folder}/de"]
data = FilesData(source="files", train=[pair], validation=[pair])
try:
    print(len(CorpusCache(f"{folder}/cache").encoded(load_corpus(data).train, Tokenizer(model), RowLengths(64, 64))))
except CorpusError as error:
    print(error)
"""


@pytest.fixture
def process(tmp_path, tokenizer, files):
    """A function that encodes `files` in a process of its own, with a limit on the bytes of a file (0: none)."""
    (tmp_path / "model").write_bytes(tokenizer.model_bytes)
    return lambda limit=0: python("-c", PROGRAM, tmp_path, tmp_path / "model", limit)


@pytest.mark.slow
def test_processes_that_need_the_same_corpus_at_once_encode_it_once(process):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda _: process(), range(3)))
    assert [result.stdout for result in results] == [f"{len(LINES)}\n"] * 3, [result.stderr for result in results]
    logs = "".join(result.stderr for result in results)
    assert (logs.count(", encoded in"), logs.count("found encoded")) == (1, 2)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_leaves_nothing(process, cache):
    result = process(limit=1_000)
    assert result.stdout.startswith(f"The encoded corpus cannot be written to {cache.folder}: File too large.")
    assert result.stdout.count("\n") == 1 and "cache_folder" in result.stdout
    assert not entries(cache)


def test_a_cache_folder_that_cannot_be_created_is_one_sentence(files, tokenizer, tmp_path):
    with pytest.raises(CorpusError, match="cannot be written to .*en/cache: Not a directory.*cache_folder"):
        CorpusCache(tmp_path / "en" / "cache").encoded(load_corpus(files).train, tokenizer, ROWS)


def test_a_file_system_without_locks_is_one_sentence(cache, files, tokenizer, monkeypatch):
    error = OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    monkeypatch.setattr(fcntl, "flock", mock.Mock(side_effect=error))
    with pytest.raises(CorpusError, match=f"cache_folder {cache.folder} .*Operation not supported.*flock"):
        cache.encoded(load_corpus(files).train, tokenizer, ROWS)
