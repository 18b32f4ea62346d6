"""Which TensorFlow runs a graph is known from its operations."""

import pytest
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from export.graph.operations import OF_OLDEST, OLDEST, meta_graph, oldest_tensorflow, operations_in, refuse_xla, xla_in
from export.versions import ExportError


def test_an_operation_that_the_oldest_tensorflow_is_not_known_to_have_needs_the_own_one():
    assert oldest_tensorflow({"MatMul", "While"}, "2.99") == OLDEST
    assert oldest_tensorflow({"MatMul", "BrandNewOp"}, "2.99") == "2.99"
    assert oldest_tensorflow({*OF_OLDEST}, "2.99") == oldest_tensorflow(set(), "2.99") == OLDEST


def graph_with(own=(), inside=(), attributes=()):
    """A graph with operations of its own and some inside of a function, and an attribute of each of `attributes`."""
    graph = meta_graph_pb2.MetaGraphDef()
    function = graph.graph_def.library.function.add()
    function.signature.name = "helper"
    for operation in ("helper", *own):
        graph.graph_def.node.add(op=operation)
    for operation in ("Add", *inside):
        function.node_def.add(op=operation)
    owners = {"own": graph.graph_def.node[0], "inside": function.node_def[0], "helper": function}
    for owner in attributes:
        owners[owner].attr["_XlaMustCompile"].b = True
    return graph


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"own": ["Mul"], "inside": ["Mul"]}, set()),
        ({"own": ["XlaDot"]}, {"XlaDot"}),
        ({"inside": ["_XlaRun"]}, {"_XlaRun"}),
        *(({"attributes": [owner]}, {"_XlaMustCompile"}) for owner in ("own", "inside", "helper")),
    ],
)
def test_what_needs_xla_is_found_wherever_it_is(parts, found, tmp_path):
    graph = graph_with(**parts)
    assert xla_in(graph) == found
    assert operations_in(graph) == {"Add", *parts.get("own", []), *parts.get("inside", [])}
    saved = saved_model_pb2.SavedModel(meta_graphs=[graph])
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    assert meta_graph(tmp_path) == graph
    if found:
        with pytest.raises(ExportError, match=f"needs XLA, which a server does not have: {min(found)}"):
            refuse_xla(tmp_path)
