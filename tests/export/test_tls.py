"""HTTP and gRPC over TLS: for clients that trust the certificate, with one of their own if the server asks for it."""

import contextlib
import dataclasses
import os
import socket
import ssl
import time

import grpc
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from export.client.access import Access
from export.client.client import ServingClient
from export.client.transports import ClientError
from export.probe import reason_against
from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.servers import serving

LINES = ["a", "ü"]


@pytest.fixture(scope="module")
def options(authority):
    pair = authority.pair("server")
    return ServerOptions(port=0, grpc_port=0, tls_certificate=pair.certificate, tls_key=pair.key, poll_seconds=0.05)


@pytest.fixture(scope="module")
def server(echo_folder, options):
    with local_server(echo_folder, options) as address:
        yield address


@pytest.fixture(scope="module")
def strict(echo_folder, options, authority):
    """A server that asks for a certificate of the authority."""
    with local_server(echo_folder, dataclasses.replace(options, tls_client_ca=authority.certificate)) as address:
        yield address


def trusting(authority):
    """A session that no variable of the environment tells to trust others."""
    session = requests.Session()
    session.trust_env, session.verify = False, str(authority.certificate)
    return session


def urls(server):
    return [server.url, server.grpc_url]


def texts(url, **access):
    return [each.text for each in ServingClient(url, 20, attempts=2, access=Access(**access)).translate(LINES)]


@contextlib.contextmanager
def connected(server, ca, port, protocols):
    """A connection whose handshake has ended."""
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(protocols)
    with socket.create_connection((server.host, port), timeout=20) as connection:
        with context.wrap_socket(connection, server_hostname="localhost") as wrapped:
            yield wrapped


def test_a_client_that_trusts_the_authority_gets_answers(server, authority):
    assert [texts(url, ca=authority.certificate) for url in urls(server)] == [LINES] * 2


def test_a_client_that_trusts_another_authority_gets_none_and_asks_once(server, stranger):
    for url in urls(server):
        start = time.monotonic()
        with pytest.raises(ClientError) as error:
            ServingClient(url, 20, access=Access(ca=stranger.certificate)).translate(LINES)
        assert not error.value.is_transient, (url, str(error.value))
        assert "CERTIFICATE_VERIFY_FAILED" in str(error.value), time.monotonic() - start


def test_without_tls_nobody_gets_an_answer(server):
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://{server.host}:{server.port}/", timeout=20)
    with pytest.raises(ClientError):
        ServingClient(f"grpc://{server.host}:{server.grpc_port}/echo", 5, attempts=1).translate(LINES)


def test_the_page_the_status_and_the_metrics_are_there(server, authority):
    with trusting(authority) as session:
        assert b" https://localhost:" in session.get(server.page_url).content  # a line of curl: it has no options
        assert session.get(server.url).json()["model_version_status"]
        assert ":tensorflow:serving" in session.get(f"{server.page_url}monitoring/prometheus/metrics").text
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
    with grpc.secure_channel(f"localhost:{server.grpc_port}", credentials) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_unix_sockets_have_no_tls_although_the_ports_do(echo_folder, options, tmp_path):
    rest, rpc = tmp_path / "rest", tmp_path / "rpc"
    with local_server(echo_folder, dataclasses.replace(options, unix_socket=rest, grpc_unix_socket=rpc)) as server:
        assert reason_against(server.url, str(rest)) == reason_against(server.url) == ""
        with grpc.insecure_channel(f"unix:{rpc}") as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_body_that_is_refused_is_read_so_that_the_client_gets_the_reason(server, authority):
    body = b"x" * (ServerOptions().body_bytes + (2 << 20))
    with trusting(authority) as session:
        for _ in range(3):
            assert session.post(f"{server.url}:predict", data=body, timeout=60).status_code == 413
        ending = session.post(f"{server.url}:predict", data=body, headers={"Connection": "close"}, timeout=60)
        assert ending.status_code == 413
        assert session.post(f"{server.url}:predict", json={"inputs": LINES}, timeout=60).status_code == 200


@pytest.mark.parametrize(("version", "is_taken"), [("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)])
def test_tls_is_1_2_or_newer(server, authority, version, is_taken):
    context = ssl.create_default_context(cafile=authority.certificate)
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    context.set_ciphers("ALL:@SECLEVEL=0")
    for port in (server.port, server.grpc_port):
        if port == server.grpc_port:
            context.set_alpn_protocols(["h2"])
        with socket.create_connection((server.host, port), timeout=20) as connection:
            with contextlib.nullcontext() if is_taken else pytest.raises((ssl.SSLError, ConnectionError)):
                with context.wrap_socket(connection, server_hostname="localhost") as wrapped:
                    assert wrapped.version() == version.replace("_", ".")


@pytest.mark.slow
def test_a_handshake_that_does_not_end_is_given_up(echo_folder, options):
    with local_server(echo_folder, dataclasses.replace(options, header_seconds=0.2)) as server:
        for port in (server.port, server.grpc_port):
            with socket.create_connection((server.host, port), timeout=20) as connection:
                assert connection.recv(100) in (b"",) or port == server.grpc_port  # gRPC may send an alert first


@pytest.mark.parametrize("head", [b"GET /none HTTP/1.1", b"POST /none HTTP/1.1\r\nContent-Length: 9"])
def test_a_connection_ends_although_its_client_does_not_end_tls_or_its_body(head, echo_folder, options, authority):
    """Python's own limit is 30 seconds."""
    with local_server(echo_folder, dataclasses.replace(options, header_seconds=0.2)) as server:
        with connected(server, authority.certificate, server.port, ["http/1.1"]) as wrapped:
            wrapped.settimeout(20)
            wrapped.sendall(head + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            with contextlib.suppress(ssl.SSLError):
                while wrapped.recv(1 << 16):
                    pass
            raw = socket.socket(fileno=os.dup(wrapped.fileno()))  # below TLS: the end of the connection itself
            with raw:
                raw.settimeout(20)
                with contextlib.suppress(ConnectionError):
                    assert raw.recv(1) == b""


def test_of_what_a_client_offers_http_1_1_is_chosen_and_http_2_for_grpc(server, authority):
    for port, chosen in ((server.port, "http/1.1"), (server.grpc_port, "h2")):
        for offered in ([chosen], ["h2", "http/1.1"]):
            with connected(server, authority.certificate, port, offered) as wrapped:
                assert wrapped.selected_alpn_protocol() == chosen


# certificates of clients


def test_a_client_with_a_certificate_gets_answers(strict, authority):
    pair = authority.pair("client")
    mine = {"ca": authority.certificate, "certificate": pair.certificate, "key": pair.key}
    assert [texts(url, **mine) for url in urls(strict)] == [LINES] * 2


def test_a_client_without_one_or_with_that_of_a_stranger_gets_none(strict, authority, stranger):
    pair = stranger.pair("client")
    for mine in ({}, {"certificate": pair.certificate, "key": pair.key}):
        for url in urls(strict):
            with pytest.raises(ClientError):
                texts(url, ca=authority.certificate, **mine)


# other files at the same place


def serial(server, ca, port):
    with connected(server, ca, port, ["h2" if port == server.grpc_port else "http/1.1"]) as wrapped:
        return wrapped.getpeercert()["serialNumber"]


def test_a_new_certificate_is_for_new_connections_and_a_damaged_one_for_none(echo_folder, authority, caplog):
    pair = authority.pair("rotated")
    with (
        serving(echo_folder, tls_certificate=pair.certificate, tls_key=pair.key, poll_seconds=0.05) as server,
        trusting(authority) as session,
    ):
        ports = [server.port, server.grpc_port]
        assert session.get(server.url).status_code == 200
        [before] = {serial(server, authority.certificate, port) for port in ports}
        pair.key.write_bytes(authority.pair("other").key.read_bytes())
        until = time.monotonic() + 60
        while "does not belong" not in caplog.text and time.monotonic() < until:
            time.sleep(0.05)
        assert {serial(server, authority.certificate, port) for port in ports} == {before}
        authority.pair("rotated")
        while "certificate changed" not in caplog.text and time.monotonic() < until:
            time.sleep(0.05)
        [after] = {serial(server, authority.certificate, port) for port in ports}
        assert after != before
        assert session.get(server.url).status_code == 200  # over the connection that was open
    assert caplog.text.count("does not belong") == 1
