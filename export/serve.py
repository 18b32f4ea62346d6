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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.runs.versions import find_version

from .server.options import ServerOptions, takes_server_options
from .versions import ExportError

if TYPE_CHECKING:  # it takes a second to import
    from .server.process import Address

log = logging.getLogger("export")
app = command_app()


@app.command(no_args_is_help=True)
@takes_server_options
def serve(
    folder: Annotated[
        pathlib.Path | None,
        typer.Argument(metavar="FOLDER", help="The folder of an export; the model has its name."),
    ] = None,
    models: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="In place of FOLDER: TensorFlow Serving's file of models and versions."),
    ] = None,
    *,
    values: dict[str, Any],
):
    """Serve exports over HTTP and gRPC, with a page to try them.

    Serves the highest version in FOLDER until SIGTERM or Ctrl-C, with the APIs of `tensorflow_model_server`. A new
    version in FOLDER replaces it between two requests; if it cannot be loaded, this is logged. Requests that wait are
    computed together. docs/serving.md and docs/operating.md explain every option.
    """
    with exit_codes():
        options = ServerOptions(**values)
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
        typer.echo(
            f"Error: Some requests were not answered within --drain-seconds {options.drain_seconds:g}.", err=True
        )
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
