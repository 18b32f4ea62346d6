"""The options of a local server: where it listens, whom it answers, and its limits."""

import dataclasses
import math
import pathlib
import re
import urllib.parse
from collections.abc import Callable
from typing import Annotated, get_origin

import typer

from keras_transformer.commands.options import option_of, takes
from keras_transformer.ground.machine import processor_cores

from ..versions import ExportError

BODIES_IN_FLIGHT, BODIES_PER_ANSWER = 32, 8
MOST = {"workers": 1024, "body_bytes": 1 << 30, "connections": 1 << 20}  # gRPC has 31 bits for a number
REFUSED = 32  # HTTP connections beside those that are served, which get 503, at most
HOST = re.compile(r"[a-z0-9._:-]+")  # as browsers write one: other letters in Punycode
EXTENSION = re.compile(r"(chrome|moz|safari-web)-extension://[A-Za-z0-9-]+")  # the origin of a browser's extension
LONGEST_SECONDS = 86_400.0


def in_url(host: str) -> str:
    """Return a host as it stands in a URL: an IPv6 address, which has colons, in brackets."""
    return f"[{host}]" if ":" in host else host


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """What a local server accepts, and how long it works on it. All limits are maxima.

    What has a help is an option of `keras-transformer serve`, and the help says what it is. Besides:

    batch_rows: rows are lines of text. A request with more rows is computed in parts.
    body_bytes: all requests and answers in flight have at most BODIES_IN_FLIGHT times as many, and an answer
        BODIES_PER_ANSWER times as many.
    header_seconds: seconds that a client may take to send the headers of an HTTP request, to send the rest of a refused
        body, and to read something of its answer; in gRPC, to answer a ping, which comes as often.
    idle_seconds: seconds that an HTTP connection stays open between two requests. Proxies keep theirs for 60.
    connections: HTTP connections at the same time, of which an idle one makes room for a new one; as many of gRPC, and
        as many calls. Fewer if there are not enough file descriptors.
    poll_seconds: between two looks at the files of TLS and keys, too.
    tls_certificate, tls_key, tls_client_ca: files of `tls.Certificate`; without a certificate the ports have no TLS.
    api_key_file: the file of `api_keys.ApiKeys`; without it nobody needs a key.
    unix_socket, grpc_unix_socket: without TLS.
    """

    port: Annotated[int, typer.Option(help="Port of the REST API; 0 is any free port.")] = 8501
    grpc_port: Annotated[int, typer.Option(help="Port of the gRPC API; 0 is any free port.")] = 8500
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all networks.")] = "127.0.0.1"
    workers: Annotated[int, typer.Option(help="Batches computed at once, one thread each.")] = dataclasses.field(
        default_factory=processor_cores
    )
    batch_rows: Annotated[int, typer.Option(help="Lines computed together, at most.")] = 32
    request_rows: Annotated[int, typer.Option(help="Lines per request, at most.")] = 1024
    queue_rows: Annotated[
        int, typer.Option(help="While so many lines wait, the answer is 503 or RESOURCE_EXHAUSTED.")
    ] = 1024
    body_bytes: Annotated[int, typer.Option(help="Bytes per request, at most.")] = 4 << 20
    deadline: Annotated[float, typer.Option(help="Seconds until an answer, at most.")] = 60.0
    header_seconds: float = 10.0
    idle_seconds: float = 75.0
    connections: int = 1000
    drain_seconds: Annotated[
        float, typer.Option(help="Seconds after SIGTERM in which requests in flight are answered.")
    ] = 30.0
    poll_seconds: Annotated[float, typer.Option(help="Seconds between looks for a version.")] = 1.0
    models_poll_seconds: Annotated[float, typer.Option(help="Seconds between looks whether --models has changed.")] = (
        10.0
    )
    log_requests: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Append a line of JSON per request, without its text.")
    ] = None
    log_text: Annotated[bool, typer.Option("--log-text", help="With the text, to --log-requests.")] = False
    tls_certificate: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Certificate in PEM: HTTPS, and gRPC over TLS.")
    ] = None
    tls_key: Annotated[pathlib.Path | None, typer.Option(metavar="FILE", help="Its key in PEM.")] = None
    tls_client_ca: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Clients need a certificate of this authority.")
    ] = None
    api_key_file: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Clients need one of these keys, one per line.")
    ] = None
    metrics_without_key: Annotated[bool, typer.Option("--metrics-without-key", help="Prometheus needs no key.")] = False
    allow_origins: Annotated[
        list[str],
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Pages of this site, or an extension, may ask: https://example.org.",
        ),
    ] = dataclasses.field(default_factory=list)
    unix_socket: Annotated[
        pathlib.Path | None, typer.Option(metavar="PATH", help="Answer HTTP at this Unix socket too.")
    ] = None
    grpc_unix_socket: Annotated[
        pathlib.Path | None, typer.Option(metavar="PATH", help="Answer gRPC at this Unix socket too.")
    ] = None

    @property
    def bytes_in_flight(self) -> int:
        """Bytes of all requests and answers that the server holds, at most."""
        return BODIES_IN_FLIGHT * self.body_bytes

    @property
    def answer_bytes(self) -> int:
        """Bytes of an answer, at most."""
        return BODIES_PER_ANSWER * self.body_bytes

    def __post_init__(self):
        for name in ("workers", "batch_rows", "request_rows", "queue_rows", "body_bytes", "connections"):
            if getattr(self, name) < 1:
                raise ExportError(f"{name} is {getattr(self, name)}; it must be at least 1.")
            if getattr(self, name) > MOST.get(name, math.inf):
                raise ExportError(f"{name} is {getattr(self, name)}; it must be at most {MOST[name]}.")
        for name in ("poll_seconds", "models_poll_seconds"):
            if not getattr(self, name) > 0:
                raise ExportError(f"{name} is {getattr(self, name)}; it must be more than 0 seconds.")
        for name in ("deadline", "header_seconds", "idle_seconds", "drain_seconds"):
            if not 0 < getattr(self, name) <= LONGEST_SECONDS:
                raise ExportError(f"{name} is {getattr(self, name)}; it must be more than 0 seconds and at most a day.")
        for name in ("port", "grpc_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise ExportError(f"{name} is {getattr(self, name)}; it must be from 0 to 65535.")
        if self.port and self.port == self.grpc_port:
            raise ExportError(f"port and grpc_port are both {self.port}: REST and gRPC need a port each.")
        if self.log_text and self.log_requests is None:
            raise ExportError("log_text needs log_requests, the file that the text is written to.")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ExportError("TLS needs a certificate and its key: give both tls_certificate and tls_key.")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ExportError("tls_client_ca is for TLS: give tls_certificate and tls_key too.")
        for origin in self.allow_origins:
            if not is_origin(origin):
                raise ExportError(
                    f"allow_origin is {origin!r}; it must be as browsers write it: https://example.org, in small "
                    "letters, without a path, and with a port only if it is not the usual one, or an extension's "
                    "chrome-extension://ID."
                )


def takes_server_options(command: Callable) -> Callable:
    """Give a command the options of a server in place of its parameter `values`: by name, unchecked."""
    defaults = ServerOptions()
    options = [
        option_of(field.name, field.type, getattr(defaults, field.name))
        for field in dataclasses.fields(ServerOptions)
        if get_origin(field.type) is Annotated
    ]
    return takes("values", options, dict)(command)


def is_origin(text: str) -> bool:
    """Return whether a text is the origin of pages, as browsers write it: scheme, host, and port if it is unusual.

    Extensions have a scheme of their own.
    """
    if EXTENSION.fullmatch(text):
        return True
    try:
        parts = urllib.parse.urlsplit(text)
        usual = {"http": 80, "https": 443}[parts.scheme]
        written = in_url(parts.hostname or "") + (f":{parts.port}" if parts.port not in (None, usual) else "")
        return HOST.fullmatch(parts.hostname or "") is not None and text == f"{parts.scheme}://{written}"
    except (ValueError, KeyError):
        return False
