"""`keras-transformer translate RUN`: translate standard input with a trained run.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import dataclasses
import functools
import logging
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_transformer.commands.console import (
    CutLines,
    command_app,
    confidence_of,
    exit_codes,
    output_line,
    program,
    translate_lines,
)
from keras_transformer.commands.files import (
    LINES,
    TEXT,
    FileArguments,
    noted,
    road_of_files,
    road_of_lines,
    takes_file_options,
    translate_files,
)
from keras_transformer.commands.options import (
    BatchSize,
    Constrained,
    Ensemble,
    ForbidFile,
    GlossaryFile,
    KeepFile,
    MaxSourceTokens,
    Precision,
    PrefixFile,
    Protect,
    Require,
    RequiredFile,
    RunName,
    SearchArguments,
    TargetPrefix,
    WithConfidence,
    WithScores,
    takes_search_options,
)
from keras_transformer.commands.output_files import check_not_read
from keras_transformer.commands.runs import opened, sums_of
from keras_transformer.commands.target_prefixes import RequiredPhrases, TargetPrefixes
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import on_one_line, sha256_of
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.parsing.written import drawing
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import ON, SearchOptions
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.spans import Protection
from keras_transformer.translation.outputs import outputs_of

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator

log = logging.getLogger("keras_transformer")
app = command_app()


@app.command()
@takes_file_options
@takes_search_options()
def translate(
    run: RunName,
    ensemble: Ensemble,
    files: FileArguments,
    search: SearchArguments,
    require: Require,
    target_prefix: TargetPrefix = "",
    target_prefixes: PrefixFile = None,
    protect: Protect = "",
    keep: KeepFile = None,
    glossary: GlossaryFile = None,
    forbid: ForbidFile = None,
    required: RequiredFile = None,
    scores: WithScores = False,
    confidence: WithConfidence = False,
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
            outputs.check_constrained(target_prefix or target_prefixes)
        prefixes = TargetPrefixes(target_prefix, target_prefixes)
        phrases = RequiredPhrases("\t".join(require), required)
        protection = Protection.read(protect, keep, glossary, forbid)
        if protection:
            outputs.check_text("Leave out --protect, --keep, --glossary and --forbid.")
        if require or required is not None:
            outputs.check_text("Leave out --require and --required.")
        options = SearchOptions(**search.with_run_defaults(outputs.search))
        if files.output is not None:
            check_not_read("--output", files.output, (*runs, keep, glossary, forbid, target_prefixes, required))
        if files.format != LINES:
            outputs.check_text(f"Leave out --format {files.format}.")
            of_lines = scores or confidence or bool(require) or {target_prefixes, required} != {None}
            check_one_text(options.n_best > 1 or of_lines, bool(target_prefix) and files.format != TEXT)
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
        cut_lines = CutLines("line" if files.format == LINES else "sentence")

        def output_lines(lines: list[str], first_line: int) -> list[str]:
            begins = prefixes.of_next(len(lines), first_line)
            musts = phrases.lists_of_next(len(lines), first_line)
            hypotheses = translator.translate_n_best(outputs.read(lines), first_line, begins, protection, musts)
            translated = outputs.written(lines, hypotheses, first_line)
            cut_lines.note(translated, first_line)
            if draw:
                return [f"{drawing(best.text)}\n\n" for [best] in translated]
            if options.n_best == 1:
                return [output_line(best, scores, confidence) for [best] in translated]
            return [
                n_best_line(number, translation, confidence)
                for number, translations in enumerate(translated, first_line)
                for translation in translations
            ]

        def checked(lines: Iterator[str]) -> Iterator[str]:
            return phrases.beside(prefixes.beside(lines, translator), translator)

        def beside():
            return prefixes.last_read + phrases.last_read

        def work():
            typed = {
                "scores": scores,
                "target_prefix": target_prefix,
                "require": require,
                "draw": draw,
                "constrained": constrained,
            }
            how = {
                "confidence": confidence,
                "precision": precision,
                "max_source_tokens": max_source_tokens,
                "protection": [*protection.kinds, *map(str, protection.glossary.terms)],
                "forbidden": [*map(str, protection.forbidden.terms)],
            }
            sums = sums_of(runs[0], options.shortlist == ON, confidence)
            return description_of(runs, options, files) | typed | how | sums

        with cut_lines.warning("raise --max-length or --extra-length", lambda: warn_of_long_lines(translator)):
            if files.is_plain:
                translate_lines(output_lines, batch_size, checked)
            elif files.format == LINES:
                translate_files(road_of_lines(output_lines, checked, beside), files, batch_size, work)
            else:
                with_marks = dataclasses.replace(protection, has_marks=True)
                translate_sentences = noted(functools.partial(translator.translate, protect=with_marks), cut_lines)
                documents = DocumentTranslator(translate_sentences, files.language, translator.are_too_long, True)
                translate_files(road_of_files(files, documents, target_prefix), files, batch_size, work)


def warn_of_long_lines(translator: "Translator") -> None:
    """Log how many lines were longer than any sentence of the training text."""
    if count := translator.longer_than_trained:
        log.warning(
            "%s longer than any sentence that this model was trained on (%d tokens): translations may lack parts of "
            "such lines; give one sentence per line",
            "1 line is" if count == 1 else f"{count} lines are",
            translator.trained_tokens,
        )


def description_of(runs: Sequence[pathlib.Path], options: SearchOptions, files: FileArguments) -> dict[str, Any]:
    """Return what decides translations: weights, search and format."""
    weights = [sha256_of(RunFolder(path).weights) for path in runs]
    kept = {"format": files.format, "fields": files.fields, "language": files.language}
    return {"weights": weights, **kept, **dataclasses.asdict(options)}


def check_one_text(asks_for_more: bool, has_prefix: bool) -> None:
    """Raises ConfigError for options that are for lines, and for a prefix of what is not one text."""
    if asks_for_more:
        raise ConfigError(
            "--n-best, --scores, --confidence, --target-prefixes, --require and --required are for lines: leave them "
            "out, or give --format lines."
        )
    if has_prefix:
        raise ConfigError("--target-prefix is for lines and for --format text: leave it out.")


def n_best_line(number: int, translation: Translation, with_confidence: bool) -> str:
    """Return one of several translations of the line `number` as a line of output."""
    confidence = f" ||| {confidence_of(translation):.3f}" if with_confidence else ""
    return f"{number} ||| {on_one_line(translation.text)} ||| {translation.score:.4f}{confidence}\n"


main = program(app)
