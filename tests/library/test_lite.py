"""Interpreters of LiteRT without LiteRT: which are made, what they are asked, and what is said if there are none."""

import importlib.util
import threading

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite import translator as lite


@pytest.fixture
def pool(monkeypatch):
    """A function from a number of threads to a pool, whose runners answer with what they are asked."""
    monkeypatch.setattr(lite, "opened", lambda model: b"a file")
    monkeypatch.setattr(lite, "one_signature", lambda file, signature: signature.encode())
    monkeypatch.setattr(lite, "runner_of", lambda model, content, signature: lambda **asked: (signature, asked))
    return lambda size: lite.SearchPool("model", size)


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
