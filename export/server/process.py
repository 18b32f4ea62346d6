"""A server from start to end: both APIs in one event loop, until a signal or beside other Python code."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import uvicorn

from ..versions import ExportError
from .dispatcher import Dispatcher
from .grpc_api import bound_server, set_serving
from .http_connection import HttpConnection
from .models import Models
from .options import ServerOptions, in_url
from .rest_api import rest_application

logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it would log each request that is not HTTP

LAST_ANSWERS = 2  # seconds in which connections close after the last request has been answered


class Address(NamedTuple):
    """Where a server answers: the name of the first model, the host, and the ports of REST and gRPC."""

    name: str
    host: str
    port: int
    grpc_port: int

    @property
    def url(self) -> str:
        return f"{self.page_url}v1/models/{urllib.parse.quote(self.name)}"

    @property
    def page_url(self) -> str:
        return f"http://{in_url(self.host)}:{self.port}/"

    @property
    def grpc_url(self) -> str:
        return f"grpc://{in_url(self.host)}:{self.grpc_port}/{urllib.parse.quote(self.name)}"


class Uvicorn(uvicorn.Server):
    """A uvicorn server that leaves signals to `run_server`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_server(
    models: Models, options: ServerOptions, on_start: Callable[[Address], None], stop: asyncio.Event
) -> bool:
    """Serve until `stop` is set, then answer the requests in flight.

    Calls `on_start` with the address as soon as requests are answered. Returns whether every request was answered
    within `drain_seconds`. Raises ExportError if a port cannot be opened.
    """
    dispatcher = Dispatcher(models, options)
    listener = open_port(options.host, options.port)
    try:
        rpc, health, grpc_port = bound_server(dispatcher)
    except OSError as error:
        listener.close()
        raise ExportError(str(error)) from None
    http = Uvicorn(
        uvicorn.Config(
            rest_application(dispatcher),
            http=HttpConnection.limited(options),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=options.idle_seconds,
            timeout_graceful_shutdown=LAST_ANSWERS,
        )
    )
    await rpc.start()
    watch = models.watch(options.poll_seconds, options.models_poll_seconds)
    tasks = [asyncio.create_task(http.serve([listener])), asyncio.create_task(watch)]
    while not http.started:
        await asyncio.sleep(0.01)
    await set_serving(health)
    on_start(Address(models.names[0], options.host, listener.getsockname()[1], grpc_port))
    await stop.wait()
    await health.enter_graceful_shutdown()
    is_answered = await dispatcher.drain()
    http.should_exit = True
    await asyncio.gather(tasks[0], rpc.stop(LAST_ANSWERS if is_answered else 0))
    tasks[1].cancel()
    await asyncio.wait(tasks)
    dispatcher.close()
    return is_answered


def open_port(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ExportError if the port cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExportError(f"The port {port} of {host} cannot be opened: {reason}.") from None


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
