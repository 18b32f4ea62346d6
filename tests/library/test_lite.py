"""Interpreters of LiteRT without LiteRT: which are made, what they are asked, and what is said if there are none."""

import importlib.util
import sys
import threading
import types

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite import translator as lite
from keras_transformer.runs.lite_folder import Room

ROOM = Room(2, 3)


@pytest.fixture
def pool(monkeypatch):
    """A function from a number of threads to a pool, whose runners answer with what they are asked."""
    monkeypatch.setattr(lite, "opened", lambda model: b"a file")
    monkeypatch.setattr(lite, "one_signature", lambda file, signature: signature.encode())
    monkeypatch.setattr(lite, "runner_of", lambda model, content, signature: lambda **asked: (signature, asked))
    return lambda size: lite.SearchPool("model", size)


def test_a_search_is_asked_with_the_ids_of_its_room_and_as_many_results_for_each_of_its_rows(pool):
    ids = np.arange(6).reshape(2, 3)
    signature, asked = pool(1).run(ROOM, ids, 4)
    assert signature == ROOM.signature and asked.keys() == {"source_ids", "n_best"} and asked["source_ids"] is ids
    assert asked["n_best"].tolist() == [4, 4] and asked["n_best"].dtype == np.int32


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


def test_a_file_is_read_as_it_was_when_it_was_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(lite, "require_litert", lambda: None)
    path = tmp_path / "search.tflite"
    path.write_bytes(b"before")
    content = lite.opened(path)
    (tmp_path / "new").write_bytes(b"afterwards")
    (tmp_path / "new").replace(path)
    assert bytes(content) == b"before" and bytes(lite.opened(path)) == b"afterwards"


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_that_is_missing_or_empty_is_named(content, tmp_path, monkeypatch):
    monkeypatch.setattr(lite, "require_litert", lambda: None)
    path = tmp_path / "search.tflite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"search\.tflite cannot be opened: [^\n]+\. Export the run again\.$"):
        lite.opened(path)


def test_without_litert_no_file_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", {"ai_edge_litert": None}.__getitem__)
    with pytest.raises(ConfigError, match=r"ai-edge-litert, which is not installed: pip install .*\[litert\]"):
        lite.opened(tmp_path / "none")
    monkeypatch.setattr(importlib.util, "find_spec", {"ai_edge_litert": "there"}.__getitem__)
    lite.require_litert()


@pytest.mark.parametrize("error", [None, ValueError, RuntimeError])
@pytest.mark.parametrize("step", ["__init__", "allocate_tensors", "get_signature_runner"])
def test_an_interpreter_has_one_thread_and_its_memory_and_a_damaged_file_is_named(step, error, monkeypatch):
    done = []

    def note(name, *given):
        done.append((name, *given))
        if error and name == step:
            raise error("It is cut off.\nmore")
        return "runner"

    class Interpreter:
        def __init__(self, **options):
            note("__init__", options)

        def allocate_tensors(self):
            note("allocate_tensors")

        def get_signature_runner(self, signature):
            return note("get_signature_runner", signature)

    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", types.SimpleNamespace(Interpreter=Interpreter))
    if error:
        with pytest.raises(ConfigError, match=r"^model cannot be opened: It is cut off\. Export the run again\.$"):
            lite.runner_of("model", b"content", "translate_1x8")
        return
    assert lite.runner_of("model", b"content", "translate_1x8") == "runner"
    assert done == [
        ("__init__", {"model_content": b"content", "num_threads": 1}),
        ("allocate_tensors",),
        ("get_signature_runner", "translate_1x8"),
    ]
