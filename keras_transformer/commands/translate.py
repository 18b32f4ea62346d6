"""`keras-transformer translate RUN`: translate standard input with a trained run.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import dataclasses
import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.files import LINES, FileArguments, takes_file_options
from keras_transformer.commands.options import (
    BatchSize,
    Constrained,
    Ensemble,
    MaxSourceTokens,
    Precision,
    RunName,
    Samples,
    SearchArguments,
    TextArguments,
    WithConfidence,
    WithScores,
    takes_search_options,
    takes_text_options,
)
from keras_transformer.commands.output_files import check_not_read
from keras_transformer.commands.runs import opened, sums_of
from keras_transformer.commands.translate_input import AskedText, Written, deciding, translate_input
from keras_transformer.ground.files import sha256_of
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.parsing.written import drawing
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.inference import TEXT
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import ON, SearchOptions
from keras_transformer.text.asks import FORBIDDEN, GLOSSARY, KEEP, PROTECT, REQUIRED
from keras_transformer.translation.outputs import outputs_of

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator

log = logging.getLogger("keras_transformer")
app = command_app()


@app.command()
@takes_file_options
@takes_search_options()
@takes_text_options()
def translate(
    run: RunName,
    ensemble: Ensemble,
    files: FileArguments,
    search: SearchArguments,
    text: TextArguments,
    scores: WithScores = False,
    confidence: WithConfidence = False,
    mbr: Samples = 0,
    batch_size: BatchSize = BATCH_SIZE,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
    precision: Precision = "float32",
    constrained: Constrained = False,
    draw: Annotated[bool, typer.Option("--draw", help="Draw trees, if the run was trained on a treebank.")] = False,
):
    """Translate lines, paragraphs or a file with a trained run.

    Writes one line to standard output per line of input, an empty one for an empty one; both are UTF-8. A score is
    the natural log-probability of the translation over the length penalty, with the coverage penalty added: at most 0,
    higher is better. What a repetition penalty multiplies counts so.

    With --n-best above 1, each translation is a line `number ||| text ||| score`, with --confidence `number ||| text
    ||| score ||| confidence`; the number is that of the input line, counted from 1.

    Options that are left out are those of the run's inference.json, if it has them: of a model that was imported, or
    trained on a treebank. The latter writes a bracketed tree per line.
    """
    with exit_codes():
        runs = [opened(name) for name in (run, *ensemble)]
        outputs = outputs_of(runs[0])
        if constrained:
            outputs.check_constrained(text.target_prefix or text.target_prefixes)
        if text.names & {PROTECT, KEEP, GLOSSARY, FORBIDDEN}:
            outputs.check_text("Leave out --protect, --keep, --glossary and --forbid.")
        if REQUIRED in text.names:
            outputs.check_text("Leave out --require and --required.")
        options = SearchOptions(**search.with_run_defaults(outputs.search))
        if files.output is not None:
            check_not_read("--output", files.output, (*runs, *text.files))
        if files.format != LINES:
            outputs.check_text(f"Leave out --format {files.format}.")
        written = Drawn() if draw else Written(options.n_best, scores, confidence)
        written.check(text, files)
        asked = AskedText(text)
        if draw:
            outputs.check_drawn(options.n_best == 1 and not scores)
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.translator import Translator

        tune_for_translation()
        translator = Translator.load(
            runs,
            options,
            batch_size=batch_size,
            max_source_tokens=max_source_tokens,
            precision=precision,
            trees_only=constrained,
        )

        def work() -> dict[str, Any]:
            how = {
                "draw": draw,
                "constrained": constrained,
                "precision": precision,
                "source": max_source_tokens,
                "mbr": mbr,
            }
            weights = [sha256_of(RunFolder(path).weights) for path in runs]
            sums = sums_of(runs[0], options.shortlist == ON, confidence)
            return dataclasses.asdict(options) | {"weights": weights} | how | sums

        translate_input(
            deciding(translator, mbr, confidence),
            *(asked, files, written, batch_size, work, "raise --max-length or --extra-length"),
            functools.partial(warn_of_long_lines, translator),
            read=outputs.read,
            through=outputs.written,
            is_live=outputs.name == TEXT,
        )


class Drawn(Written):
    """The best tree of each line, drawn."""

    def lines(self, translated: Sequence[Sequence[Translation]], first_line: int) -> list[str]:
        return [f"{drawing(best.text)}\n\n" for [best] in translated]


def warn_of_long_lines(translator: "Translator") -> None:
    """Log how many lines were longer than any sentence of the training text."""
    if count := translator.longer_than_trained:
        log.warning(
            "%s longer than any sentence that this model was trained on (%d tokens): translations may lack parts of "
            "such lines; give one sentence per line",
            "1 line is" if count == 1 else f"{count} lines are",
            translator.trained_tokens,
        )


main = program(app)
