"""A server from start to end: both APIs in one event loop, until a signal or beside other Python code."""

import asyncio
import contextlib
import dataclasses
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import uvicorn

from keras_transformer.ground.errors import first_line_of

from ..versions import ExportError
from .dispatcher import Dispatcher
from .grpc_api import bound_server
from .http_connection import HttpConnection
from .models import Models
from .options import ServerOptions, in_url
from .rest_api import rest_application
from .secrets import Secrets
from .sockets import BACKLOG, Listener, connections_possible, open_path, open_port, removed_at_the_end

logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it would log each request that is not HTTP

LAST_ANSWERS = 2  # seconds in which connections close after the last request has been answered
LONGEST_END = 3.0  # seconds after that request in which the server ends, closed or not


class Address(NamedTuple):
    """Where a server answers: name of the first model, host, ports of REST and gRPC, and whether the ports have TLS."""

    name: str
    host: str
    port: int
    grpc_port: int
    is_tls: bool = False

    @property
    def url(self) -> str:
        return f"{self.page_url}v1/models/{urllib.parse.quote(self.name)}"

    @property
    def page_url(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{in_url(self.host)}:{self.port}/"

    @property
    def grpc_url(self) -> str:
        scheme = "grpcs" if self.is_tls else "grpc"
        return f"{scheme}://{in_url(self.host)}:{self.grpc_port}/{urllib.parse.quote(self.name)}"


class Uvicorn(uvicorn.Server):
    """A uvicorn server that leaves signals to `run_server`, and has TLS at ports but not at Unix sockets."""

    def __init__(self, config: uvicorn.Config, protocol: type[HttpConnection], secrets: Secrets, seconds: float):
        super().__init__(config)
        self._protocol = protocol
        self._tls: dict[str, Any] = {}
        if secrets.certificate is not None:
            self._tls = {
                "ssl": secrets.certificate.context,
                "ssl_handshake_timeout": seconds,
                "ssl_shutdown_timeout": seconds,
            }

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections: uvicorn's own `startup`, which has no time limit for handshakes."""
        loop, self.servers = asyncio.get_running_loop(), []

        def connection() -> HttpConnection:
            return self._protocol(config=self.config, server_state=self.server_state, app_state={})

        for listener in sockets or []:
            tls = {} if listener.family == socket.AF_UNIX else self._tls
            self.servers.append(await loop.create_server(connection, sock=listener, backlog=BACKLOG, **tls))
        self.started = True


async def run_server(
    models: Models, options: ServerOptions, on_start: Callable[[Address], None], stop: asyncio.Event
) -> bool:
    """Serve until `stop` is set, then answer the requests in flight.

    Calls `on_start` with the address as soon as requests are answered. Returns whether every request was answered
    within `drain_seconds`. Raises ExportError if a certificate or keys cannot be used, or a port cannot be opened.
    """
    secrets = Secrets(options)
    for package in ("regex", "sentencex"):  # in the first request that needs one, all others would wait for 0.3 s
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    options = dataclasses.replace(options, connections=connections_possible(options.connections))
    dispatcher, listeners = Dispatcher(models, options), []
    meaning = "Certificates and API keys whose files changed and cannot be used, so that the old ones stay in use."
    dispatcher.metrics.watch("failing_secrets", meaning, lambda: len(secrets.failing))
    try:
        listeners.append(open_port(options.host, options.port))
        if options.unix_socket is not None:
            listeners.append(open_path(options.unix_socket))
        listeners = [Listener.of(listener, options.connections) for listener in listeners]
        rpc, grpc_port = bound_server(dispatcher, secrets)
    except (OSError, ExportError) as error:
        for listener in listeners:
            listener.close()
        dispatcher.close()
        raise ExportError(first_line_of(error)) from None
    protocol = HttpConnection.limited(options)
    config = uvicorn.Config(
        rest_application(dispatcher, secrets.keys),
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # see BEHIND_PROXY
        timeout_keep_alive=options.idle_seconds,  # type: ignore[arg-type]  # uvicorn takes parts of a second too
        timeout_graceful_shutdown=LAST_ANSWERS,
    )
    http = Uvicorn(config, protocol, secrets, options.header_seconds)
    watches = models.watch(options.poll_seconds, options.models_poll_seconds), secrets.watch(options.poll_seconds)
    with removed_at_the_end(options.unix_socket, options.grpc_unix_socket):
        serving = asyncio.create_task(http.serve(listeners))
        watching = [asyncio.create_task(watch) for watch in watches]
        while not http.started:
            await asyncio.sleep(0.01)
        await rpc.start()
        port = listeners[0].getsockname()[1]
        on_start(Address(models.names[0], options.host, port, grpc_port, secrets.certificate is not None))
        await stop.wait()
        is_answered = await dispatcher.drain()
        http.should_exit = True
        ending = [serving, asyncio.create_task(rpc.stop(LAST_ANSWERS if is_answered else 0)), *watching]
        for task in watching:
            task.cancel()
        await asyncio.wait(ending, timeout=LONGEST_END)  # whatever a client holds: nobody is waited for
        dispatcher.close()
    return is_answered


def run_until_signal(models: Models, options: ServerOptions, on_start: Callable[[Address], None]) -> bool:
    """Serve until SIGTERM or Ctrl-C; a second signal ends the process at once. Returns what `run_server` returns.

    The caller should then end the process: threads may still compute abandoned batches or load a version.
    """

    async def main() -> bool:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def end(number: int) -> None:
            if stop.is_set():
                os._exit(128 + number)
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end, number)
        return await run_server(models, options, on_start, stop)

    gc.freeze()  # else a collection of garbage looks at all that TensorFlow has loaded, and holds Python for 0.6 s
    return asyncio.Runner().run(main())  # asyncio.run would wait for these threads


@contextlib.contextmanager
def local_server(path: str | os.PathLike, options: ServerOptions) -> Iterator[Address]:
    """Within, a server of the folder `path`, or of the file of models `path`, runs in a thread of this process.

    Raises UserError if it cannot be started.
    """
    started = threading.Event()
    errors, addresses, loops, stops = [], [], [], []  # one item at most, from the thread of the server

    async def main(models: Models) -> None:
        stops.append(asyncio.Event())
        loops.append(asyncio.get_running_loop())

        def on_start(address: Address) -> None:
            addresses.append(address)
            started.set()

        await run_server(models, options, on_start, stops[0])

    def run() -> None:
        try:
            asyncio.run(main(Models.at(path)))
        except BaseException as error:
            errors.append(error)
            started.set()

    thread = threading.Thread(target=run, name="local server", daemon=True)
    thread.start()
    started.wait()
    if errors:
        raise errors[0]
    try:
        yield addresses[0]
    finally:
        loops[0].call_soon_threadsafe(stops[0].set)
        thread.join()
        if errors and sys.exc_info()[0] is None:
            raise errors[0]
