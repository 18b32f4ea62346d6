"""TensorFlow Serving's gRPC API: Predict, GetModelMetadata and GetModelStatus."""

import logging
import time
from collections.abc import Awaitable, Callable

import grpc
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, model_pb2, predict_pb2

from .dispatcher import Dispatcher
from .errors import Code, RequestError, invalid
from .protobuf_codec import array_of, shape_of, tensor_of
from .protocol import metadata_of, status_of
from .signature import Arrays, Signature, check_shape, too_many_rows

STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code.number) for code in Code}
SLACK = 1 << 16  # bytes of a message beside its tensors

log = logging.getLogger("export.server")


class GrpcApi:
    """Answers the calls of a Dispatcher."""

    def __init__(self, service: Dispatcher):
        self.service = service

    async def predict(self, request: predict_pb2.PredictRequest, until: float) -> predict_pb2.PredictResponse:
        spec = request.model_spec

        most = self.service.options.request_rows

        def read(signature: Signature) -> Arrays:
            """A few bytes may claim a shape of millions: what is refused is not filled first."""
            signature.check_names(request.inputs)
            for name, tensor in request.inputs.items():
                shape = shape_of(name, tensor)
                check_shape(name, signature.inputs[name], shape)
                if shape and shape[0] > most:
                    raise too_many_rows(shape[0], most)
            return {name: array_of(name, tensor) for name, tensor in request.inputs.items()}

        version, signature, outputs = await self.service.predict(
            named(spec), number_of(spec), spec.signature_name, read, list(request.output_filter), until
        )
        response = predict_pb2.PredictResponse()
        response.model_spec.name, response.model_spec.signature_name = self.service.folder.name, signature.name
        response.model_spec.version.value = version.number
        for name, array in outputs.items():
            response.outputs[name].CopyFrom(tensor_of(array))
        return response

    async def metadata(self, request: get_model_metadata_pb2.GetModelMetadataRequest, until: float) -> Message:
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid("metadata_field must be ['signature_def']: nothing else is known of a model.")
        spec = request.model_spec
        return metadata_of(self.service.folder.name, self.service.version(named(spec), number_of(spec)))

    async def status(self, request: get_model_status_pb2.GetModelStatusRequest, until: float) -> Message:
        return status_of(self.service.statuses(request.model_spec.name, number_of(request.model_spec)))


def named(spec: model_pb2.ModelSpec) -> str:
    """Return the model that a request names. Raises RequestError if it names none."""
    if not spec.name:
        raise invalid("Missing ModelSpec: it must have the name of the model.")
    return spec.name


def number_of(spec: model_pb2.ModelSpec) -> int | None:
    """Return the version that a request names. Raises RequestError for a label: this server has none."""
    if spec.WhichOneof("version_choice") == "version_label":
        raise invalid(f"Unrecognized servable version label: {spec.version_label}")
    return spec.version.value if spec.HasField("version") else None


def start_server(service: Dispatcher) -> tuple[grpc.aio.Server, int]:
    """Return a server that is bound but not started, and its port. Raises OSError if the port is taken."""
    api, options = GrpcApi(service), service.options
    size = options.body_bytes + SLACK
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # a second server on the same port must fail, not share it
            ("grpc.max_concurrent_streams", options.connections),
        ]
    )
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "tensorflow.serving.PredictionService",
                {
                    "Predict": method(service, predict_pb2.PredictRequest, api.predict),
                    "GetModelMetadata": method(service, get_model_metadata_pb2.GetModelMetadataRequest, api.metadata),
                },
            ),
            grpc.method_handlers_generic_handler(
                "tensorflow.serving.ModelService",
                {"GetModelStatus": method(service, get_model_status_pb2.GetModelStatusRequest, api.status)},
            ),
        )
    )
    host = f"[{options.host}]" if ":" in options.host else options.host
    try:
        port = server.add_insecure_port(f"{host}:{options.grpc_port}")
    except RuntimeError:
        port = 0
    if not port:
        raise OSError(f"The gRPC port {options.grpc_port} of {options.host} cannot be opened: is it in use?")
    return server, port


def method(service: Dispatcher, request_type: type[Message], answer: Callable[[Message, float], Awaitable[Message]]):
    """Return a handler that reads the request itself, so that bytes of no message are the client's error."""

    async def call(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        try:
            with service.request() as until:
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
    try:
        return request_type.FromString(body)
    except DecodeError:
        raise invalid(f"The message is no {request_type.DESCRIPTOR.name}.") from None
