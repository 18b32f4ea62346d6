"""`keras-transformer compare RUN RUN ...`: runs side by side, with the settings in which they differ.

It reads only what the run folders hold, and needs neither TensorFlow nor Keras.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import json
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program, standard_output
from keras_transformer.commands.output_files import check_not_read, check_picture
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import behind_links, resolved

app = command_app()


@app.command()
def compare(
    runs: Annotated[list[pathlib.Path], typer.Argument(metavar="RUN RUN ...", help="Run folders that training wrote.")],
    plot: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Draw their curves: a .png, .svg or .pdf file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
):
    """Print where runs differ: settings, scores, speed, minutes.

    The scores are those of report.md, with intervals; a run that has not ended has none yet.
    """
    with exit_codes():
        standard_output()  # a closed one is refused before the work
        from .report.comparison import comparison_lines, differing, read_run

        check_runs(runs)
        if plot:
            check_picture("--plot", plot)
            check_not_read("--plot", plot, runs)
        compared = [read_run(path) for path in runs]
        if plot:
            from .report.comparison_plot import plot_runs

            plot_runs(compared, behind_links(plot))
        if as_json:
            print(json.dumps({"differing": differing(compared), "runs": [run.as_json() for run in compared]}))
        else:
            print("\n".join(comparison_lines(compared)))


def check_runs(paths: list[pathlib.Path]) -> None:
    """Raises ConfigError unless there are at least two paths, each of another folder."""
    if len({resolved(path) for path in paths}) < len(paths) or len(paths) < 2:
        raise ConfigError(f"Give at least two different run folders; found {', '.join(map(str, paths))}.")


main = program(app)


if __name__ == "__main__":
    main()
