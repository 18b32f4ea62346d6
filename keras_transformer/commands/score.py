"""`keras-transformer score RUN`: print how probable a trained run finds given translations.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer

from keras_transformer.batching import BATCH_SIZE, LONGEST_SOURCE
from keras_transformer.commands.console import (
    UNUSED_IN_TRANSLATION,
    command_app,
    exit_codes,
    prepare_process,
    quiet_imports,
)
from keras_transformer.commands.options import (
    BatchSize,
    MaxSourceTokens,
    RunPath,
    SearchArguments,
    takes_search_options,
)
from keras_transformer.commands.signals import end_on_signals
from keras_transformer.errors import InputError
from keras_transformer.files import read_lines
from keras_transformer.outputs import outputs_of

app = command_app()


@app.command()
@takes_search_options("length_penalty", "coverage_penalty")
def score(
    run: RunPath,
    source: Annotated[pathlib.Path, typer.Option(help="Sentences, one per line.", show_default=False)],
    target: Annotated[pathlib.Path, typer.Option(help="Their translations, one per line.", show_default=False)],
    search: SearchArguments,
    batch_size: BatchSize = BATCH_SIZE,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
):
    """Print how probable a run finds given translations.

    Prints `log-probability<TAB>score` per pair of lines. The log-probability is the natural logarithm, of all tokens
    and the end of sentence. The score is that over the length penalty, with the coverage penalty if there is one, as
    `translate --scores` prints it without a repetition penalty. If the source is blank, both are 0.
    """
    with exit_codes():
        outputs_of(run).check_text("`translate --scores` prints the scores of its trees.")
        texts = [lines_of(path) for path in (source, target)]
        if len(texts[0]) != len(texts[1]):
            raise InputError(
                f"{source} has {len(texts[0])} lines and {target} has {len(texts[1])}: they must be pairs."
            )
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            from keras_transformer.parallel import tune_for_translation
            from keras_transformer.scorer import Scorer

        tune_for_translation()
        scorer = Scorer.load(run, batch_size=batch_size, max_source_tokens=max_source_tokens, **search.values)
        for pair in scorer.score(*texts):
            print(f"{pair.log_probability:.4f}\t{pair.score:.4f}")


def lines_of(path: pathlib.Path) -> list[str]:
    """Return the lines of a file in UTF-8. Raises OSError or InputError if it cannot be read."""
    with path.open("rb") as stream:
        return list(read_lines(stream, path))


def main(prog_name: str | None = None, arguments: Sequence[str] | None = None) -> None:
    """Prepare the process, then run the command."""
    end_on_signals()
    prepare_process()
    app(arguments, prog_name=prog_name)
