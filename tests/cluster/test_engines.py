"""An export on a worker: what it is asked, with which defaults, and why it refuses a batch."""

import types

import pytest
import tensorflow as tf

from cluster.engines import GraphEngine, Refused, reason_in
from cluster.errors import ClusterError

AROUND = "Graph execution error:\n\nDetected at node a/Assert defined at (most recent call last):\n<stack traces ...>\n"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            AROUND + "assertion failed: [top_k needs a\n temperature.] [3]\n\t [[{{node a/Assert}}]] [Op:b]",
            "top_k needs a temperature.",
        ),
        (AROUND + "OOM when allocating tensor\n\t [[{{node c}}]]", "OOM when allocating tensor"),
        ("Graph execution error:", "The graph failed."),
        ("Graph execution error:\n  \n\t\n too large \nmore", "too large"),
    ],
)
def test_the_reason_is_the_sentence_of_the_graph(message, reason):
    assert reason_in(message) == reason


class Signature:
    """A signature that returns its inputs, with the types that they have."""

    structured_outputs = {"text": None, "times": None}
    structured_input_signature = (
        (),
        {"text": tf.TensorSpec([None], tf.string, "text"), "times": tf.TensorSpec([None], tf.int32, "times")},
    )

    def __call__(self, **inputs):
        if inputs["times"][0] > 9:
            raise tf.errors.InvalidArgumentError(None, None, "assertion failed: [times is too large.] [10]")
        return inputs


@pytest.fixture
def engine():
    engine = GraphEngine.__new__(GraphEngine)
    engine._loaded = types.SimpleNamespace(signatures={"repeat": Signature(), "other": Signature()})
    engine._defaults = {"repeat": {"times": 2}, "other": {}}
    engine._failures = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError
    return engine


def test_a_graph_is_asked_with_its_defaults_and_answers_in_lists(engine):
    assert engine.call("repeat", {"text": ["a", "b"]}) == {"text": ["a", "b"], "times": [2]}
    assert engine.call("repeat", {"text": ["a"], "times": [5]}) == {"text": ["a"], "times": [5]}
    with pytest.raises(Refused, match="^times is too large.$"):
        engine.call("repeat", {"text": ["a"], "times": [10]})
    with pytest.raises(ClusterError, match="has no signature none; it has other, repeat. Export the run again"):
        engine.call("none", {})
    assert engine.defaults("repeat") == {"times": 2} and engine.defaults("none") == {}
    assert engine.tells("other", "text") and not engine.tells("none", "text") and not engine.tells("other", "score")


@pytest.fixture
def told(monkeypatch):
    """What TensorFlow is told before a SavedModel is loaded."""
    told = []
    for room, name in (
        (tf.config.optimizer, "set_experimental_options"),
        (tf.config.threading, "set_intra_op_parallelism_threads"),
        (tf.config.threading, "set_inter_op_parallelism_threads"),
    ):
        monkeypatch.setattr(room, name, lambda value, name=name: told.append((name, value)))
    return told


@pytest.mark.parametrize(
    "kind", [OSError, ValueError, KeyError, lambda message: tf.errors.DataLossError(None, None, message)]
)
def test_what_cannot_be_loaded_is_refused_in_a_sentence(kind, told, tmp_path, monkeypatch):
    error = kind("No file.")
    monkeypatch.setattr(tf.saved_model, "load", lambda folder: (_ for _ in ()).throw(error))
    with pytest.raises(ClusterError, match="^The export cannot be loaded: .?No file"):
        GraphEngine(str(tmp_path), 1)


@pytest.mark.slow  # the process then computes with one thread
def test_a_folder_that_is_no_saved_model_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"no graph")
    with pytest.raises(ClusterError, match="^The export cannot be loaded: "):
        GraphEngine(str(tmp_path), 1)
