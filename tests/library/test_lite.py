"""Interpreters of LiteRT without LiteRT: which are made, what they are asked, and what is said if there are none."""

import hashlib
import importlib.util
import json
import os
import re
import threading

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite import interpreters as lite
from keras_transformer.lite.notice import NOTICE, without_notice
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.lite_folder import Description, Room
from tests.support.processes import python


@pytest.fixture
def pool(monkeypatch):
    """A function from a number of threads to a pool, whose runners answer with what they are asked."""
    monkeypatch.setattr(lite, "read_model", lambda *of_file: b"a file")
    monkeypatch.setattr(lite, "one_signature", lambda file, signature: signature.encode())
    monkeypatch.setattr(lite, "runner_of", lambda model, content, signature: lambda **asked: (signature, asked))
    return lambda size: lite.InterpreterPool("model", size)


@pytest.mark.parametrize(("size", "count"), [(1, 3), (3, 1), (3, 0), (3, 3), (2, 5)])
def test_as_many_batches_are_translated_at_once_as_there_are_threads(pool, size, count):
    """With one of either, the thread that asks translates, and starts no other."""
    together, threads, done = threading.Barrier(size if min(size, count) > 1 else 1), set(), []

    def translate(batch):
        if batch < size:  # the last ones may be alone
            together.wait(10)
        threads.add(threading.current_thread())
        done.append(batch)

    pool(size).map(translate, iter(range(count)))
    assert sorted(done) == list(range(count))
    is_alone = min(size, count) <= 1
    assert (threads <= {threading.current_thread()}) is is_alone and len(threads) <= size


@pytest.mark.parametrize("size", [1, 2])
def test_what_a_batch_raises_is_raised(pool, size):
    def translate(batch):
        if batch == 2:
            raise ConfigError("The third is damaged.")

    with pytest.raises(ConfigError, match="third"):
        pool(size).map(translate, range(4))


def test_a_file_is_as_it_was_when_it_was_read(tmp_path, monkeypatch):
    """Another one may take its place, and it may be overwritten or emptied where it is."""
    monkeypatch.setattr(lite, "require_litert", lambda: None)
    path = tmp_path / "search.tflite"
    for content in (b"before", b"between" * 5000, b"afterwards"):
        path.write_bytes(content)
        read = lite.read_model(path)
        os.truncate(path, 0)
        assert read == content
        path.write_bytes(b"overwritten")
        (tmp_path / "new").write_bytes(b"another")
        (tmp_path / "new").replace(path)
        assert read == content


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_that_is_missing_or_empty_is_named(content, tmp_path, monkeypatch):
    monkeypatch.setattr(lite, "require_litert", lambda: None)
    path = tmp_path / "search.tflite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"search\.tflite cannot be opened: [^\n]+\. Export the run again\.$"):
        lite.read_model(path)


def test_without_litert_no_file_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", {"ai_edge_litert": None}.__getitem__)
    with pytest.raises(ConfigError, match=r"ai-edge-litert, which is not installed: pip install .*\[litert\]"):
        lite.read_model(tmp_path / "none")
    monkeypatch.setattr(importlib.util, "find_spec", {"ai_edge_litert": "there"}.__getitem__)
    lite.require_litert()


@pytest.mark.parametrize("place", [0, 1000, 2047])
def test_a_file_of_which_a_byte_has_changed_is_refused_by_its_checksum(tmp_path, monkeypatch, place):
    monkeypatch.setattr(importlib.util, "find_spec", {"ai_edge_litert": "there"}.__getitem__)
    path, content = tmp_path / "search.tflite", bytes(2048)
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    assert lite.read_model(path, sha256) == lite.read_model(path) == content
    path.write_bytes(content[:place] + b"x" + content[place + 1 :])
    lite.read_model(path)  # a folder of before it was kept
    with pytest.raises(ConfigError, match="is damaged, or of another export. Export the run again.$"):
        lite.read_model(path, sha256)
    path.write_bytes(content[:place])
    with pytest.raises(ConfigError, match="Export the run again.$"):
        lite.read_model(path, sha256)


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_file_that_does_not_take_what_its_folder_says_is_one_sentence(pool, monkeypatch, kind):
    """As the search.tflite of another export, with a litert.json that has no checksum yet."""

    def refuse(**asked):
        raise kind("Invalid number of inputs, expected 3 vs provided 2\nmore")

    monkeypatch.setattr(lite, "runner_of", lambda *of_file: refuse)
    with pytest.raises(
        ConfigError, match=r"^model cannot be run as litert.json .*expected 3 vs provided 2\. Export the"
    ):
        pool(1).run(Room(1, 16), np.zeros((1, 16), np.int32), 1)
    with pytest.raises(ConfigError, match="cannot be run as litert.json"):
        pool(1).attention(np.zeros((1, 16), np.int32), np.zeros((1, 16), np.int32))


ROOMS = (Room(1, 64), Room(1, 32, 12), Room(8, 32, 12))
DESCRIPTION = Description({"beam_size": 2}, ROOMS, "int8")


def test_what_is_written_is_read(tmp_path):
    DESCRIPTION.save(tmp_path / "litert.json")
    assert Description.load(tmp_path / "litert.json") == DESCRIPTION
    changed = DESCRIPTION._replace(sha256="0f", alignment=AlignedBy(2, True))
    changed.save(tmp_path / "litert.json")
    assert Description.load(tmp_path / "litert.json") == changed


def test_a_file_of_a_version_that_read_the_sentences_before_one_is_read(tmp_path):
    DESCRIPTION.save(path := tmp_path / "litert.json")
    for context in ({"sentences": 0, "sides": "source", "separator": " \u241e"}, {"sentences": 2, "sides": "both"}):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"context": context}))
        assert Description.load(path) == DESCRIPTION


def test_the_longest_source_is_that_of_a_room_for_any_translation():
    assert DESCRIPTION._replace(rooms=(Room(1, 16), Room(4, 24), Room(1, 32, 12))).max_source_tokens == 24


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"rooms": [[4, 16, None]]}, "it has no room for one sentence and any translation"),
        ({"rooms": [[1, 16, 12], [8, 16, None]]}, "it has no room for one sentence and any translation"),
        ({"rooms": []}, "it has no room for one sentence and any translation"),
        ({"rooms": [["1", 16, None]]}, "the size of a room is no number"),
        ({"rooms": [[True, 16, None]]}, "the size of a room is no number"),
        ({"rooms": [[1, 16, None], [1, -16, None]]}, "the size of a room is no number of at least 1"),
        ({"rooms": [[1, 16, None], [1, 16, 0]]}, "the size of a room is no number of at least 1"),
        ({"sha256": 3}, "a SHA-256 is (3, None); each must be a text, or null"),
        ({"tokenizer_sha256": ["0f"]}, "a SHA-256 is (None, ['0f']); each must be"),
        ({"rooms": [[1, 16, None, 3]]}, ""),
        ({"alignment": {"block": "1", "reads": True}}, "it must have a whole number as block"),
        ({"alignment": [1, True]}, ""),
        ({"rooms": None}, ""),
        ({"search": {"beam": 3}}, "search has beam; it may have beam_size"),
        ({"search": {"beam_size": 0}}, "beam_size is 0"),
        ({"quantization": ...}, "it has no quantization"),
        ({"rooms": ..., "search": ...}, "it has no rooms"),
    ],
)
def test_a_description_by_which_nothing_can_be_translated_is_refused(values, cause, tmp_path):
    path, whole = tmp_path / "litert.json", DESCRIPTION._asdict() | {"languages": {}}
    path.write_text(json.dumps({name: value for name, value in (whole | values).items() if value is not ...}))
    with pytest.raises(ConfigError, match=rf"litert\.json is damaged: [^\n]*{re.escape(cause)}[^\n]*\. Restore it"):
        Description.load(path)


def test_what_is_no_json_or_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"litert\.json cannot be read: No such file"):
        Description.load(tmp_path / "litert.json")
    for content in (b"", b"{", b"[]", b"3", b"\xff"):
        (tmp_path / "litert.json").write_bytes(content)
        with pytest.raises(ConfigError, match=r"litert\.json is damaged: [^\n]*\. Restore it"):
            Description.load(tmp_path / "litert.json")


def test_the_notice_alone_is_left_out(capfd):
    with without_notice():
        os.write(2, b"before\n" + NOTICE + b"\n" + NOTICE + b" But not this.\nafter")
    os.write(2, b"\nlater\n")
    assert capfd.readouterr().err == f"before\n{NOTICE.decode()} But not this.\nafter\nlater\n"


def test_what_comes_before_an_exception_is_printed(capfd):
    with pytest.raises(ValueError), without_notice():
        os.write(2, b"the reason\n")
        raise ValueError
    assert capfd.readouterr().err == "the reason\n"


def test_no_file_is_left_open():
    before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    for _ in range(3):
        with without_notice():
            pass
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)


WITHOUT_STDERR = """
import os
from keras_transformer.lite.notice import without_notice
os.close(2)
with without_notice():
    os.write(2, b"to nobody\\n")
print("done")
"""


@pytest.mark.slow
def test_a_process_without_stderr_goes_on():
    process = python("-c", WITHOUT_STDERR)
    assert (process.returncode, process.stdout) == (0, "done\n")
