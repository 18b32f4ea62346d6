"""`python -m train CONFIG`: train, or go on with a run."""

from typing import Annotated

import typer

from train.workers.rendezvous import leaving_at_once

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    config: Annotated[str, typer.Argument(help="A TOML file; configs/ has examples.")],
    set: Annotated[
        list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a key; may be repeated.")
    ] = [],  # noqa: B006
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Read, encode (into the cache) and pack; say what was found and what it will take; stop."
        ),
    ] = False,
):
    """Train a Transformer as CONFIG says, or go on where its run folder stands.

    Leaves in the run folder what translation and export need, and report.md. Prints the run folder.

    SIGTERM and Ctrl-C finish the step, write a checkpoint and exit with code 75; the same command goes on from there.

    Several processes train as one where TF_CONFIG names them: docs/scaling.md.
    """
    from keras_transformer.console import exit_codes, prepare_process, quiet_start

    prepare_process(is_long=True)
    with exit_codes():
        from train.config import load_config

        settings = load_config(config, set)
        with quiet_start():
            from train import run
        if dry_run:
            run.dry_run(settings)
            return
        folder = run.run(settings)
    if folder is not None:
        print(folder.path)


if __name__ == "__main__":
    with leaving_at_once():
        app()
