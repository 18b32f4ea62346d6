"""Send one request to a server, once, by REST or by gRPC: the answer, or the reason why there is none."""

import ipaddress
import json
import re
import urllib.parse
from typing import Any, Protocol

from keras_transformer.ground.errors import UserError
from keras_transformer.text.signatures import Columns, as_texts

from .access import Access, BearerKey
from .failures import cause_of, passes, seconds_of, without_password

LONGEST_MESSAGE = 500  # characters of a server's error message
TRANSIENT_STATUS = {429, 502, 503}  # of HTTP: the server is too busy, or restarting
MESSAGE_BYTES = 64 << 20  # of an answer by gRPC, at most

PERMANENT = (  # parts of messages whose code is that of errors that pass
    "larger than max",
    "Domain name not found",
    "CERTIFICATE_VERIFY_FAILED",
    "WRONG_VERSION_NUMBER",
    "alert",
)


class ClientError(UserError):
    """A server that cannot be reached, or that refuses a request.

    code: the HTTP status (an int) or the name of the gRPC status; None if the server was not reached.
    is_transient: the same request may succeed later. wait: seconds after which the server wants it again, at the
    earliest.
    """

    def __init__(self, message: str, code: int | str | None = None, is_transient: bool = False, wait: float = 0.0):
        super().__init__(message)
        self.code, self.is_transient, self.wait = code, is_transient, wait


class Transport(Protocol):
    """How requests travel. Both methods raise ClientError."""

    def predict(self, signature_name: str, inputs: Columns, seconds: float) -> Columns:
        """Return the outputs of a signature, by name. Strings are str."""

    def metadata(self, seconds: float) -> dict[str, Any]:
        """Return the signatures of the model, by name: SignatureDef messages."""


def transport_to(url: str, requests_at_once: int, access: Access) -> Transport:
    """Return the transport to http://HOST:PORT/v1/models/NAME or grpc://HOST:PORT/NAME, with TLS for https and grpcs.

    Raises ClientError if the URL is not that of a model.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError if the port is no number
    except ValueError as error:
        raise ClientError(f"{without_password(url)} is not a URL: {error}.") from None
    if access.has_tls and parts.scheme in ("http", "grpc"):
        raise ClientError(
            f"{without_password(url)} has no TLS, for which a certificate is given: write {parts.scheme}s://."
        )
    uses_proxy = not is_loopback(parts.hostname)
    if parts.scheme in ("http", "https") and parts.hostname and re.search("/v1/models/[^/:]", parts.path):
        return RestTransport(url.removesuffix(":predict").rstrip("/"), requests_at_once, access, uses_proxy)
    if parts.scheme in ("grpc", "grpcs") and parts.netloc and "@" not in parts.netloc and parts.path.strip("/"):
        credentials = access.grpc_credentials() if parts.scheme == "grpcs" else None
        name = urllib.parse.unquote(parts.path.strip("/"))
        return GrpcTransport(parts.netloc, name, credentials, access.api_key(), uses_proxy)
    raise ClientError(
        f"{without_password(url)} is not the URL of a model: give http://HOST:8501/v1/models/NAME or grpc://HOST:8500/NAME."
    )


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine, to which no proxy leads."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def on_one_line(message: str) -> str:
    """Return a server's message as one printable line."""
    text = " ".join(message.split())
    return "".join(character if character.isprintable() else "?" for character in text)[:LONGEST_MESSAGE]


class RestTransport:
    """TensorFlow Serving's REST API, in column format."""

    def __init__(self, url: str, requests_at_once: int, access: Access, uses_proxy: bool = True):
        import requests

        self.url, self.requests, self.session = url, requests, requests.Session()
        self.session.trust_env = uses_proxy
        adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=requests_at_once)
        self.session.mount("http://", adapter)
        self.session.mount("https://", adapter)
        if key := access.api_key():
            self.session.auth = BearerKey(key)
        self.tls: dict[str, Any] = {}  # of each request: what the environment says would replace that of the session
        if access.ca is not None:
            self.tls["verify"] = str(access.ca)
        if access.certificate is not None:
            self.tls["cert"] = (str(access.certificate), str(access.key))

    def predict(self, signature_name: str, inputs: Columns, seconds: float) -> Columns:
        body = json.dumps({"signature_name": signature_name, "inputs": inputs}).encode()
        answer = self._send("POST", f"{self.url}:predict", seconds, body)
        outputs = answer.get("outputs")
        if not isinstance(outputs, dict):
            raise ClientError(
                f"{without_password(self.url)} answers without named outputs: it is not a model that translates."
            )
        return outputs

    def metadata(self, seconds: float) -> dict[str, Any]:
        from google.protobuf import json_format
        from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

        answer = self._send("GET", f"{self.url}/metadata", seconds)
        try:
            content = answer["metadata"]["signature_def"]
            return dict(json_format.ParseDict(content, SignatureDefMap(), ignore_unknown_fields=True).signature_def)
        except (LookupError, TypeError, json_format.ParseError) as error:
            raise ClientError(
                f"{without_password(self.url)}/metadata cannot be read: {on_one_line(str(error))}"
            ) from None

    def _send(self, method: str, url: str, seconds: float, body: bytes | None = None) -> dict[str, Any]:
        errors = self.requests.exceptions
        headers, shown = {"Content-Type": "application/json"}, without_password(url)
        try:
            response = self.session.request(method, url, data=body, timeout=seconds, headers=headers, **self.tls)
        except errors.Timeout:
            raise ClientError(f"{shown} did not answer within {seconds:.3g} seconds.", "DEADLINE_EXCEEDED") from None
        except errors.ConnectionError as error:
            cause = without_password(on_one_line(cause_of(error)))
            raise ClientError(f"{shown} cannot be reached: {cause}", None, passes(error)) from None
        except errors.RequestException as error:
            reason = without_password(on_one_line(str(error)))
            raise ClientError(f"The request to {shown} failed: {reason}") from None
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.status_code == 200 and isinstance(content, dict):
            return content
        message = content.get("error") if isinstance(content, dict) else response.text
        raise ClientError(
            f"{shown} answers {response.status_code}: {on_one_line(str(message))}",
            response.status_code,
            response.status_code in TRANSIENT_STATUS,
            seconds_of(response.headers.get("Retry-After", "")),
        )


class GrpcTransport:
    """TensorFlow Serving's gRPC API."""

    def __init__(self, target: str, name: str, credentials: Any = None, api_key: str = "", uses_proxy: bool = True):
        import grpc
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

        self.target, self.name, self.grpc, self.tf, self.predict_pb2 = target, name, grpc, tf, predict_pb2
        limits = [("grpc.max_receive_message_length", MESSAGE_BYTES), ("grpc.max_send_message_length", -1)]
        proxy = [("grpc.enable_http_proxy", int(uses_proxy))]
        if credentials is None:
            channel = grpc.insecure_channel(target, limits + proxy)
        else:
            channel = grpc.secure_channel(target, credentials, limits + proxy)
        self.scheme = "grpc" if credentials is None else "grpcs"
        self.metadata_of_calls = [("authorization", f"Bearer {api_key}")] if api_key else []
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def predict(self, signature_name: str, inputs: Columns, seconds: float) -> Columns:
        request = self.predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = self.name, signature_name
        for name, values in inputs.items():
            try:
                dtype = None if values else self.metadata(seconds)[signature_name].inputs[name].dtype
                request.inputs[name].CopyFrom(self.tf.make_tensor_proto(encoded(values), dtype))
            except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
                raise ClientError(f"The input {name!r} cannot be sent: {on_one_line(str(error))}") from None
        response = self._call(self.stub.Predict, request, seconds)
        return {name: as_texts(self.tf.make_ndarray(tensor).tolist()) for name, tensor in response.outputs.items()}

    def metadata(self, seconds: float) -> dict[str, Any]:
        from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap

        request = GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = self.name
        response = self._call(self.stub.GetModelMetadata, request, seconds)
        definitions = SignatureDefMap()
        response.metadata["signature_def"].Unpack(definitions)
        return dict(definitions.signature_def)

    def _call(self, method, request, seconds: float):
        try:
            return method(request, timeout=seconds, metadata=self.metadata_of_calls)
        except self.grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
        details = without_password(details)
        is_permanent = any(part in details for part in PERMANENT)
        transient = (self.grpc.StatusCode.UNAVAILABLE, self.grpc.StatusCode.RESOURCE_EXHAUSTED)
        message = f"{self.scheme}://{self.target}/{self.name} answers {code.name}: {on_one_line(details)}"
        raise ClientError(message, code.name, code in transient and not is_permanent)


def encoded(values: list) -> list:
    """Return the values with strings as bytes. Raises UnicodeEncodeError for half of a surrogate pair."""
    return [value.encode("utf-8") if isinstance(value, str) else value for value in values]
