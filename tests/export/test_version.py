"""A version in memory: what computes a request, what it refuses, and that nothing is left of it when it is closed."""

import gc
import threading
import types
import weakref

import numpy as np
import pytest
import tensorflow as tf

from export.graph.version_folder import prediction_log
from export.server.errors import Code, RequestError
from export.server.paragraphs import FORMAT, LANGUAGE, OUTPUT_LANGUAGE, PARAGRAPHS, SPANS
from export.server.protection import Traits
from export.server.signature import Signature, Tensor
from export.server.version import Version, collect_graphs, example_of
from keras_transformer.ground.errors import UserError
from keras_transformer.runs.versions import CERTIFICATE, WARM_UP_REQUESTS
from keras_transformer.text.placeholders import symbols_of
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


def test_a_session_is_asked_for_one_set_of_tensors_whatever_a_request_wants(version, monkeypatch):
    """For each other set it would prepare the functions of the graph anew, which takes seconds for a translator."""
    signature, session, asked = version.signatures["serving_default"], version._session, []

    def run(fetches, feeds, **options):
        asked.append((tuple(sorted(tf.nest.flatten(fetches))), tuple(sorted(feeds))))
        return session.run(fetches, feeds, **options)

    monkeypatch.setattr(version, "_session", types.SimpleNamespace(run=run))
    names = signature.output_names([])
    assert len(names) > 1
    for outputs in (names, names[::-1], *((name,) for name in names)):
        found = version.run(signature, tuple(outputs), signature.complete(texts("a", "b")))
        assert list(found) == list(outputs)
    assert len(asked) == 2 + len(names) and len(set(asked)) == 1


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


@pytest.mark.parametrize(
    ("name", "values"),
    [("text", np.array([["a"]], object)), ("times", np.array([b"a"], object)), ("times", np.array([None], object))],
)
def test_an_input_that_the_session_refuses_is_an_error_of_the_request(name, values, version):
    inputs = texts("a") | {"times": np.array([2], np.int32), "spin": np.zeros(1, np.float32)} | {name: values}
    with pytest.raises(RequestError) as error:
        version.run(version.signatures["repeat"], ("repeated",), inputs)
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
    inputs |= {FORMAT: np.array([b"text"], object), OUTPUT_LANGUAGE: np.array([b""], object)}
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


def records(path, *contents):
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)


def warm_up(name, **inputs):
    return prediction_log(name, **inputs).SerializeToString()


PLAIN = warm_up("serving_default", text=np.array([b"a"], object))


@pytest.mark.parametrize(
    ("contents", "count", "why"),
    [
        ([PLAIN, warm_up("repeat", text=np.array([b"a", b"b"], object), times=np.array([3], np.int32))], 2, None),
        ([PLAIN, warm_up("none", text=np.array([b"a"], object)), PLAIN], 1, "none"),
        ([PLAIN, PLAIN, b"\xff"], 2, "Error parsing message"),
        ([warm_up("repeat", text=np.array([b"a"], object), times=np.array([0], np.int32)), PLAIN], 0, "at least 1"),
    ],
)
def test_warm_up_requests_are_answered_in_their_order_until_one_cannot_be(contents, count, why, tmp_path, caplog):
    version, asked = Version(write_echo(tmp_path / "7")), []
    records(tmp_path / "7" / WARM_UP_REQUESTS, *contents)
    run = version.run
    version.run = lambda *arguments: asked.append(arguments) or run(*arguments)
    assert (version.number, version.warm_up()) == (7, count)
    assert [(why in record.message, f"after {count} requests" in record.message) for record in caplog.records] == (
        [(True, True)] if why else []
    )
    assert all(set(outputs) == set(signature.outputs) for signature, outputs, _ in asked)
    assert why or [signature.name for signature, *_ in asked] == ["serving_default", "repeat"]


@pytest.mark.parametrize(
    ("content", "example"),
    [(None, ""), ("{", ""), ("[]", ""), ("{}", ""), ('{"example": "Ein Hund."}', "Ein Hund."), ('{"example": 3}', "3")],
)
def test_the_example_is_that_of_the_certificate(content, example, tmp_path):
    if content is not None:
        (tmp_path / CERTIFICATE).write_text(content)
    assert example_of(tmp_path) == example


@pytest.mark.parametrize(("has_tokenizer", "known"), [(True, 3), (False, 0)])
def test_a_version_knows_the_placeholders_that_its_tokenizer_leaves_whole(has_tokenizer, known):
    """Without a signature that shows pieces none."""
    version = Version.__new__(Version)
    tokenize = Signature("tokenize", {}, {"pieces": Tensor("pieces:0", tf.string, (None,))}, {})
    version.signatures = {"tokenize": tokenize} if has_tokenizer else {}
    version._aligns = False

    def pieces(signature, outputs, inputs):
        assert signature is tokenize and outputs == ("pieces",)
        [text] = [text.decode() for text in inputs["text"]]
        return {
            "pieces": np.array([" ".join(text.split()).replace(symbols_of(4)[-1], "\u27e6 4 \u27e7").encode()], object)
        }

    version._compute = pieces
    assert version._traits == Traits(known, aligns=False)


def test_graphs_that_nobody_uses_are_freed_although_objects_are_frozen():
    """Of a process that has not frozen any, none is frozen."""

    class Circle:
        def __init__(self):
            self.self = self

    for is_frozen in (False, True):
        circle = Circle()
        gone = weakref.ref(circle)
        gc.unfreeze()
        if is_frozen:
            gc.freeze()
        try:
            del circle
            collect_graphs()
            assert gone() is None and (gc.get_freeze_count() > 0) is is_frozen
        finally:
            gc.freeze()  # as in all tests
