"""`keras-transformer doctor [RUN|EXPORT]`: print what is missing here, and what to do about it."""

import pathlib
from collections.abc import Iterable
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.doctor.finding import MISSING, NOTE, OK, Finding
from keras_transformer.doctor.hardware import machine
from keras_transformer.doctor.packages import software
from keras_transformer.models.hub import download, is_on_hub

app = command_app()
COLOURS = {OK: None, NOTE: typer.colors.YELLOW, MISSING: typer.colors.RED}


@app.command()
def doctor(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|EXPORT]",
            help="A run folder, a preset or an export of any format, to see whether it is whole.",
            show_default=False,
        ),
    ] = None,
):
    """Print what is missing here, and what to do.

    Looks at packages and the machine. A line begins with ok, with note if something is missing that may not
    be wanted, or with MISSING if it is needed: then the exit code is 1. TensorFlow is not started.
    """
    with exit_codes():
        place = pathlib.Path() if path is None else download(path) if is_on_hub(path) else pathlib.Path(path)
        count = printed("Packages", software()) + printed("Machine", machine(place))
        if path is not None:
            count += printed(path, folder_findings(place))
        print()
        if count:
            print(f"{count} of these {'lines is' if count == 1 else 'lines are'} MISSING: do what the arrows say.")
            raise typer.Exit(1)
        print("All that is needed is here.")


def folder_findings(place: pathlib.Path) -> Iterable[Finding]:
    """Return the findings on a run or an export; they need packages that the ones before may have found missing."""
    try:
        from keras_transformer.doctor.folders import folder
    except ImportError as error:
        return [Finding(MISSING, f"it cannot be looked at: {error}", "install what the lines above say first")]
    return folder(place)


def printed(title: str, findings: Iterable[Finding]) -> int:
    """Print findings under a title, as they come. Return how many are MISSING."""
    print(title)
    count = 0
    for state, text, advice in findings:
        count += state == MISSING
        mark = typer.style(f"{state:8}", fg=COLOURS[state])
        typer.echo(f"  {mark}{text}")
        if advice:
            typer.echo(f"  {'':8}-> {advice}")
    return count


main = program(app)
