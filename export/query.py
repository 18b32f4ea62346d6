"""`keras-transformer query --url URL`: translate with a served model.

The command imports TensorFlow only for gRPC, so that a question over REST is answered at once.
"""

from keras_transformer.commands.signals import end_on_closed_output, end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.files import FileArguments, takes_file_options
from keras_transformer.commands.options import (
    Samples,
    TextArguments,
    WithConfidence,
    WithScores,
    takes_served_options,
    takes_text_options,
)
from keras_transformer.commands.output_files import check_not_read
from keras_transformer.commands.translate_input import AskedText, Written, deciding, translate_input
from keras_transformer.ground.imports import quiet_imports

app = command_app()


@app.command(no_args_is_help=True)
@takes_file_options
@takes_served_options()
@takes_text_options()
def query(
    url: Annotated[
        str,
        typer.Option(metavar="URL", help="http[s]://HOST:8501/v1/models/NAME or grpc[s]://HOST:8500/NAME."),
    ],
    files: FileArguments,
    search: dict,
    text: TextArguments,
    scores: WithScores = False,
    confidence: WithConfidence = False,
    mbr: Samples = 0,
    rows_per_request: Annotated[int, typer.Option(help="Lines per request, at most.")] = 32,
    requests_at_once: Annotated[int, typer.Option(help="Requests in flight, at most.")] = 4,
    deadline: Annotated[float, typer.Option(help="Seconds for a request, with all its attempts.")] = 60.0,
    ca: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="The authority of the server's certificate, PEM.")
    ] = None,
    certificate: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Your own certificate, for mutual TLS.")
    ] = None,
    key: Annotated[pathlib.Path | None, typer.Option(metavar="FILE", help="The key of --certificate.")] = None,
    api_key_file: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="The API key that the server wants.")
    ] = None,
):
    """Translate lines, paragraphs or a file with a server.

    The server is `keras-transformer serve` or `tensorflow_model_server`. Writes one line to standard output per line of
    input, in their order, as UTF-8. A request is sent again if the server is too busy; any other error ends the command
    with one sentence.
    """
    with exit_codes():
        written = Written(search.get("n_best", 1), scores, confidence)
        written.check(text, files)
        asked = AskedText(text)
        if files.output is not None:
            check_not_read("--output", files.output, text.files)
        with quiet_imports():
            from .client.access import Access
            from .client.client import ServingClient

            if search or text.names or mbr:  # the client then reads what the model takes
                import tensorflow_serving.apis.get_model_metadata_pb2  # noqa: F401

            access = Access(ca, certificate, key, api_key_file)
            client = ServingClient(url, deadline, rows_per_request, requests_at_once, access=access)
        advice = "export the run again with a larger --extra-length"
        with end_on_closed_output():
            engine = deciding(client.with_options(search), mbr, confidence)
            translate_input(
                engine, asked, files, written, rows_per_request, lambda: {"url": url, **search, "mbr": mbr}, advice
            )


main = program(app, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
