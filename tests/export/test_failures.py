"""Errors of REST and gRPC: which of them pass, when to ask again, and no password in a message."""

import email.utils
import socket
import ssl
import threading
import time
import types

import pytest

from export.client.client import ServingClient
from export.client.failures import passes, seconds_of, without_password
from export.client.transports import ClientError


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@127.0.0.1:9/v1/models/m",
        "https://me:secret@127.0.0.1:9/v1/models/m",
        "http://me:se@cret@127.0.0.1:9/v1/models/m",
        "http://me:secret@127.0.0.1:9/other",
        "http://me:secret@127.0.0.1:99999/v1/models/m",
        "grpc://me:secret@127.0.0.1:9/m",
        "ftp://me:secret@127.0.0.1/m",
    ],
)
def test_no_message_has_the_password(url):
    with pytest.raises(ClientError) as error:
        ServingClient(url, attempts=1).translate(["a"])
    assert "127.0.0.1" in str(error.value) and "secret" not in str(error.value) and "cret@" not in str(error.value)


def test_only_user_and_password_are_left_out():
    assert without_password("http://u:p@host/a@b and //v@other") == "http://host/a@b and //other"


def after(reason):
    """An error that was raised because of another one."""
    try:
        try:
            raise reason
        except Exception as inner:
            raise ConnectionError("outer") from inner
    except ConnectionError as error:
        return error


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (ConnectionRefusedError(), True),
        (ConnectionResetError(), True),
        (socket.gaierror(socket.EAI_AGAIN, "later"), True),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), False),
        (ssl.SSLCertVerificationError(), False),
        (ssl.SSLError("wrong version number"), False),
    ],
)
def test_an_unknown_host_and_tls_do_not_pass(reason, expected):
    assert passes(after(reason)) is expected


def test_tls_to_a_server_without_it_is_tried_once():
    connections = []

    def refuse():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection.recv(100))
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refuse, daemon=True).start()
        with pytest.raises(ClientError) as error:
            ServingClient(f"https://127.0.0.1:{listener.getsockname()[1]}/v1/models/m").translate(["a"])
    assert not error.value.is_transient and len(connections) == 1


@pytest.mark.parametrize(("header", "expected"), [("3", 3.0), ("0", 0.0), ("", 0.0), ("-1", 0.0), ("soon", 0.0)])
def test_retry_after_is_a_number(header, expected):
    assert seconds_of(header) == expected


def test_retry_after_is_a_date():
    assert seconds_of(email.utils.formatdate(time.time() + 100, usegmt=True)) == pytest.approx(100, abs=5)
    assert seconds_of(email.utils.formatdate(0, usegmt=True)) == 0.0


def test_the_server_is_not_asked_again_before_it_wants_to_be():
    client, times = ServingClient("http://localhost:1/v1/models/m"), []

    class Busy:
        def predict(self, signature_name, inputs, seconds):
            times.append(time.monotonic())
            if len(times) < 2:
                raise ClientError("busy", 503, is_transient=True, wait=0.5)
            return {"translation": ["b"], "score": [0.0]}

    client.transport = Busy()
    client.translate(["a"])
    assert 0.5 <= times[1] - times[0] < 2.0


def test_a_time_beyond_the_deadline_is_not_waited_for():
    client, begun = ServingClient("http://localhost:1/v1/models/m", deadline=5.0), time.monotonic()

    class Closed:
        def predict(self, signature_name, inputs, seconds):
            raise ClientError("closed", 503, is_transient=True, wait=3600.0)

    client.transport = Closed()
    with pytest.raises(ClientError, match="closed"):
        client.translate(["a"])
    assert time.monotonic() - begun < 4.0


@pytest.mark.parametrize("values", [[1], [1, 2, 3], "ab", None])
def test_an_answer_with_more_or_fewer_values_than_rows_is_none(values):
    client = ServingClient("http://localhost:1/v1/models/mine", attempts=1)
    client.transport = types.SimpleNamespace(predict=lambda name, inputs, seconds: {"score": values})
    with pytest.raises(ClientError, match="'score' does not have one value for each of 2 rows"):
        client.predict({"text": ["a", "b"]}, "serving_default")
