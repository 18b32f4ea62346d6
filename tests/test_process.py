"""A local server starts only where it can: with a version to serve, on ports that are free."""

import socket

import pytest

from export.server.options import ServerOptions
from export.server.process import local_server
from export.versions import ExportError
from tests.support.echo import write_echo


def test_a_folder_without_a_version_is_refused(tmp_path):
    with pytest.raises(ExportError, match="no exported version"), local_server(tmp_path, ServerOptions()):
        pass


@pytest.mark.parametrize("name", ["port", "grpc_port"])
def test_a_port_that_is_taken_is_named(name, tmp_path):
    write_echo(tmp_path / "echo" / "1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ServerOptions(**{"port": 0, "grpc_port": 0} | {name: port})
        with pytest.raises(ExportError, match=str(port)), local_server(tmp_path / "echo", options):
            pass
