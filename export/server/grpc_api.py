"""TensorFlow Serving's gRPC API."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import NoReturn

import grpc
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from ..versions import ExportError
from .api_keys import KeyInterceptor
from .bytes_in_flight import PATIENCE, Share
from .dispatcher import Dispatcher
from .errors import Code, RequestError, answered_as, invalid, shown, unimplemented
from .health import Health
from .models_config import models_of
from .options import ServerOptions, in_url
from .own_host import is_peer_here
from .protobuf_codec import ProtobufCodec, check_fields
from .protocol import metadata_of, status_of
from .secrets import Secrets
from .sockets import only_for_the_group, remove_stale
from .tls import Certificate

STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code.number) for code in Code}
SLACK = 1 << 16  # bytes of a message beside its tensors
ARRIVING = 16  # messages that are read at the same time; one that takes longer than PATIENCE makes place for another

STREAMS = 0.1  # of all calls, as many as one connection may have at the same time

INSTEAD = "Ask through 127.0.0.1 or the Unix socket of gRPC, or change the file of models."


class GrpcApi:
    """Answers the calls of clients through a Dispatcher."""

    def __init__(self, dispatcher: Dispatcher):
        self.dispatcher = dispatcher

    async def predict(self, request: PredictRequest, share: Share, until: float) -> bytes:
        spec = request.model_spec
        with self.dispatcher.version_in_use(named(spec), choice_of(spec)) as version:

            def codec_of(request: PredictRequest, most_rows: int) -> ProtobufCodec:
                return ProtobufCodec(request, version.number, most_rows)

            question = await self.dispatcher.question(version, codec_of, request, share.size, until)
            return await self.dispatcher.predict(version, question, share, until)

    async def metadata(self, request: GetModelMetadataRequest, share: Share, until: float) -> bytes:
        if set(request.metadata_field) != {"signature_def"}:
            raise invalid(f"metadata_field is {shown(str([*request.metadata_field]))}; it must be ['signature_def'].")
        spec = request.model_spec
        return metadata_of(spec.name, self.dispatcher.version(named(spec), choice_of(spec))).SerializeToString()

    async def status(self, request: GetModelStatusRequest, share: Share, until: float) -> bytes:
        if not request.HasField("model_spec"):
            raise invalid("Missing ModelSpec")
        spec = request.model_spec
        number = spec.version.value if spec.HasField("version") else None  # a label is ignored, as there
        return status_of(self.dispatcher.statuses(spec.name, number)).SerializeToString()

    async def refuse(self, request: Message, share: Share, until: float) -> NoReturn:
        """Refuse a classification or a regression: no export of a translator has a signature for it."""
        raise unimplemented()

    async def reload(self, request: ReloadConfigRequest, share: Share, until: float) -> bytes:
        """Serve other models, if this server was started with a file of them."""
        models = self.dispatcher.models
        if models.file is None:
            raise RequestError(Code.FAILED_PRECONDITION, "This server serves one folder; start it with --models FILE.")
        if request.config.WhichOneof("config") != "model_config_list":
            kinds = "Only ModelConfigList is currently supported"
            raise invalid(f"ServerModelConfig type not supported by HandleReloadConfigRequest. {kinds}")
        try:
            new = await asyncio.to_thread(models_of, request.config)
            async with asyncio.timeout(until - time.monotonic()):
                await models.reload(new)
        except ExportError as error:
            raise invalid(str(error)) from None
        except TimeoutError:
            raise RequestError(Code.DEADLINE_EXCEEDED, "The models are still being loaded.") from None
        return ReloadConfigResponse(status={"error_code": 0}).SerializeToString()


def named(spec: ModelSpec) -> str:
    """Return the model that a request names. Raises RequestError if it names none."""
    if not spec.name:
        raise invalid("Missing ModelSpec: it must have the name of the model.")
    return spec.name


def choice_of(spec: ModelSpec) -> int | str | None:
    """Return the version or the label that a request names; None if it names neither."""
    if spec.WhichOneof("version_choice") == "version_label":
        return spec.version_label
    return spec.version.value if spec.HasField("version") else None


def bound_server(dispatcher: Dispatcher, secrets: Secrets) -> tuple[grpc.aio.Server, int]:
    """Return a server that is bound but not started, and its port.

    Raises OSError if the port is taken, and ExportError if the Unix socket is.
    """
    api, options = GrpcApi(dispatcher), dispatcher.options
    size = options.body_bytes + SLACK
    refused = functools.partial(dispatcher.metrics.refused, "GRPC")
    interceptors = [] if secrets.keys is None else [KeyInterceptor(secrets.keys, refused)]
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # a second server on the same port must fail, not share it
            ("grpc.max_concurrent_streams", max(1, int(STREAMS * options.connections))),
            ("grpc.max_allowed_incoming_connections", options.connections),  # of each place where it listens
            ("grpc.http2.bdp_probe", 0),  # it would let every stream send megabytes before its message is read
            # Only with its connection ends an answer that nobody reads: if the client does not even answer a ping,
            # soon; otherwise after a second deadline, which the requests of a connection have at its end.
            ("grpc.server_handshake_timeout_ms", int(1000 * options.header_seconds)),
            ("grpc.keepalive_time_ms", int(1000 * options.header_seconds)),
            ("grpc.http2.ping_timeout_ms", int(1000 * options.header_seconds)),
            ("grpc.max_connection_age_ms", int(1000 * options.deadline)),
            ("grpc.max_connection_age_grace_ms", int(1000 * (options.deadline + PATIENCE))),
        ],
        interceptors=interceptors,
    )
    calls = Calls(options.connections)
    services = {
        "PredictionService": {
            "Predict": method(dispatcher, calls, PredictRequest, api.predict),
            "GetModelMetadata": method(dispatcher, calls, GetModelMetadataRequest, api.metadata),
            "Classify": method(dispatcher, calls, ClassificationRequest, api.refuse),
            "Regress": method(dispatcher, calls, RegressionRequest, api.refuse),
            "MultiInference": method(dispatcher, calls, MultiInferenceRequest, api.refuse),
        },
        "ModelService": {
            "GetModelStatus": method(dispatcher, calls, GetModelStatusRequest, api.status),
            "HandleReloadConfigRequest": method(dispatcher, calls, ReloadConfigRequest, api.reload, only_here=True),
        },
    }
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(f"tensorflow.serving.{name}", methods)
            for name, methods in services.items()
        ]
    )
    health = Health(dispatcher.is_well, options.header_seconds, options.connections)
    server.add_generic_rpc_handlers([health.handler()])
    return server, bind(server, options, secrets.certificate)


def bind(server: grpc.aio.Server, options: ServerOptions, certificate: Certificate | None) -> int:
    """Let a server listen, with TLS if there is a certificate, and at the Unix socket if one is asked for.

    Returns the port. Raises OSError if it is taken, and ExportError if the Unix socket is.
    """
    place = f"{in_url(options.host)}:{options.grpc_port}"
    try:
        if certificate is None:
            port = server.add_insecure_port(place)
        else:
            port = server.add_secure_port(place, certificate.grpc_credentials())
    except RuntimeError:
        port = 0
    if not port:
        raise OSError(f"The gRPC port {options.grpc_port} of {options.host} cannot be opened: is it in use?")
    path = options.grpc_unix_socket
    if path is not None:
        remove_stale(path)
        try:
            with only_for_the_group():
                server.add_insecure_port(f"unix:{path}")
        except RuntimeError:
            raise ExportError(f"The Unix socket {path} of gRPC cannot be opened: is its folder there?") from None
    return port


class Calls:
    """The calls that a server answers at the same time, and those whose message is being read; without those of health.

    With API keys, nobody without one has a call: it is refused before it is counted.
    """

    def __init__(self, most: int):
        self.most, self.count, self.arriving = most, 0, asyncio.Semaphore(ARRIVING)

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Within, one more call is answered. Raises RequestError if there are `most`."""
        if self.count >= self.most:
            sentence = f"This server answers {self.most} calls at the same time; try again later."
            raise RequestError(Code.RESOURCE_EXHAUSTED, sentence)
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


def method(
    dispatcher: Dispatcher,
    calls: Calls,
    request_type: type[Message],
    answer: Callable[[Message, Share, float], Awaitable[bytes]],
    only_here: bool = False,
) -> grpc.RpcMethodHandler:
    """Return a handler that reads and parses the request itself. only_here: it refuses those from other machines.

    So the server decides when a message is read, and a body that is no message is the client's error. To the client,
    the method has one request and one answer.
    """

    name = request_type.DESCRIPTOR.name.removesuffix("Request")
    name = {"Classification": "Classify", "Regression": "Regress"}.get(name, name)

    async def call(messages: object, context: grpc.aio.ServicerContext) -> None:
        try:
            with (
                dispatcher.request("GRPC", name) as until,
                calls.place(),
                dispatcher.bytes_in_flight.share() as share,
            ):
                if only_here and not is_peer_here(context.peer()):
                    raise RequestError(Code.PERMISSION_DENIED, f"{name} is for this machine alone. {INSTEAD}")
                remaining = context.time_remaining()
                if remaining is not None:
                    until = min(until, time.monotonic() + remaining)
                body = await received(context, calls.arriving, dispatcher.options.body_bytes + SLACK, share, until)
                parsed = functools.partial(parse, request_type, body)
                del body
                request = await dispatcher.off_the_loop(parsed, share.size, until)
                del parsed
                content = await answer(request, share, until)
                share.resize(len(content))
                await context.write(content)
                return
        except Exception as error:
            refusal = answered_as(error)
            code, message = STATUS[refusal.code], refusal.message
            del refusal  # with the frames that raised it, which may hold an answer of many megabytes
        await context.abort(code, message)

    return grpc.stream_stream_rpc_method_handler(call)


async def received(
    context: grpc.aio.ServicerContext, arriving: asyncio.Semaphore, most: int, share: Share, until: float
) -> bytes:
    """Return the message of a call. Raises RequestError if it does not come in time.

    The length of a message is not known before it has arrived: until then it counts as `most` bytes.
    """
    try:
        async with asyncio.timeout(until - time.monotonic()):
            await arriving.acquire()
        with contextlib.ExitStack() as stack:
            stack.callback(arriving.release)
            timer = asyncio.get_running_loop().call_later(PATIENCE, stack.close)
            stack.callback(timer.cancel)
            share.resize(most)
            async with share.arriving(until):
                body = await context.read()
    except TimeoutError:
        raise RequestError(Code.DEADLINE_EXCEEDED, "The message did not arrive within the deadline.") from None
    if body is grpc.aio.EOF:
        raise invalid("The call has no message.")
    share.resize(len(body))
    return body


def parse(request_type: type[Message], body: bytes) -> Message:
    """Return the message in a body. Raises RequestError if there is none of this type, or if it has too many fields."""
    if request_type is PredictRequest:
        check_fields(body)
    try:
        return request_type.FromString(body)
    except DecodeError:
        raise invalid(f"The message is no {request_type.DESCRIPTOR.name}.") from None
