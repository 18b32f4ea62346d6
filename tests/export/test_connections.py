"""How many connections there are: neither protocol takes the last file descriptor, and what a client closes is gone."""

import contextlib
import gc
import re
import socket
import ssl
import time
import types

import pytest
import requests

from export.client.client import ServingClient
from export.server.http_connection import HttpConnection
from export.server.options import REFUSED
from export.server.sockets import OTHER_FILES
from tests.support.processes import start_fork, wait_until
from tests.support.servers import serving

FILES = 300
ADDRESS = re.compile(r"://[^:/]+:(\d+)/(?:v1/models/)?echo")  # what the server prints of REST and of gRPC
SERVE = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, {FILES}))
runpy.run_module("export.serve", run_name="__main__")
"""


@contextlib.contextmanager
def opened(host, port, count):
    """Within, so many connections are open that send nothing. Yields how many the server has closed at once."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection((host, port), timeout=20)) for _ in range(count)]
        time.sleep(1.0)
        closed = 0
        for connection in connections:
            connection.setblocking(False)
            try:
                closed += connection.recv(1 << 16) == b""
            except BlockingIOError:
                pass
            except OSError:
                closed += 1
        yield closed


def wait_until_answered(connection):
    received = b""
    while b"AVAILABLE" not in received:
        received += connection.recv(1 << 16)


def is_answered(url, verify):
    """Whether the server is ready for a request. It resets a connection as long as it has no file for it."""
    try:
        return requests.get(url, verify=verify, timeout=10).status_code == 200
    except requests.ConnectionError:
        return False


@pytest.fixture(params=["plain", "TLS"])
def server(request, echo_folder, tmp_path, authority):
    """A server in a process that may have 300 files, of which it may raise its limit to all."""
    log, pair = tmp_path / "log", authority.pair("server")
    tls = ["--tls-certificate", pair.certificate, "--tls-key", pair.key] if request.param == "TLS" else []
    process = start_fork("-c", SERVE, echo_folder, "--port", 0, "--grpc-port", 0, *tls, log=log)
    try:
        wait_until(lambda: len(ADDRESS.findall(log.read_text())) == 2, [process])
        port, grpc_port = map(int, ADDRESS.findall(log.read_text()))
        yield types.SimpleNamespace(port=port, grpc_port=grpc_port, log=log, tls=tls, process=process)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_idle_connections_of_one_protocol_leave_files_to_the_other(server, authority):
    """And to those who come afterwards; nothing is logged for each of them."""
    scheme, verify = ("https", str(authority.certificate)) if server.tls else ("http", True)
    url = f"{scheme}://localhost:{server.port}/v1/models/echo"
    possible = (FILES - REFUSED - OTHER_FILES) // 2
    assert f"{possible} connections of HTTP and as many of gRPC are taken, not 1000" in server.log.read_text()
    with opened("127.0.0.1", server.grpc_port, FILES) as closed:
        assert closed == FILES - possible
        wait_until(lambda: is_answered(url, verify), [server.process])
        with opened("127.0.0.1", server.port, FILES) as closed_of_http:
            assert closed_of_http >= possible
    wait_until(lambda: is_answered(url, verify), [server.process])
    if not server.tls:
        assert ServingClient(f"grpc://localhost:{server.grpc_port}/echo", 20).translate(["a"])[0].text == "a"
    assert "Traceback" not in server.log.read_text() and "out of system resource" not in server.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("is_abrupt", [False, True])
def test_of_a_connection_that_its_client_closes_nothing_stays(echo_folder, authority, caplog, is_tls, is_abrupt):
    """Neither a traceback nor its parser and its timer, which wait for 75 seconds otherwise."""
    pair = authority.pair("server")
    tls = {"tls_certificate": pair.certificate, "tls_key": pair.key} if is_tls else {}
    with serving(echo_folder, **tls) as address:
        for _ in range(3):
            with socket.create_connection((address.host, address.port), timeout=20) as connection:
                if is_tls:
                    context = ssl.create_default_context(cafile=authority.certificate)
                    connection = context.wrap_socket(connection, server_hostname="localhost")
                connection.sendall(b"GET /v1/models/echo HTTP/1.1\r\nHost: localhost\r\n\r\n")
                wait_until_answered(connection)
                if is_abrupt:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()

        def is_gone():
            gc.collect()
            return not any(isinstance(each, HttpConnection) for each in gc.get_objects())

        until = time.monotonic() + 20
        while not is_gone() and time.monotonic() < until:
            time.sleep(0.1)
        assert is_gone()
    assert "Traceback" not in caplog.text and not [each for each in caplog.records if each.name == "asyncio"]
