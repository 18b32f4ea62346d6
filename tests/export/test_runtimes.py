"""The runtimes in which an export is compared: who asks whom, and what a failure says."""

import subprocess
import types

import pytest

from export.certificate import runtimes
from export.certificate.runtimes import CRuntime, local_clients
from export.client.transports import GrpcTransport, RestTransport
from export.versions import ExportError
from tests.support.echo import write_echo


def test_each_client_asks_by_the_protocol_of_its_name(tmp_path):
    with local_clients(write_echo(tmp_path / "echo" / "7")) as clients:
        kinds = {name: type(client.transport) for name, client in clients.items()}
        assert kinds == {"REST": RestTransport, "gRPC": GrpcTransport}
        assert all([found.text for found in client.translate(["a", "b"])] == ["a", "b"] for client in clients.values())


@pytest.mark.parametrize(
    ("errors", "reason"), [("a notice\nno such operation\n", "no such operation"), ("", "exit code 9")]
)
def test_what_ends_the_process_of_the_c_api_is_the_last_thing_that_it_wrote(monkeypatch, tmp_path, errors, reason):
    signature = types.SimpleNamespace(outputs={"score": types.SimpleNamespace(name="score:0")}, inputs={})
    graph = types.SimpleNamespace(signature_def={"serving_default": signature})
    monkeypatch.setattr(runtimes, "meta_graph", lambda version: graph)
    ended = subprocess.CompletedProcess([], 9, stdout="", stderr=errors)
    monkeypatch.setattr(runtimes.subprocess, "run", lambda *arguments, **named: ended)
    with pytest.raises(ExportError, match=f"does not run in TensorFlow's C API: {reason}$"):
        CRuntime(tmp_path).ask([], outputs=("score",))
