"""`keras-transformer evaluate RUN`: translate a test set with a trained run and score the translations.

TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_transformer.commands.console import command_app, exit_codes, program, standard_output
from keras_transformer.commands.options import (
    BatchSize,
    Constrained,
    Ensemble,
    OutputLanguage,
    Precision,
    RunName,
    SearchArguments,
    SourceLanguage,
    takes_search_options,
)
from keras_transformer.commands.output_files import (
    check_not_read,
    check_picture,
    check_plain_text,
    check_writable,
    is_same_file,
)
from keras_transformer.commands.runs import opened
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import behind_links, on_one_line
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions
from keras_transformer.translation.outputs import Outputs, outputs_of

from .data.files import check_sides

if TYPE_CHECKING:  # they take a second
    from .scoring.card import Card
    from .scoring.metric_command import MetricCommand
    from .scoring.scorecard import Scorecard

app = command_app()


@app.command()
@takes_search_options(*RUN_OPTIONS)
def evaluate(
    run: RunName,
    ensemble: Ensemble,
    source: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Sentences to translate, one per line; .gz is unpacked.")
    ] = None,
    reference: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Their reference translations, line by line.")
    ] = None,
    against: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="RUN|FILE",
            help="Compare with another run, or with a file of translations, or of trees, one per line.",
        ),
    ] = None,
    paired_test: Annotated[
        str, typer.Option(help="Of --against: randomization (10,000 trials) or bootstrap (1,000 resamples).")
    ] = "randomization",
    tokenised: Annotated[
        bool,
        typer.Option("--tokenised", help="By length: BLEU of Moses-tokenised, lower-cased text instead of raw text."),
    ] = False,
    *,
    search: SearchArguments,
    batch_size: BatchSize = BATCH_SIZE,
    precision: Precision = "float32",
    constrained: Constrained = False,
    source_language: SourceLanguage = "",
    target_language: OutputLanguage = "",
    output: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Write the translations to this file.")
    ] = None,
    metric_commands: Annotated[
        list[str] | None,
        typer.Option(
            "--metric-command",
            metavar="PROGRAM",
            help="Score by another program too. {source}, {translations} and {references} in it are files; without "
            "them these are its last arguments. It prints a JSON object of numbers, a number, or one per sentence. May "
            "be repeated.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="Draw scores, and the tables, into a .png, .svg or .pdf file."),
    ] = None,
):
    """Translate a test set with a run and score the translations.

    Prints BLEU in three forms, chrF and TER, with confidence intervals and signatures, and where they are won and lost.
    Without --source and --reference, the test set is that of the run's configuration, or its validation set if it has
    no test set.

    Of a run that was trained on a treebank, print precision, recall and F1 of labelled brackets. What is left out of
    the search is that of the run, as in `translate`.
    """
    with exit_codes():
        standard_output()  # a closed one is refused before the work
        runs = [opened(name) for name in (run, *ensemble)]
        against = against and opened(str(against))
        check_files(runs, source, reference, against, output, plot)
        outputs = outputs_of(runs[0])
        check_options(outputs, source, tokenised, plot, constrained, metric_commands)
        check_same_outputs(runs[0], against)
        options = SearchOptions(**search.with_run_defaults(outputs.search))
        with quiet_imports():
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.translator import Translator

            from .scoring.card import translate_timed
            from .scoring.metric_command import MetricCommand
            from .scoring.outputs import SCORED
            from .scoring.scorecard import Scorecard
            from .scoring.scored import opponent_of
            from .scoring.scored_text import data_of_run, is_told
            from .scoring.significance import check_paired_test

        check_paired_test(paired_test)
        programs = [MetricCommand(text) for text in metric_commands or ()]
        tune_for_translation()

        def load(*paths: pathlib.Path) -> Translator:
            how = {"batch_size": batch_size, "precision": precision, "trees_only": constrained}
            return Translator.load(paths, options, **how, languages=languages_of(paths[0]))

        has_codes = not (source or source_language or target_language) and is_told(runs[0])

        def languages_of(run: pathlib.Path) -> Languages:
            languages = RunFolder(run).inference().languages
            return languages if has_codes else languages.by_default(source_language, target_language)

        translator, kind = load(*runs), SCORED[outputs.name]
        data = data_of_run(runs[0], has_files=source is not None)
        for option, path in (("--output", output), ("--plot", plot)):
            if path:
                check_not_read(option, path, data.paths() if data else ())
        scored = kind.of_run(data, (source, reference) if source and reference else None, tokenised)
        scored = scored if has_codes else scored.untold()
        opponent = opponent_of(against, scored, load) if against else None
        timed = translate_timed(translator, scored.pairs, scored.told)
        if output:
            write_lines(output, scored.written([sample.translation for sample in timed.samples]))
        card = scored.score(timed, translator.tokenizer, opponent, paired_test)
        card = with_programs(card, programs, opponent.outputs if opponent else None)
        settings = {name: getattr(options, name) for name in RUN_OPTIONS}
        if ensemble:
            settings["ensemble"] = ensemble
        languages = languages_of(runs[0])
        pair = languages.default_source, languages.default_target
        settings |= {side: code for side, code in zip(("from", "to"), pair, strict=True) if code}
        settings |= {"precision": precision, **kind.settings(constrained)}
        show(card, run, scored.name, settings, as_json)  # first: if the picture fails, the scores are there
        if plot and isinstance(card, Scorecard):  # check_options lets no other through
            draw_scorecard(card, run, plot)


def with_programs(card: "Card", programs: "Sequence[MetricCommand]", others: Sequence[str] | None) -> "Card":
    """The Card with the scores of other programs. others: the translations that it is compared with."""
    scores = [score for program in programs for score in program.score(card.timed.samples, others)]
    return dataclasses.replace(card, by_programs=tuple(scores))


def show(card: "Card", run: str, text: str, settings: dict[str, Any], as_json: bool) -> None:
    """Print a Card, for a person or as one JSON object, after what was scored and the search."""
    if as_json:
        print(json.dumps({"run": run, "text": text, **settings, **card.as_json()}, ensure_ascii=False))
        return
    texts = {name: " and ".join(value) if isinstance(value, list) else value for name, value in settings.items()}
    search = (f"{name.replace('_', ' ').removesuffix(' size')} {value}" for name, value in texts.items())
    print("\n".join([f"{text}, {', '.join(search)}:", *card.lines()]))


def check_options(
    outputs: Outputs,
    source: pathlib.Path | None,
    tokenised: bool,
    plot: pathlib.Path | None,
    constrained: bool,
    metric_commands: list[str] | None,
) -> None:
    """Raises ConfigError for an option that does not fit the outputs of the run."""
    options = {"--source": source, "--tokenised": tokenised, "--plot": plot, "--metric-command": metric_commands}
    for option, value in options.items():
        if value:
            outputs.check_text(f"{option} is for text: leave it out.")
    if constrained:
        outputs.check_constrained()


def check_same_outputs(run: pathlib.Path, against: pathlib.Path | None) -> None:
    """Raises ConfigError if one of two runs writes trees and the other one text, which no measure compares."""
    if against is None or not against.is_dir():
        return
    ours, theirs = (outputs_of(path).name for path in (run, against))
    if ours != theirs:
        RunFolder(run).check_exists()
        raise ConfigError(
            f"{run} writes {ours} and --against {against} writes {theirs}: compare it with a run that writes {ours}."
        )


def check_files(
    runs: list[pathlib.Path],
    source: pathlib.Path | None,
    reference: pathlib.Path | None,
    against: pathlib.Path | None,
    output: pathlib.Path | None,
    plot: pathlib.Path | None,
) -> None:
    """Raises ConfigError before the translation for options that do not fit and files that cannot be written."""
    if source and reference:
        check_sides(source, reference)
    elif source or reference:
        raise ConfigError("--source and --reference belong together: give both, or neither.")
    read = (source, reference, *runs, against)
    if plot:
        check_picture("--plot", plot)
        check_not_read("--plot", plot, read)
    if output:
        check_plain_text("--output", output)
        check_writable("--output", output)
        check_not_read("--output", output, read)
    if plot and output and is_same_file(plot, output):
        raise ConfigError(f"--output and --plot are both {plot}: name a file for each.")


def draw_scorecard(card: "Scorecard", name: str, path: pathlib.Path) -> None:
    """Draw a Scorecard, of the run called `name`, into a file. Raises ConfigError if the file cannot be written."""
    from .scoring.scorecard_plot import plot_scorecard

    try:
        plot_scorecard(card, name, behind_links(path))
    except OSError as error:
        raise ConfigError(f"--plot {path} cannot be written: {error.strerror}.") from None


def write_lines(path: pathlib.Path, texts: Sequence[str]) -> None:
    """One line per text. Raises ConfigError if the file cannot be written."""
    try:
        path.write_text("".join(f"{on_one_line(text)}\n" for text in texts), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {path} cannot be written: {error.strerror}.") from None


main = program(app, is_long=True)


if __name__ == "__main__":
    main()
