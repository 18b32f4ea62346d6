"""`keras-transformer query --url URL`: translate with a served model.

The command imports TensorFlow only for gRPC, so that a question over REST is answered at once.
"""

from keras_transformer.commands.signals import end_on_closed_output, end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import (
    CutLines,
    command_app,
    exit_codes,
    output_line,
    program,
    translate_lines,
)
from keras_transformer.commands.options import WithConfidence, WithScores
from keras_transformer.ground.imports import quiet_imports

app = command_app()


@app.command(no_args_is_help=True)
def query(
    url: Annotated[
        str,
        typer.Option(metavar="URL", help="http[s]://HOST:8501/v1/models/NAME or grpc[s]://HOST:8500/NAME."),
    ],
    scores: WithScores = False,
    confidence: WithConfidence = False,
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
    """Translate standard input line by line with a server.

    The server is `keras-transformer serve` or `tensorflow_model_server`. Writes one line to standard output per line of
    input, in their order, as UTF-8. A request is sent again if the server is too busy; any other error ends the command
    with one sentence.
    """
    with exit_codes():
        with quiet_imports():
            from .client.access import Access
            from .client.client import ServingClient

            access = Access(ca, certificate, key, api_key_file)
            client = ServingClient(url, deadline, rows_per_request, requests_at_once, access=access)
        cut_lines = CutLines()

        def output_lines(lines: list[str], first_line: int) -> list[str]:
            translations = client.translate(lines)
            cut_lines.note(([best] for best in translations), first_line)
            return [output_line(best, scores, confidence) for best in translations]

        with cut_lines.warning("export the run again with a larger --extra-length"), end_on_closed_output():
            translate_lines(output_lines, rows_per_request)


main = program(app, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
