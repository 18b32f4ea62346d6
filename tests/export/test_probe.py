"""A container knows whether its server is well, without curl."""

import dataclasses
import socket

import pytest

from export.probe import main, reason_against
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
