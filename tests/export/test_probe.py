"""A container knows whether its server is well, without curl."""

import dataclasses
import http.client
import socket
import types
import urllib.parse

import pytest

from export import probe
from export.probe import connection_to, main, reason_against
from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.certificates import Authority
from tests.support.processes import python


def test_a_server_is_well_and_one_without_the_model_is_not(echo_folder, tmp_path, capsys):
    options = ServerOptions(port=0, grpc_port=0, unix_socket=tmp_path / "socket")
    with local_server(echo_folder, options) as server:
        assert main([server.url]) == 0
        assert main(["http://localhost:1/v1/models/echo", "--unix-socket", str(tmp_path / "socket")]) == 0
        assert capsys.readouterr() == ("", "")
        assert main([server.url + "2"]) == 1
        assert "404" in capsys.readouterr().err
    assert main([server.url]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_who_listens_without_answering_is_not_well(monkeypatch):
    monkeypatch.setattr("export.probe.SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "does not answer" in reason_against(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/models/m")
    assert "does not answer" in reason_against("http://localhost:x/")


def test_over_tls(echo_folder, tmp_path):
    pair = Authority(tmp_path, "authority").pair("server")
    options = ServerOptions(port=0, grpc_port=0)
    options = dataclasses.replace(options, tls_certificate=pair.certificate, tls_key=pair.key)
    with local_server(echo_folder, options) as server:
        assert reason_against(server.url) == ""


@pytest.mark.slow
def test_it_imports_only_what_python_brings():
    code = (
        "import sys, export.probe; print(sorted({'numpy', 'typer', 'grpc', 'keras', 'tensorflow'} & set(sys.modules)))"
    )
    process = python("-c", code)
    assert process.stdout.strip() == "[]", process.stderr


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (201, False), (204, False), (301, False), (503, False)])
@pytest.mark.parametrize(("url", "path"), [("http://h:1", "/"), ("http://h:1/a/b", "/a/b")])
def test_only_200_is_well_and_the_connection_is_closed(status, is_well, url, path, monkeypatch):
    done = []
    connection = types.SimpleNamespace(
        request=lambda *asked: done.append(asked), close=lambda: done.append("closed"),
        getresponse=lambda: types.SimpleNamespace(status=status),
    )  # fmt: skip
    monkeypatch.setattr(probe, "connection_to", lambda parts, unix_socket: connection)
    assert reason_against(url) == ("" if is_well else f"{url} answers {status}.")
    assert done == [("GET", path), "closed"]


@pytest.mark.parametrize("url", ["http://h:1/", "https://h:2/", "http://h/"])
def test_a_probe_waits_five_seconds_at_most_wherever_it_asks(url, tmp_path):
    """Whoever asks often enough must have given up before the next question."""
    parts = urllib.parse.urlsplit(url)
    connection = connection_to(parts, None)
    assert (connection.timeout, connection.host, connection.port) == (5.0, "h", parts.port or 80)
    assert isinstance(connection, http.client.HTTPSConnection) is (parts.scheme == "https")
    by_socket = connection_to(parts, str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        by_socket.connect()
        assert by_socket.sock.gettimeout() == 5.0
        by_socket.close()


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://[::1/v1", None),
        ("http://localhost:x/v1", None),
        ("http://localhost/v1", OSError("no route")),
        ("http://localhost/v1", http.client.BadStatusLine("no HTTP")),
        ("http://localhost/v1", http.client.RemoteDisconnected("gone")),
    ],
)
def test_what_gives_no_status_does_not_answer(url, error, monkeypatch):
    if error:
        answer = types.SimpleNamespace(request=lambda *asked: None, getresponse=lambda: raised(error))
        monkeypatch.setattr(probe, "connection_to", lambda parts, unix_socket: answer)
    reason = probe.reason_against(url)
    assert reason.startswith(f"{url} does not answer: ") and reason.endswith(".") and str(error or "") in reason


def raised(error):
    raise error
