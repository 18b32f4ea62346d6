"""Messages of gRPC: what is refused before it is read."""

import asyncio
import contextlib
import re
import types

import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse

from export.server import grpc_api, protobuf_codec
from export.server.errors import Code, RequestError
from export.server.grpc_api import GrpcApi
from export.server.model_folder import State, Status
from export.server.options import ServerOptions
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


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("text", [1 << 22], "The request has 4194304 rows; this server takes at most 40."),
        ("text", [41], "The request has 41 rows; this server takes at most 40."),
        ("text", [1, 1 << 22], "The input 'text' must have the shape (-1); it has (1, 4194304)."),
        ("other", [1 << 22], "The signature 'echo' does not take other; it takes text."),
    ],
)
def test_a_small_message_that_claims_many_values_is_refused_before_they_are_made(monkeypatch, name, shape, message):
    monkeypatch.setattr(protobuf_codec, "array_of", lambda *arguments: pytest.fail("it is made"))
    with pytest.raises(RequestError, match=re.escape(message)):
        asked(name, shape)


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


HERE, ELSEWHERE = "ipv4:127.0.0.1:1", "ipv4:10.0.0.7:1"
