"""`keras-transformer train CONFIG`: train, or continue a run.

TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # until training listens for Ctrl-C; before the imports below, which take a second

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, prepare_process
from keras_transformer.ground.imports import quiet_imports

from .workers.rendezvous import exit_immediately

app = command_app()


@app.command()
def train(
    config: Annotated[pathlib.Path, typer.Argument(metavar="CONFIG", help="A TOML file; configs/ has examples.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Override a key; KEY=null leaves it out. May be repeated."
        ),
    ] = None,
    is_dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only read, encode and pack the text, and log what was found."),
    ] = False,
):
    """Train a model as CONFIG says, or continue its run.

    Prints the run folder, which then holds report.md and what translation and export need.

    SIGTERM and Ctrl-C finish the step, write a checkpoint and exit with code 75; the same command continues from there.

    Several processes train one model if TF_CONFIG names them: see docs/scaling.md.
    """
    with exit_codes():
        from .config.run import load_config

        run_config = load_config(config, overrides or ())
        with quiet_imports():
            from .run import dry_run, run
        if is_dry_run:
            dry_run(run_config)
        elif folder := run(run_config):
            print(folder.path)


def main(prog_name: str | None = None, arguments: Sequence[str] | None = None) -> None:
    """Prepare the process, then run the command."""
    end_on_interrupt()
    prepare_process(is_long=True)
    with exit_immediately():  # the processes of a cluster
        app(arguments, prog_name=prog_name)


if __name__ == "__main__":
    main()
