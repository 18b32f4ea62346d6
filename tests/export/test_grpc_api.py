"""Messages of gRPC: what is refused before it is read."""

import asyncio
import contextlib
import re
import time
import types

import grpc
import pytest
import tensorflow as tf
from grpc_health.v1.health import aio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from export.server import grpc_api, protobuf_codec
from export.server.bytes_in_flight import BytesInFlight
from export.server.dispatcher import Dispatcher
from export.server.errors import Code, RequestError
from export.server.grpc_api import GrpcApi, received, set_serving
from export.server.model_folder import State, Status
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.signature import Signature, Tensor


class Echo:
    """A dispatcher that reads the request of its only signature, and computes nothing."""

    options = ServerOptions(request_rows=40)

    def statuses(self, name, number):
        return {version: Status(State.AVAILABLE) for version in (1, 2) if number in (None, version)}

    def version(self, name, number):
        pytest.fail("a request that is invalid asks for no version")

    def version_in_use(self, name, number):
        return contextlib.nullcontext(types.SimpleNamespace(number=1))

    async def question(self, version, codec_of, request, size, until):
        return codec_of(request, self.options.request_rows)

    async def predict(self, version, codec, share, until):
        signature = Signature("echo", {"text": Tensor("text:0", tf.string, (None,))}, {}, {})
        return codec.write(codec.read(signature), 1 << 20)


def asked(name, shape):
    request = predict_pb2.PredictRequest(model_spec={"name": "echo"})
    request.inputs[name].dtype = tf.string.as_datatype_enum
    for size in shape:
        request.inputs[name].tensor_shape.dim.add(size=size)
    request.inputs[name].string_val.append(b"a")
    answer = asyncio.run(GrpcApi(Echo()).predict(request, types.SimpleNamespace(size=0), 0.0))
    return predict_pb2.PredictResponse.FromString(answer)


def test_what_fits_is_read():
    assert tf.make_ndarray(asked("text", [40]).outputs["text"]).tolist() == [b"a"] * 40


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("text", [1 << 22], "The request has 4194304 rows; this server takes at most 40."),
        ("text", [41], "The request has 41 rows; this server takes at most 40."),
        ("text", [1, 1 << 22], "The input 'text' must have the shape (-1); it has (1, 4194304)."),
        ("other", [1 << 22], "The signature 'echo' has no input 'other'; it has text."),
    ],
)
def test_a_small_message_that_claims_many_values_is_refused_before_they_are_made(monkeypatch, name, shape, message):
    monkeypatch.setattr(protobuf_codec, "array_of", lambda *arguments: pytest.fail("it is made"))
    with pytest.raises(RequestError, match=re.escape(message)):
        asked(name, shape)


def test_a_message_counts_as_the_longest_until_it_has_arrived_and_then_as_what_it_is():
    sizes, whole = [], BytesInFlight(1000)

    async def read():
        sizes.append(share.size)
        return b"abc"

    async def receive():
        context, arriving = types.SimpleNamespace(read=read), asyncio.Semaphore(1)
        body = await received(context, arriving, 900, share, time.monotonic() + 60)
        assert not arriving.locked()
        return body

    with whole.share() as share:
        assert asyncio.run(receive()) == b"abc"
        assert (sizes, share.size, whole.held) == ([900], 3, 3)
        with whole.share() as other, pytest.raises(RequestError) as error:
            context = types.SimpleNamespace(read=lambda: pytest.fail("there is no room for it"))
            asyncio.run(received(context, asyncio.Semaphore(1), 998, other, time.monotonic() + 60))
    assert error.value.code is Code.RESOURCE_EXHAUSTED and whole.held == 0


def test_each_reason_has_the_status_of_its_name():
    assert {code.name: status.name for code, status in grpc_api.STATUS.items()} == {
        code.name: code.name for code in Code
    }


LABELLED = {"name": "echo", "version_label": "stable"}


@pytest.mark.parametrize(
    ("method", "request_of_it", "message"),
    [
        (GrpcApi.predict, predict_pb2.PredictRequest(), "Missing ModelSpec"),
        (GrpcApi.metadata, GetModelMetadataRequest(metadata_field=["signature_def"]), "Missing ModelSpec"),
        (GrpcApi.metadata, GetModelMetadataRequest(model_spec={"name": "echo"}), "metadata_field"),
        (GrpcApi.status, GetModelStatusRequest(), "Missing ModelSpec"),
    ],
)
def test_a_request_without_a_model_is_invalid(method, request_of_it, message):
    with pytest.raises(RequestError, match=message) as error:
        asyncio.run(method(GrpcApi(Echo()), request_of_it, types.SimpleNamespace(size=0), 0.0))
    assert error.value.code is Code.INVALID_ARGUMENT


def test_of_a_status_a_label_is_ignored_and_a_number_is_not():
    for spec, versions in ((LABELLED, [2, 1]), ({"name": "echo", "version": {"value": 1}}, [1])):
        request = GetModelStatusRequest(model_spec=spec)
        answer = asyncio.run(GrpcApi(Echo()).status(request, types.SimpleNamespace(size=0), 0.0))
        statuses = GetModelStatusResponse.FromString(answer).model_version_status
        assert sorted(status.version for status in statuses) == sorted(versions)


def test_health_is_serving_from_the_start_until_the_server_ends(echo_folder):
    """As a probe asks it; a service that is not here is unknown."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(local_server(echo_folder, ServerOptions(port=0, grpc_port=0)))
        channel = stack.enter_context(grpc.insecure_channel(f"{address.host}:{address.grpc_port}"))
        health = HealthStub(channel)
        for name in ("", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"):
            assert health.Check(HealthCheckRequest(service=name), timeout=30).status == HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as error:
            health.Check(HealthCheckRequest(service="other"), timeout=30)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.slow
def test_who_watches_health_is_told_that_the_server_ends(echo_folder):
    options = ServerOptions(port=0, grpc_port=0)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.ExitStack())
        address = server.enter_context(local_server(echo_folder, options))
        channel = stack.enter_context(grpc.insecure_channel(f"{address.host}:{address.grpc_port}"))
        watched = HealthStub(channel).Watch(HealthCheckRequest(), timeout=60)
        assert next(watched).status == HealthCheckResponse.SERVING
        server.close()
        assert next(watched).status == HealthCheckResponse.NOT_SERVING


def test_health_ends_before_the_requests_in_flight_do():
    async def answers():
        health = aio.HealthServicer()
        await set_serving(health)
        found = []
        for _ in range(2):
            found.append((await health.Check(HealthCheckRequest(), None)).status)
            await health.enter_graceful_shutdown()
        return found

    assert asyncio.run(answers()) == [HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING]


@pytest.mark.parametrize("has_keys", [False, True])
def test_the_limits_of_the_options_are_those_of_the_grpc_server(has_keys, monkeypatch):
    made = []

    def server(options, maximum_concurrent_rpcs, interceptors):
        made.append((dict(options), maximum_concurrent_rpcs, interceptors))
        return types.SimpleNamespace(add_generic_rpc_handlers=handlers.extend, add_insecure_port=lambda place: 7)

    handlers, keys = [], "keys" if has_keys else None
    monkeypatch.setattr(grpc.aio, "server", server)
    monkeypatch.setattr(grpc_api, "add_HealthServicer_to_server", lambda health, server: None)
    options = ServerOptions(body_bytes=1000, header_seconds=2.5, deadline=9.0, connections=50)
    dispatcher = types.SimpleNamespace(options=options)
    *_, port = grpc_api.bound_server(dispatcher, types.SimpleNamespace(keys=keys, certificate=None))
    [(found, calls, interceptors)] = made
    assert (port, calls, [each.keys for each in interceptors]) == (7, 50, ["keys"] * has_keys)
    assert found == {
        "grpc.max_receive_message_length": 1000 + (1 << 16),
        "grpc.max_send_message_length": -1,
        "grpc.so_reuseport": 0,
        "grpc.max_concurrent_streams": 50,
        "grpc.http2.bdp_probe": 0,
        "grpc.server_handshake_timeout_ms": 2500,
        "grpc.keepalive_time_ms": 2500,
        "grpc.http2.ping_timeout_ms": 2500,
        "grpc.max_connection_age_ms": 9000,
        "grpc.max_connection_age_grace_ms": 9250,
    }
    assert [handler.service_name() for handler in handlers] == [
        "tensorflow.serving.PredictionService",
        "tensorflow.serving.ModelService",
    ]


HERE, ELSEWHERE = "ipv4:127.0.0.1:1", "ipv4:10.0.0.7:1"


async def failing(request, share, until):
    raise ValueError("two\nlines")


async def refusing(request, share, until):
    raise RequestError(Code.FAILED_PRECONDITION, "why")


async def echoing(request, share, until):
    return request.SerializeToString() * 2


BODY = predict_pb2.PredictRequest(model_spec={"name": "echo"}).SerializeToString()


def call(body, answer=echoing, request_type=predict_pb2.PredictRequest, free=1, peer=HERE, **options):
    """What a client gets, the messages of the log aside: the answer, or a code and a message."""
    got, held = [], []

    async def read():
        held.append(dispatcher.bytes_in_flight.held)
        return body

    async def write(content):
        held.append(dispatcher.bytes_in_flight.held)
        got.append(content)

    async def abort(code, message):
        got.append((code, message))

    async def main():
        arriving = asyncio.Semaphore(free)
        handler = grpc_api.method(dispatcher, arriving, request_type, answer, **options)
        assert handler.request_streaming and handler.response_streaming
        await handler.stream_stream(None, context)
        assert arriving._value == free and dispatcher.bytes_in_flight.held == dispatcher.in_flight == 0

    dispatcher = Dispatcher(
        Models([types.SimpleNamespace(name="echo", status={})]), ServerOptions(body_bytes=1 << 20, deadline=0.05 + free)
    )
    context = types.SimpleNamespace(read=read, write=write, abort=abort, peer=lambda: peer, time_remaining=lambda: None)
    asyncio.run(main())
    dispatcher.close()
    [outcome] = got
    return outcome, held, dispatcher.metrics.text().decode()


def test_a_call_holds_the_longest_message_until_it_has_come_and_its_answer_until_it_is_written():
    outcome, held, _ = call(BODY)
    assert outcome == BODY * 2 and held == [(1 << 20) + grpc_api.SLACK, 2 * len(BODY)]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"body": grpc.aio.EOF}, "INVALID_ARGUMENT", "The call has no message."),
        ({"body": b"\xff"}, "INVALID_ARGUMENT", "The message is no PredictRequest."),
        ({"body": BODY, "answer": refusing}, "FAILED_PRECONDITION", "why"),
        ({"body": BODY, "answer": failing}, "INTERNAL", "The server failed at this request."),
        ({"body": BODY, "free": 0}, "DEADLINE_EXCEEDED", "The message did not arrive within the deadline."),
        (
            {"body": BODY, "peer": ELSEWHERE, "only_here": True},
            "PERMISSION_DENIED",
            f"Predict is for this machine alone. {grpc_api.INSTEAD}",
        ),
    ],
)
def test_a_call_that_gets_no_answer_gets_a_code_and_a_sentence(options, code, message, caplog):
    outcome, _, metrics = call(**options)
    assert outcome == (grpc.StatusCode[code], message) and f'status="{code}"' in metrics
    logged = [record.getMessage() for record in caplog.records]
    assert logged == (["a request failed: ValueError('two\\nlines')"] if code == "INTERNAL" else [])


@pytest.mark.parametrize(
    ("peer", "options"), [(HERE, {"only_here": True}), (ELSEWHERE, {}), (ELSEWHERE, {"only_here": False})]
)
def test_only_some_calls_are_for_this_machine_alone(peer, options):
    assert call(BODY, peer=peer, **options)[0] == BODY * 2


@pytest.mark.parametrize(
    ("request_type", "name"),
    [
        (predict_pb2.PredictRequest, "Predict"),
        (ClassificationRequest, "Classify"),
        (RegressionRequest, "Regress"),
        (MultiInferenceRequest, "MultiInference"),
        (GetModelMetadataRequest, "GetModelMetadata"),
        (GetModelStatusRequest, "GetModelStatus"),
    ],
)
def test_calls_are_counted_under_the_names_of_their_methods(request_type, name):
    *_, metrics = call(b"", request_type=request_type)
    assert f'API="{name}",entrypoint="GRPC"' in metrics
