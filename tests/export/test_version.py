"""A version in memory: what computes a request, what it refuses, and that nothing is left of it when it is closed."""

import gc
import threading
import weakref

import numpy as np
import pytest

from export.server.errors import Code, RequestError
from export.server.paragraphs import LANGUAGE, PARAGRAPHS, SPANS
from export.server.version import Version
from export.versions import WARM_UP_REQUESTS
from keras_transformer.errors import UserError
from tests.support.echo import write_echo


def test_the_graph_of_a_closed_version_is_freed(tmp_path):
    write_echo(tmp_path / "1")
    version = Version(tmp_path / "1")
    graph = weakref.ref(version._session.graph)
    gc.disable()
    try:
        version.close()
        for thread in threading.enumerate():
            if thread.name == "freed memory":
                thread.join()
        assert graph() is None
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    return Version(write_echo(tmp_path_factory.mktemp("served") / "1"))


def texts(*lines):
    return {"text": np.array([line.encode() for line in lines], object)}


class Few:
    """A LiteRT model that can or cannot run, and what it then does."""

    def __init__(self, can, outcome=None):
        self.can_run, self.outcome = lambda signature, inputs: can, outcome

    def run(self, outputs, inputs):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return {"translation": [self.outcome]}


@pytest.mark.parametrize(
    ("few", "translation"),
    [
        (None, b"a"),
        (Few(False, b"by LiteRT"), b"a"),
        (Few(True, b"by LiteRT"), b"by LiteRT"),
        (Few(True, UserError("no memory")), b"a"),
        (Few(True, UnicodeDecodeError("utf-8", b"a", 0, 1, "no text")), b"a"),
    ],
)
def test_litert_answers_what_it_can_and_the_graph_everything_else(few, translation, version, monkeypatch):
    monkeypatch.setattr(version, "_few", few)
    found = version.run(version.signatures["serving_default"], ("translation",), texts("a"))
    assert list(found["translation"]) == [translation]


def test_an_input_that_the_session_refuses_is_an_error_of_the_request(version):
    with pytest.raises(RequestError) as error:
        version.run(version.signatures["serving_default"], ("translation",), {"text": np.array([["a"]], object)})
    assert error.value.code is Code.INVALID_ARGUMENT and "\n" not in error.value.message


def test_a_version_without_warm_up_requests_is_warm_and_logs_nothing(version, caplog):
    assert version.warm_up() == 0 and not caplog.records


@pytest.mark.parametrize("paragraphs", [[True], [False], [False, True]])
def test_only_whole_texts_are_taken_apart_and_the_graph_knows_nothing_of_them(paragraphs):
    asked, version = [], Version.__new__(Version)

    def run_lines(signature, outputs, inputs):
        asked.append(inputs["text"].tolist())
        assert set(inputs) == {"text"} and SPANS not in outputs
        rows = len(inputs["text"])
        found = {"translations": inputs["text"][:, None], "truncated": np.zeros(rows, bool)}
        return {name: found[name] for name in outputs}

    version._run_lines = run_lines
    lines = ["One dog. Two cats."] * len(paragraphs)
    inputs = texts(*lines) | {PARAGRAPHS: np.array(paragraphs), LANGUAGE: np.array([b"en"], object)}
    found = version.run(None, ("translations", "truncated", SPANS), inputs)
    taken_apart, whole = [b"One dog.", b"Two cats."], [lines[0].encode()]
    assert asked == [whole] * (False in paragraphs) + [taken_apart] * (True in paragraphs)
    assert [bool(spans) for spans in found[SPANS]] == paragraphs


def test_warm_up_requests_that_a_version_cannot_answer_are_logged(tmp_path, caplog):
    write_echo(tmp_path / "1")
    path = tmp_path / "1" / WARM_UP_REQUESTS
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    version = Version(tmp_path / "1")
    assert version.warm_up() == 0
    path.write_bytes(b"damaged" * 10)
    assert version.warm_up() == 0
    assert str(tmp_path / "1") in caplog.text
    version.close()
