"""The runtimes in which an export is compared: who asks whom, and what a failure says."""

import os

import pytest
import tensorflow as tf

from export.certificate.c_runtime import Runtime
from export.certificate.runtimes import CRuntime, c_library, local_clients, package, strings, tensor_of
from export.client.transports import GrpcTransport, RestTransport
from export.graph.operations import meta_graph
from export.versions import ExportError
from tests.support.echo import write_echo


def test_each_client_asks_by_the_protocol_of_its_name(tmp_path):
    with local_clients(write_echo(tmp_path / "echo" / "7")) as clients:
        kinds = {name: type(client.transport) for name, client in clients.items()}
        assert kinds == {"REST": RestTransport, "gRPC": GrpcTransport}
        assert {(client.rows_per_request, client.requests_at_once) for client in clients.values()} == {(16, 8)}
        assert all(client.deadline >= 3600 for client in clients.values())  # a slow machine fails no comparison
        assert all([found.text for found in client.translate(["a", "b"])] == ["a", "b"] for client in clients.values())


@pytest.fixture
def packages(tmp_path):
    """The folders of another TensorFlow and another tensorflow-text."""
    for file in (
        "tensorflow/libtensorflow_cc.so.2",
        "text/python/ops/b.so",
        "text/python/ops/_a.so",
        "text/python/x.so",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return {"tensorflow": tmp_path / "tensorflow", "tensorflow_text": tmp_path / "text"}


def test_a_tensorflow_without_the_c_api_and_a_package_that_is_none_are_named(packages, tmp_path):
    (packages["tensorflow"] / "libtensorflow_cc.so.2").unlink()
    with pytest.raises(ExportError, match=f"libtensorflow_cc, is not in {packages['tensorflow']}"):
        CRuntime(tmp_path, **packages)
    for name in ("no_such_package", "this"):  # a module is no package
        with pytest.raises(ModuleNotFoundError, match=f"no package {name}"):
            package(name)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([b"\xff", b"a"], "string"), ([2], "int32"), ([0.5], "float32"), ([True], "bool"), ([], "int64")],
)
def test_a_default_of_a_signature_is_fed_as_the_tensor_that_it_is(values, kind):
    tensor = tensor_of(tf.make_tensor_proto(values, kind))
    assert tensor["type"] == kind and tensor["shape"] == [len(values)]
    assert [os.fsencode(value) if kind == "string" else value for value in tensor["values"]] == values


@pytest.mark.skipif(c_library(package("tensorflow")) is None, reason="this TensorFlow has no C API")
def test_a_session_of_the_c_api_reads_and_writes_every_type_of_tensor(tmp_path):
    """In this process, which has TensorFlow's library already."""
    version = write_echo(tmp_path / "1")
    signatures = meta_graph(version).signature_def
    runtime = Runtime(str(c_library(package("tensorflow"))), [], str(version))

    def ask(name, outputs, **tensors):
        names = [signatures[name].outputs[each].name for each in outputs]
        return runtime.run({signatures[name].inputs[key].name: value for key, value in tensors.items()}, names)

    texts = strings(["a", "\u00fc" * 100, "", "\udcff"])  # the last one stands for a byte that is no text
    found = ask("serving_default", ["translation", "score"], text=texts)
    assert found == [[b"a", "\u00fc".encode() * 100, b"", b"\xff"], [-1.0, -200.0, 0.0, -1.0]]
    times = {"type": "int32", "shape": [2], "values": [2, 3]}
    spin = {"type": "float32", "shape": [1], "values": [0.0]}
    assert ask("repeat", ["repeated", "rows"], text=strings(["a", "b"]), times=times, spin=spin) == [
        [b"aa", b"bbb"],
        [2, 2],
    ]
    pair = {"type": "float32", "shape": [2, 2], "values": [1.5, 2.0, 3.0, 4.0]}
    for is_sum, totals in ((True, [3.5, 7.0]), (False, [3.0, 12.0])):
        flag = {"type": "bool", "shape": [], "values": [is_sum]}
        assert ask("reduce", ["total", "of"], pair=pair, is_sum=flag) == [totals, [4]]
    with pytest.raises(RuntimeError, match="times must be at least 1"):
        ask("repeat", ["rows"], text=strings(["a"]), times=times | {"shape": [1], "values": [0]}, spin=spin)
    with pytest.raises(KeyError, match="none:0"):
        runtime.output("none:0")
