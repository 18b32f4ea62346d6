"""`keras-transformer score RUN`: print how probable a trained run finds given translations.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import pathlib
import re
from typing import TYPE_CHECKING, Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program, standard_output
from keras_transformer.commands.options import (
    BatchSize,
    MaxSourceTokens,
    OutputLanguage,
    RunName,
    SearchArguments,
    SourceLanguage,
    takes_search_options,
)
from keras_transformer.commands.runs import opened
from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import lines_of
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE
from keras_transformer.translation.outputs import outputs_of

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.scorer import ScoredPair

app = command_app()


@app.command()
@takes_search_options("length_penalty", "length_normalization", "coverage_penalty")
def score(
    run: RunName,
    source: Annotated[pathlib.Path, typer.Option(help="Sentences, one per line.", show_default=False)],
    target: Annotated[pathlib.Path, typer.Option(help="Their translations, one per line.", show_default=False)],
    search: SearchArguments,
    batch_size: BatchSize = BATCH_SIZE,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
    source_language: SourceLanguage = "",
    target_language: OutputLanguage = "",
    pieces: Annotated[
        bool,
        typer.Option("--pieces", help="Print two columns more: the pieces, and the log-probability of each."),
    ] = False,
):
    """Print how probable a run finds given translations.

    Prints `log-probability<TAB>score` per pair of lines. The log-probability is the natural logarithm, of all tokens
    and the end of sentence. The score is that over the length penalty, with the coverage penalty if there is one, as
    `translate --scores` prints it without a repetition penalty. If the source is blank, both are 0.

    A translation is a text, scored as the pieces that the tokenizer divides it into. A search may have written the same
    text in other pieces: then `translate --scores` printed the score of those.
    """
    with exit_codes():
        standard_output()  # a closed one is refused before the work
        folder = opened(run)
        outputs = outputs_of(folder)
        outputs.check_text("`translate --scores` prints the scores of its trees.")
        texts = [lines_of(path) for path in (source, target)]
        if len(texts[0]) != len(texts[1]):
            raise InputError(
                f"{source} has {len(texts[0])} lines and {target} has {len(texts[1])}: they must be pairs."
            )
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.scorer import Scorer

        tune_for_translation()
        values = search.with_run_defaults(outputs.search)
        in_scores = {name: values[name] for name in search.values}
        scorer = Scorer.load(folder, batch_size=batch_size, max_source_tokens=max_source_tokens, **in_scores)
        for pair in scorer.score(texts[0], texts[1], source_language=source_language, target_language=target_language):
            print("\t".join(columns_of(pair, pieces)))


def columns_of(pair: "ScoredPair", with_pieces: bool) -> list[str]:
    """Return what is printed of a pair; white space in a piece is written as the bytes of UTF-8, <0x09> for a tab."""
    columns = [f"{pair.log_probability:.4f}", f"{pair.score:.4f}"]
    if with_pieces:
        columns.append(" ".join(re.sub(r"\s", bytes_of, piece) for piece in pair.pieces))
        columns.append(" ".join(f"{log_prob:.4f}" for log_prob in pair.piece_log_probabilities))
    return columns


def bytes_of(match: re.Match) -> str:
    """Return a character as SentencePiece writes its bytes."""
    return "".join(f"<0x{byte:02X}>" for byte in match[0].encode("utf-8"))


main = program(app)
