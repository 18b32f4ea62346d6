"""One request: to which address, until when, and what its error means for the next attempt."""

import concurrent.futures
import contextlib
import types

import grpc
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from export.client.access import Access
from export.client.client import LONGEST_DEADLINE, ServingClient, defaults_of
from export.client.transports import LONGEST_MESSAGE, ClientError, is_loopback, on_one_line
from keras_transformer.ground.errors import UserError


@pytest.mark.parametrize("url", ["localhost", "http://localhost:1/mine", "grpc://localhost:1", "ftp://x/v1/models/y"])
def test_an_address_of_no_model_is_refused(url):
    with pytest.raises(ClientError, match="v1/models"):
        ServingClient(url)


@pytest.mark.parametrize("host", ["[::1:8501", "localhost:85o1", "localhost:99999"])
def test_an_address_that_is_none_is_refused(host):
    for url in (f"http://{host}/v1/models/m", f"grpc://{host}/m"):
        with pytest.raises(ClientError, match="is not a URL: "):
            ServingClient(url)


FILES = pytest.mark.parametrize("names", [["ca"], ["certificate", "key"], ["ca", "certificate", "key"]])


@FILES
def test_whoever_has_a_certificate_is_sent_to_an_address_with_tls(names, tmp_path):
    (tmp_path / "file").write_text("a-key")
    access = Access(**{name: tmp_path / "file" for name in names})
    for url in ("http://localhost:1/v1/models/m", "grpc://localhost:1/m"):
        with pytest.raises(ClientError, match=f"write {url.partition(':')[0]}s://"):
            ServingClient(url, access=access)
        ServingClient(url, access=Access(api_key_file=tmp_path / "file"))
    ServingClient("https://localhost:1/v1/models/m", access=access)


@pytest.mark.parametrize(
    ("content", "key"),
    [("k", "k"), ("\n\n k \nother\n", "k"), ("# note\nk", "k"), ("", None), ("# k", None), ("a b", None), ("ü", None)],
)
def test_the_first_line_of_a_file_that_is_no_note_is_the_key(content, key, tmp_path):
    (tmp_path / "keys").write_text(content)
    with contextlib.nullcontext() if key else pytest.raises(UserError, match="keys has no API key"):
        assert Access(api_key_file=tmp_path / "keys").api_key() == key
    assert Access().api_key() == ""


@pytest.mark.parametrize("missing", ["translation", "score"])
def test_a_model_that_does_not_translate_is_told_so(missing):
    client = ServingClient("http://localhost:1/v1/models/m")
    outputs = {"translation": ["a"], "score": [0.0], "other": [1]}
    client.transport = types.SimpleNamespace(predict=lambda *_: {n: v for n, v in outputs.items() if n != missing})
    with pytest.raises(ClientError, match="does not translate text: its outputs are other, "):
        client.translate(["a"])
    assert client.translate([]) == []  # for which nothing is asked


@contextlib.contextmanager
def answering(predict):
    """The gRPC URL of a server whose Predict is `predict`, from the bytes of a request to those of an answer."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    handlers = {"Predict": grpc.unary_unary_rpc_method_handler(predict)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("tensorflow.serving.PredictionService", handlers)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}/model"
    finally:
        server.stop(0)


def test_an_answer_that_is_too_big_is_asked_for_once(monkeypatch):
    monkeypatch.setattr("export.client.transports.MESSAGE_BYTES", 1_000)
    requests = []

    def predict(request, context):
        requests.append(request)
        return bytes(2_000)

    with answering(predict) as url, pytest.raises(ClientError, match="larger than max") as error:
        ServingClient(url, attempts=3).translate(["a"])
    assert error.value.code == "RESOURCE_EXHAUSTED" and not error.value.is_transient and len(requests) == 1


def test_a_full_queue_is_asked_again():
    """The code is that of an answer that is too big."""
    requests = []

    def predict(request, context):
        requests.append(request)
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")

    with answering(predict) as url, pytest.raises(ClientError, match="the queue is full") as error:
        ServingClient(url, attempts=3).translate(["a"])
    assert error.value.is_transient and len(requests) == 3


def test_the_server_learns_the_deadline_of_a_grpc_client():
    """Record the deadline: if a client did not send it, the server would work in vain."""
    found = []

    def predict(request, context):
        found.append(context.time_remaining())
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "enough")

    with answering(predict) as url, pytest.raises(ClientError, match="enough"):
        ServingClient(url, deadline=500.0).translate(["a"])
    [remaining] = found
    assert remaining is not None and 400 < remaining <= 501  # gRPC rounds up to three digits, on a busy machine to 501


@pytest.mark.parametrize("host, expected", [("localhost", True), ("::1", True), ("127.0.0.9", True), ("a.org", False)])
def test_this_machine_is_known_by_its_addresses(host, expected):
    assert is_loopback(host) is expected and not is_loopback(None)


def test_what_a_server_writes_is_one_printable_line_of_bounded_length():
    assert on_one_line("not\n\x1b[31m now\t") == "not ?[31m now"
    assert on_one_line("x" * 10_000) == "x" * LONGEST_MESSAGE


def test_limits_themselves_are_allowed_and_nothing_is_asked_for_without_rows_or_requests():
    url, least = "http://localhost:1/v1/models/m", {"rows_per_request": 1, "requests_at_once": 1}
    assert ServingClient(url, deadline=LONGEST_DEADLINE, **least).deadline == LONGEST_DEADLINE
    for name in least:
        with pytest.raises(ClientError, match=f"{name} is 0; it must be at least 1"):
            ServingClient(url, **least | {name: 0})
    assert ServingClient(url, requests_at_once=1024).requests_at_once == 1024
    with pytest.raises(ClientError, match="requests_at_once is 1000000000; it must be at most 1024"):
        ServingClient(url, requests_at_once=1_000_000_000)


def test_a_default_of_one_value_is_that_of_every_row_and_another_one_is_none():
    signature = SignatureDef()
    for name, values in {"beam_size": [4], "target_prefix": ["Ein"], "pair": [1, 2], "nothing": []}.items():
        signature.defaults[name].CopyFrom(tf.make_tensor_proto(values))
    assert defaults_of(signature) == {"beam_size": 4, "target_prefix": "Ein"}


@pytest.mark.parametrize("names", [["ca"], ["certificate", "key"], ["api_key_file"]])
@pytest.mark.parametrize("missing", ["ca", "certificate", "key", "api_key_file"])
def test_a_file_that_cannot_be_read_is_named_before_anything_is_sent(names, missing, tmp_path):
    for name in names:
        (tmp_path / name).write_text("k")
    if missing in names:
        (tmp_path / missing).unlink()
    with (
        pytest.raises(UserError, match=f"{missing} cannot be read: No")
        if missing in names
        else contextlib.nullcontext()
    ):
        Access(**{name: tmp_path / name for name in names})
