"""The graph of the model: what TensorBoard reads, with a box per layer."""

import logging
import types

import pytest
import tensorflow as tf
from tensorboard.util.tensor_util import make_ndarray

from keras_transformer.model import Transformer
from tests.support.events import read_added
from tests.support.training import TINY, fit_in, reusable
from train.config.training import RowLengths
from train.loop.fit import ProfileSteps
from train.loop.graph import graph_summary
from train.loop.progress import Progress


@pytest.fixture(scope="module")
def nodes():
    """The nodes of the graph of a small model with LayerNorm first, by name."""
    (value,) = graph_summary(Transformer(TINY.replace(norm="pre")), 3, RowLengths(5, 6)).value
    assert value.tag == "__run_graph__" and value.metadata.plugin_data.plugin_name == "graphs"  # the tab that finds it
    graph_def = tf.compat.v1.GraphDef.FromString(make_ndarray(value.tensor)[0])
    nodes = {node.name: node for node in graph_def.node}
    assert len(nodes) == len(graph_def.node)
    return nodes


def boxes(nodes, inside=""):
    """The names that begin those of nodes, within a box if one is named."""
    return {name.removeprefix(inside).partition("/")[0] for name in nodes if name.startswith(inside)}


def test_every_layer_is_a_box(nodes):
    inputs = {f"{side}_{name}" for side in ("source", "target") for name in ("ids", "segments")}
    layers = {layer.name for layer in Transformer(TINY.replace(norm="pre")).layers if layer.name not in inputs}
    found = boxes(nodes)
    assert layers - found == {"source_dropout", "target_dropout"} and "encoder_block_1" in layers
    called_again = {"embedding_1", "embedding_2"}
    assert found - layers - inputs == called_again | {"Identity"}


def test_the_sublayers_of_a_block_are_boxes_in_its_box_and_hold_their_weights(nodes):
    found = boxes(nodes, "decoder_block_1/")
    assert {"self_attention", "feed_forward", "norm", "norm_1", "norm_2"} <= found
    weights = [name for name, node in nodes.items() if node.op == "Placeholder" and name.endswith("/weight")]
    assert any(name.startswith("decoder_block_1/feed_forward/") for name in weights)
    assert len(weights) == len(Transformer(TINY.replace(norm="pre")).weights)


def test_every_input_of_a_node_is_a_node(nodes):
    for node in nodes.values():
        for source in node.input:
            assert source.partition(":")[0] in nodes


@pytest.mark.nightly
def test_a_run_writes_it_once_and_keeps_it_when_it_is_continued(tmp_path):
    reusable().from_the_start()
    for steps in (1, 2):
        fit_in(tmp_path, reusable().model, steps=steps)
        assert [step for step, _ in read_added(tmp_path / "tensorboard")["__run_graph__"]] == [0]


@pytest.fixture
def profiler(monkeypatch):
    """Stands for TensorFlow's profiler: notes what it is asked to do, and the steps that are marked."""
    done = []
    stand_in = types.SimpleNamespace(
        start=lambda folder: done.append(("start", folder)),
        stop=lambda: done.append("stop"),
        Trace=lambda name, step_num, _r: types.SimpleNamespace(__exit__=lambda *_: done.append(step_num)),
        done=done,
    )
    monkeypatch.setattr(tf.profiler, "experimental", stand_in)
    return stand_in


def train(profile, progress, last, done=None):
    """Take the steps up to `last`; then note the end of `fit`, and close the profile."""
    while progress.step < last:
        profile.on_train_batch_begin(0)
        profile.on_train_batch_end(0, {"loss": 1.0})
        progress.step += 1
    if done is not None:
        done.append("end")
    profile.close()


@pytest.mark.parametrize("call", ["start", "stop"])
def test_one_that_fails_is_logged_and_training_continues(profiler, caplog, call):
    def refuse(*_):
        raise tf.errors.UnavailableError(None, None, "No space left")

    setattr(profiler, call, refuse)
    progress = Progress()
    with caplog.at_level(logging.ERROR, logger="train"):
        train(ProfileSteps([3, 5], progress, "folder"), progress, 9)
    (message,) = caplog.messages
    assert "[3, 5]" in message and "No space left" in message
    assert progress.step == 9


@pytest.mark.nightly
def test_a_run_leaves_one_for_the_profile_tab_and_no_second_one_when_it_is_continued(tmp_path):
    reusable().from_the_start()
    for steps in (3, 4):
        fit_in(tmp_path, reusable().model, steps=steps, profile_steps=[2, 3])
        (profile,) = (tmp_path / "tensorboard" / "plugins" / "profile").glob("*/*.xplane.pb")
        assert profile.stat().st_size > 1000
