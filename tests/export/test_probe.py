"""A container knows whether its server is well, without curl."""

import dataclasses
import http.client
import socket
import socketserver
import threading
import urllib.parse

import pytest

from export.probe import connection_to, main, reason_against
from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.certificates import Authority
from tests.support.processes import python
from tests.support.servers import serving


def test_a_server_is_well_and_one_without_the_model_is_not(echo_folder, tmp_path, capsys):
    with serving(echo_folder, unix_socket=tmp_path / "socket") as server:
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


class Answering(socketserver.StreamRequestHandler):
    """Answers with the bytes that the path of a request asks for, by hexadecimal digits."""

    def handle(self):
        path = self.rfile.readline().split()[1].decode()
        self.wfile.write(bytes.fromhex(path.removeprefix("/v1/")))


@pytest.fixture(scope="module")
def answering():
    """The address of a server that answers with what stands behind it."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/"
        server.shutdown()


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (201, False), (204, False), (301, False), (503, False)])
def test_only_200_is_well(answering, status, is_well):
    url = answering + f"HTTP/1.1 {status} any\r\n\r\n".encode().hex()
    assert reason_against(url) == ("" if is_well else f"{url} answers {status}.")


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


def test_what_gives_no_status_does_not_answer(answering):
    for url in ("http://[::1/v1", "http://localhost:x/v1", answering, answering + b"no HTTP\r\n\r\n".hex()):
        reason = reason_against(url)
        assert reason.startswith(f"{url} does not answer: ") and reason.endswith(".") and reason.count("\n") == 0
