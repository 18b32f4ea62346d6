"""Which signatures a version has, and with which requests it warms up a server."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from export.graph.operations import meta_graph
from export.graph.version_folder import (
    QUICK,
    WARM_UP_ROWS,
    quick_to_prepare,
    selected,
    warm_up_batches,
    write_warm_up_requests,
)
from export.server.version import warm_up_requests
from export.versions import ExportError

SIGNATURES = {"serving_default": 1, "translate": 2, "score": 3}


@pytest.mark.parametrize(
    ("names", "left"),
    [((), ["serving_default", "translate", "score"]), (("score", "serving_default"), ["score", "serving_default"])],
)
def test_all_signatures_are_written_or_those_that_are_named(names, left):
    assert selected(SIGNATURES, names) == {name: SIGNATURES[name] for name in left}


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("serving_default", "b", "a"), "no signature a: .*translate, score"), (("score",), "leaves out serving_default")],
)
def test_a_name_that_is_unknown_or_alone_is_refused(names, reason):
    with pytest.raises(ExportError, match=reason):
        selected(SIGNATURES, names)


class Letters:
    """A tokenizer whose tokens are numbers, with a space between them."""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size

    def decode(self, ids):
        assert all(0 <= number < self.vocab_size for number in ids)
        return " ".join(map(str, ids))


@pytest.mark.parametrize("vocab_size", [5, 260, 261, 9000])
@pytest.mark.parametrize(("longest", "lengths"), [(1024, [8, 32, 128]), (32, [8, 32]), (20, [8, 20]), (5, [5])])
def test_a_server_warms_up_with_sentences_of_each_length_that_the_version_takes(vocab_size, longest, lengths):
    batches = warm_up_batches(Letters(vocab_size), longest)
    alone, together, full = batches[:-2], batches[-2], batches[-1]
    assert [len(sentence.split()) for sentence in together] == lengths
    assert alone == [[sentence] for sentence in together] and full == together[:1] * WARM_UP_ROWS == together[:1] * 32
    words = together[-1].split()
    assert len(set(words)) == min(len(words), max(vocab_size - 260, 1))  # as many different pieces as there are


def test_each_signature_of_the_version_is_asked_and_no_other(tmp_path):
    (tmp_path / "1").mkdir()
    write_warm_up_requests(tmp_path / "1", [["a"], ["a", "b"]], {"serving_default", "score"})
    requests = list(warm_up_requests(tmp_path / "1"))
    assert [request.model_spec.signature_name for request in requests] == ["serving_default"] * 2 + ["score"]
    assert [list(request.inputs["text"].string_val) for request in requests] == [[b"a"], [b"a", b"b"], [b"a"]]
    assert list(requests[-1].inputs["translation"].string_val) == [b"a"]


def options_of_calls(module, folder):
    """Save a module, and return how TensorFlow is told to optimize each function that the written graph calls."""
    tf.saved_model.save(module, str(folder), module.run.get_concrete_function())
    calls = [node for node in meta_graph(folder).graph_def.node if node.op.endswith("PartitionedCall")]
    configs = [config_pb2.ConfigProto.FromString(node.attr["config_proto"].s) for node in calls]
    return [config.graph_options.rewrite_options for config in configs]


def test_calls_that_are_written_ask_for_a_quick_preparation_and_later_ones_do_not(tmp_path):
    module = tf.Module()
    module.run = tf.function(lambda x: 2 * x, [tf.TensorSpec(None)])
    usual = options_of_calls(module, tmp_path / "before")
    assert all(options.meta_optimizer_iterations != QUICK.meta_optimizer_iterations for options in usual)
    with pytest.raises(OSError, match="full"), quick_to_prepare():
        quick = options_of_calls(module, tmp_path / "within")
        raise OSError("The disk is full.")
    assert usual and options_of_calls(module, tmp_path / "after") == usual
    for options, own in zip(quick, usual, strict=True):
        own.MergeFrom(QUICK)
        assert options == own  # an option of the process stays, if it is no other one here
