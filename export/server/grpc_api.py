"""TensorFlow Serving's gRPC API: Predict, GetModelMetadata and GetModelStatus."""

import logging
import time
from collections.abc import Awaitable, Callable

import grpc
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, GetModelMetadataResponse
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from .dispatcher import Dispatcher
from .errors import Code, RequestError, invalid
from .options import in_url
from .protobuf_codec import ProtobufCodec
from .protocol import metadata_of, status_of
from .signature import SERVING_DEFAULT

STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code.number) for code in Code}
SLACK = 1 << 16  # bytes of a message beside its tensors

log = logging.getLogger("export.server")


class GrpcApi:
    """Answers the calls of clients through a Dispatcher."""

    def __init__(self, dispatcher: Dispatcher):
        self.dispatcher = dispatcher

    async def predict(self, request: PredictRequest, until: float) -> PredictResponse:
        spec = request.model_spec
        with self.dispatcher.version_in_use(named(spec), number_of(spec)) as version:
            codec = ProtobufCodec(request, self.dispatcher.options.request_rows)
            response = await self.dispatcher.predict(version, codec, until)
        response.model_spec.name = spec.name
        response.model_spec.signature_name = spec.signature_name or SERVING_DEFAULT
        response.model_spec.version.value = version.number
        return response

    async def metadata(self, request: GetModelMetadataRequest, until: float) -> GetModelMetadataResponse:
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid(f"metadata_field is {list(request.metadata_field)}; it must be ['signature_def'].")
        spec = request.model_spec
        return metadata_of(spec.name, self.dispatcher.version(named(spec), number_of(spec)))

    async def status(self, request: GetModelStatusRequest, until: float) -> GetModelStatusResponse:
        return status_of(self.dispatcher.statuses(request.model_spec.name, number_of(request.model_spec)))


def named(spec: ModelSpec) -> str:
    """Return the model that a request names. Raises RequestError if it names none."""
    if not spec.name:
        raise invalid("Missing ModelSpec: it must have the name of the model.")
    return spec.name


def number_of(spec: ModelSpec) -> int | None:
    """Return the version that a request names. Raises RequestError for a label: this server has none."""
    if spec.WhichOneof("version_choice") == "version_label":
        raise invalid(f"Unrecognized servable version label: {spec.version_label}")
    return spec.version.value if spec.HasField("version") else None


def bound_server(dispatcher: Dispatcher) -> tuple[grpc.aio.Server, int]:
    """Return a server that is bound but not started, and its port. Raises OSError if the port is taken."""
    api, options = GrpcApi(dispatcher), dispatcher.options
    size = options.body_bytes + SLACK
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # a second server on the same port must fail, not share it
            ("grpc.max_concurrent_streams", options.connections),
        ]
    )
    services = {
        "PredictionService": {
            "Predict": method(dispatcher, PredictRequest, api.predict),
            "GetModelMetadata": method(dispatcher, GetModelMetadataRequest, api.metadata),
        },
        "ModelService": {"GetModelStatus": method(dispatcher, GetModelStatusRequest, api.status)},
    }
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(f"tensorflow.serving.{name}", methods)
            for name, methods in services.items()
        ]
    )
    try:
        port = server.add_insecure_port(f"{in_url(options.host)}:{options.grpc_port}")
    except RuntimeError:
        port = 0
    if not port:
        raise OSError(f"The gRPC port {options.grpc_port} of {options.host} cannot be opened: is it in use?")
    return server, port


def method(
    dispatcher: Dispatcher, request_type: type[Message], answer: Callable[[Message, float], Awaitable[Message]]
) -> grpc.RpcMethodHandler:
    """Return a handler that parses the request itself, so that a body that is no message is the client's error."""

    async def call(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        try:
            with dispatcher.request() as until:
                remaining = context.time_remaining()
                if remaining is not None:
                    until = min(until, time.monotonic() + remaining)
                return (await answer(parse(request_type, body), until)).SerializeToString()
        except RequestError as error:
            code, message = STATUS[error.code], error.message
        except Exception as error:
            log.error("a request failed: %a", error)
            code, message = grpc.StatusCode.INTERNAL, "The server failed at this request."
        await context.abort(code, message)

    return grpc.unary_unary_rpc_method_handler(call)


def parse(request_type: type[Message], body: bytes) -> Message:
    """Return the message in a body. Raises RequestError if there is none of this type."""
    try:
        return request_type.FromString(body)
    except DecodeError:
        raise invalid(f"The message is no {request_type.DESCRIPTOR.name}.") from None
