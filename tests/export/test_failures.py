"""Errors of REST and gRPC: which of them pass, when to ask again, and no password in a message."""

import email.utils
import socket
import ssl
import threading
import time
import types

import grpc
import pytest
import requests
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from export.client.access import Access
from export.client.client import ServingClient, as_floats
from export.client.failures import cause_of, passes, seconds_of, without_password
from export.client.transports import ClientError, GrpcTransport, RestTransport


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


@pytest.mark.parametrize(
    ("header", "expected"),
    [("3", 3.0), ("120", 120.0), ("999999999", 999_999_999.0), ("0", 0.0), ("", 0.0), ("-1", 0.0), ("soon", 0.0)],
)
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


def test_a_cause_without_words_has_the_name_of_its_kind():
    assert cause_of(after(ConnectionResetError())) == "ConnectionResetError"
    assert cause_of(after(ConnectionResetError("by peer"))) == "by peer"


PASSING = {"the queue is full": True, "Connection refused": True} | dict.fromkeys(
    ("larger than max", "Domain name not found", "CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "alert"), False
)


@pytest.mark.parametrize(("details", "is_transient"), PASSING.items())
def test_only_what_may_pass_is_asked_again_over_grpc(details, is_transient):
    class Failed(grpc.RpcError):
        def code(self):
            return grpc.StatusCode.UNAVAILABLE

        def details(self):
            return f"it says {details} here"

    def method(request, timeout, metadata):
        assert timeout == 2.5
        raise Failed

    with pytest.raises(ClientError, match=details) as error:
        GrpcTransport("localhost:1", "m")._call(method, None, 2.5)
    assert error.value.is_transient is is_transient and error.value.code == "UNAVAILABLE"


class Served:
    """A transport to a model whose input `times` is 3 unless it is given; it notes each request and its time."""

    def __init__(self):
        self.asked = []

    def metadata(self, seconds):
        signature = SignatureDef()
        signature.defaults["times"].CopyFrom(tf.make_tensor_proto([3]))
        signature.inputs["alpha"].dtype = tf.float32.as_datatype_enum
        return {"b": signature, "a": signature}

    def predict(self, signature_name, inputs, seconds):
        self.asked.append((signature_name, inputs, seconds))
        return {"text": inputs["text"]}


def served(**options):
    client = ServingClient("http://localhost:1/v1/models/m", **options)
    client.transport = Served()
    return client, client.transport.asked


def test_rows_that_do_not_fill_the_last_request_are_as_many_as_there_are():
    client, asked = served(rows_per_request=2, requests_at_once=1)
    assert client.predict({"text": list("abcde")}, "a") == {"text": list("abcde")}
    assert [inputs["text"] for _, inputs, _ in asked] == [["a", "b"], ["c", "d"], ["e"]]


def test_what_is_given_per_row_stands_above_options_and_these_above_defaults():
    client, asked = served()
    for inputs, options, times in (
        ({}, {}, [3, 3]),
        ({}, {"times": 5}, [5, 5]),
        ({"times": [7, 8]}, {"times": 5}, [7, 8]),
    ):
        client.predict({"text": ["x", "y"]} | inputs, "a", options)
        assert asked[-1][1] == {"text": ["x", "y"], "times": times}
    with pytest.raises(ClientError, match="no signature 'none'; it has a, b."):
        client.predict({"text": ["x"]}, "none", {})


def test_a_request_has_a_moment_however_late_it_is_and_a_truth_is_no_number():
    client, asked = served(deadline=1e-9)
    client.predict({"text": ["x"]}, "a")
    assert asked[0][2] >= 0.001
    signature = Served().metadata(1.0)["a"]
    assert [type(value) for value in as_floats(signature, "alpha", [1, True, 0.5])] == [float, bool, float]
    assert as_floats(signature, "text", [1]) == [1]


URL = "http://me:secret@h/v1/models/m"  # whose password no message has
UNREACHABLE = requests.exceptions.ConnectionError("//me:secret@h\nno route")


@pytest.mark.parametrize(
    ("answer", "sentence", "code", "is_transient", "wait"),
    [
        ((200, b'{"outputs": ["a"]}'), "http://h/v1/models/m answers without named outputs: ", None, False, 0),
        ((200, b"no JSON"), "http://h/v1/models/m:predict answers 200: no JSON", 200, False, 0),
        ((200, b'["a"]'), 'http://h/v1/models/m:predict answers 200: ["a"]', 200, False, 0),
        ((404, b'{"error": "not\\nhere"}'), "http://h/v1/models/m:predict answers 404: not here", 404, False, 0),
        ((503, b'{"error": "full"}'), "http://h/v1/models/m:predict answers 503: full", 503, True, 7),
        ((502, b"<html>"), "http://h/v1/models/m:predict answers 502: <html>", 502, True, 7),
        (requests.exceptions.ReadTimeout(), "did not answer within 2 seconds.", "DEADLINE_EXCEEDED", False, 0),
        (UNREACHABLE, "http://h/v1/models/m:predict cannot be reached: //h no route", None, True, 0),
        (requests.exceptions.InvalidHeader("//me:secret@h\n"), "The request to http://h/v1/", None, False, 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_answer_is_one_sentence_with_its_code_and_whether_to_ask_again(
    answer, sentence, code, is_transient, wait, monkeypatch
):
    def request(method, url, **how):
        if isinstance(answer, Exception):
            raise answer
        response = requests.Response()
        response.status_code, response._content = answer
        response.headers["Retry-After"] = str(wait)
        return response

    transport = RestTransport(URL, 1, Access())
    monkeypatch.setattr(transport.session, "request", request)
    with pytest.raises(ClientError) as error:
        transport.predict("serving_default", {"text": ["a"]}, 2.0)
    assert sentence in str(error.value) and "secret" not in str(error.value) and "\n" not in str(error.value)
    assert (error.value.code, error.value.is_transient, error.value.wait) == (code, is_transient, wait)


@pytest.mark.parametrize(
    "content", [b"{}", b'{"metadata": 3}', b'{"metadata": {"signature_def": {"signature_def": 3}}}']
)
def test_signatures_that_cannot_be_read_are_told_so(content, monkeypatch):
    def request(method, url, **how):
        assert (method, url, how["data"]) == ("GET", f"{URL}/metadata", None)
        response = requests.Response()
        response.status_code, response._content = 200, content
        return response

    transport = RestTransport(URL, 1, Access())
    monkeypatch.setattr(transport.session, "request", request)
    with pytest.raises(ClientError, match=r"^http://h/v1/models/m/metadata cannot be read: \S"):
        transport.metadata(1.0)


@pytest.mark.parametrize("values", [["\ud800"], [object()], [1, "a"]])
def test_values_that_no_tensor_has_are_named_and_not_sent(values, monkeypatch):
    transport = GrpcTransport("h:1", "m")
    monkeypatch.setattr(transport, "_call", lambda *asked: pytest.fail("it is sent"))
    with pytest.raises(ClientError, match="^The input 'text' cannot be sent: ") as error:
        transport.predict("serving_default", {"text": values}, 1.0)
    assert "\n" not in str(error.value)
