"""`keras-transformer serve FOLDER`: a server with TensorFlow Serving's REST and gRPC APIs, without Docker.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import functools
import logging
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.runs.versions import find_version

from .server.options import ServerOptions
from .versions import ExportError

if TYPE_CHECKING:  # it takes a second to import
    from .server.process import Address

DEFAULTS = ServerOptions()
log = logging.getLogger("export")
app = command_app()


@app.command(no_args_is_help=True)
def serve(
    folder: Annotated[
        pathlib.Path | None,
        typer.Argument(metavar="FOLDER", help="The folder of an export; the model has its name."),
    ] = None,
    models: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="In place of FOLDER: TensorFlow Serving's file of models and versions."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the REST API; 0 is any free port.")] = DEFAULTS.port,
    grpc_port: Annotated[int, typer.Option(help="Port of the gRPC API; 0 is any free port.")] = DEFAULTS.grpc_port,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all networks.")] = DEFAULTS.host,
    workers: Annotated[int, typer.Option(help="Batches computed at once, one thread each.")] = DEFAULTS.workers,
    batch_rows: Annotated[int, typer.Option(help="Lines computed together, at most.")] = DEFAULTS.batch_rows,
    request_rows: Annotated[int, typer.Option(help="Lines per request, at most.")] = DEFAULTS.request_rows,
    queue_rows: Annotated[
        int, typer.Option(help="While so many lines wait, the answer is 503 or RESOURCE_EXHAUSTED.")
    ] = DEFAULTS.queue_rows,
    body_bytes: Annotated[int, typer.Option(help="Bytes per request, at most.")] = DEFAULTS.body_bytes,
    deadline: Annotated[float, typer.Option(help="Seconds until an answer, at most.")] = DEFAULTS.deadline,
    drain_seconds: Annotated[
        float, typer.Option(help="Seconds after SIGTERM in which requests in flight are answered.")
    ] = DEFAULTS.drain_seconds,
    poll_seconds: Annotated[float, typer.Option(help="Seconds between looks for a version.")] = DEFAULTS.poll_seconds,
    models_poll_seconds: Annotated[
        float, typer.Option(help="Seconds between looks whether --models has changed.")
    ] = DEFAULTS.models_poll_seconds,
    log_requests: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Append a line of JSON per request, without its text.")
    ] = None,
    log_text: Annotated[bool, typer.Option("--log-text", help="With the text, to --log-requests.")] = False,
    tls_certificate: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Certificate in PEM: HTTPS, and gRPC over TLS.")
    ] = None,
    tls_key: Annotated[pathlib.Path | None, typer.Option(metavar="FILE", help="Its key in PEM.")] = None,
    tls_client_ca: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Clients need a certificate of this authority.")
    ] = None,
    api_key_file: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Clients need one of these keys, one per line.")
    ] = None,
    metrics_without_key: Annotated[
        bool, typer.Option("--metrics-without-key", help="Prometheus needs no key.")
    ] = False,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Pages of this site, or an extension, may ask: https://example.org."),
    ] = None,
    unix_socket: Annotated[
        pathlib.Path | None, typer.Option(metavar="PATH", help="Answer HTTP at this Unix socket too.")
    ] = None,
    grpc_unix_socket: Annotated[
        pathlib.Path | None, typer.Option(metavar="PATH", help="Answer gRPC at this Unix socket too.")
    ] = None,
):
    """Serve exports over HTTP and gRPC, with a page to try them.

    Serves the highest version in FOLDER until SIGTERM or Ctrl-C, with the APIs of `tensorflow_model_server`. A new
    version in FOLDER replaces it between two requests; if it cannot be loaded, this is logged. Requests that wait are
    computed together. docs/serving.md and docs/operating.md explain every option.
    """
    with exit_codes():
        options = ServerOptions(
            host=host,
            port=port,
            grpc_port=grpc_port,
            workers=workers,
            batch_rows=batch_rows,
            request_rows=request_rows,
            queue_rows=queue_rows,
            body_bytes=body_bytes,
            deadline=deadline,
            drain_seconds=drain_seconds,
            poll_seconds=poll_seconds,
            models_poll_seconds=models_poll_seconds,
            log_requests=log_requests,
            log_text=log_text,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            tls_client_ca=tls_client_ca,
            api_key_file=api_key_file,
            metrics_without_key=metrics_without_key,
            allow_origins=tuple(allow_origin or ()),
            unix_socket=unix_socket,
            grpc_unix_socket=grpc_unix_socket,
        )
        path = folder or models
        if path is None or (folder and models):
            raise ExportError("Name either the FOLDER of an export, or a file of models with --models.")
        if folder is not None:
            find_version(folder)
        from .server.request_log import opened
        from .server.secrets import Secrets
        from .server.sockets import check_paths, check_ports

        Secrets(options)  # mistakes show before the model is loaded, which may take minutes
        check_ports(options.host, options.port, options.grpc_port)
        check_paths(options.unix_socket, options.grpc_unix_socket)
        if options.log_requests:
            opened(options.log_requests).close()
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            from .server.models import Models
            from .server.process import run_until_signal

            served = Models.in_file(path) if models else Models.in_folder(path)
        needs_key = options.api_key_file is not None
        on_start = functools.partial(announce, names=served.names, needs_key=needs_key)
        is_answered = run_until_signal(served, options, on_start)
    if not is_answered:
        typer.echo(f"Error: Some requests were not answered within --drain-seconds {drain_seconds:g}.", err=True)
    end_at_once(0 if is_answered else 1)


def announce(address: "Address", names: Sequence[str] = (), needs_key: bool = False) -> None:
    """Print the URLs of a server that has started; warn if others than this machine can ask it, or read along.

    names: its models; none is that of the address alone.
    """
    from .server.own_host import is_this_machine

    models = [address._replace(name=name) for name in names or [address.name]]
    log.info("serving %s; Ctrl-C ends it", ", ".join(model.name for model in models))
    if not is_this_machine(address.host):
        dangers = [
            (not needs_key, "whoever reaches it can ask, without an API key (--api-key-file)"),
            (not address.is_tls, "what is sent can be read on the way (--tls-certificate)"),
        ]
        if reasons := [sentence for is_so, sentence in dangers if is_so]:
            log.warning("%s is more than this machine: %s.", address.host, ", and ".join(reasons))
    print(f"page  {address.page_url}")
    for model in models:
        print(f"REST  {model.url}:predict")
        print(f"gRPC  {model.grpc_url}", flush=True)


def end_at_once(code: int) -> NoReturn:
    """End the process at once: Python's own end would wait for abandoned batches that are still computed."""
    logging.shutdown()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.flush()
    os._exit(code)


main = program(app, log=log, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
