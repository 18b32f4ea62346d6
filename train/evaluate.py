"""`keras-transformer evaluate RUN`: translate a test set with a trained run and score the translations.

TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from keras_transformer.batching import BATCH_SIZE
from keras_transformer.commands.console import command_app, exit_codes, on_one_line, prepare_process, quiet_imports
from keras_transformer.commands.options import (
    BatchSize,
    Constrained,
    Ensemble,
    Precision,
    RunPath,
    SearchArguments,
    takes_search_options,
)
from keras_transformer.config import ConfigError
from keras_transformer.decoding.options import RUN_OPTIONS, SearchOptions
from keras_transformer.outputs import Trees, outputs_of
from keras_transformer.run_folder import RunFolder

from .config.data import DataSection, TreebankData
from .data.corpus import CorpusError
from .data.files import aligned_pairs, check_sides
from .scoring.output_files import check_not_read, check_picture, check_plain_text, check_writable

app = command_app()


@app.command()
@takes_search_options(*RUN_OPTIONS)
def evaluate(
    run: RunPath,
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
    output: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Write the translations to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="Draw scores, and the tables, into a .png, .svg or .pdf file."),
    ] = None,
):
    """Translate a test set with a run and score the translations.

    Prints BLEU in three forms and chrF, with confidence intervals and signatures, and where they are won and lost.
    Without --source and --reference, the test set is that of the run's configuration, or its validation set if it has
    no test set.

    Of a run that was trained on a treebank, print precision, recall and F1 of labelled brackets. The search is then
    that of its configuration, unless an option says otherwise.
    """
    with exit_codes():
        runs = [run, *ensemble]
        check_files(runs, source, reference, against, output, plot)
        outputs = outputs_of(run)
        writes_trees = isinstance(outputs, Trees)
        if constrained:
            outputs.check_constrained()
        if writes_trees:
            check_tree_options(source=source, tokenised=tokenised, plot=plot)
        check_kinds(run, writes_trees, against)
        options = SearchOptions(**search.with_run_defaults(outputs.search))
        settings = {name: getattr(options, name) for name in RUN_OPTIONS}
        if ensemble:
            settings["ensemble"] = [str(one) for one in ensemble]
        settings |= {"precision": precision} | ({"constrained": constrained} if writes_trees else {})
        with quiet_imports():
            from keras_transformer.bleu import tokenised_bleu
            from keras_transformer.parallel import tune_for_translation
            from keras_transformer.translator import Translator

            from .scoring.breakdown import training_splits
            from .scoring.scorecard import evaluator_of, translate_timed
            from .scoring.scored_text import ScoredText, data_of_run, other_translations, text_of_run
            from .scoring.significance import check_paired_test

        check_paired_test(paired_test)
        tune_for_translation()

        def load(*paths: pathlib.Path) -> Translator:
            settings = {"trees_only": True} if constrained else {}
            return Translator.load(paths, options, batch_size=batch_size, precision=precision, **settings)

        translator = load(*runs)
        data = data_of_run(run, has_text=source is not None)
        if output:
            check_not_read("--output", output, files_of(data))
        if writes_trees:
            card = evaluated_trees(translator, data, output, against, load, paired_test)
            show(card, run, "data.test", settings, as_json)
            return
        given = ScoredText(f"{source} and {reference}", aligned_pairs(source, reference)) if source else None
        text = given or text_of_run(data, output)
        theirs = other_translations(against, text.pairs, load) if against else None
        timed = translate_timed(translator, text.pairs)
        if output:
            write_lines(output, [sample.translation for sample in timed.samples])
        language = data.target_language if data else ""
        tokenizers = [translator.tokenizer, *([theirs.tokenizer] if theirs and theirs.tokenizer else [])]
        evaluator = evaluator_of(tokenizers, language, lambda: training_splits(data), timed.samples)
        if tokenised:
            evaluator = dataclasses.replace(evaluator, length_bleu=tokenised_bleu(language))
        card = evaluator.scorecard(timed)
        if theirs:
            card = evaluator.compared(card, str(against), theirs.translations, paired_test)
        show(card, run, text.name, settings, as_json)  # first: whatever happens to the picture, the scores are there
        if plot:
            draw(card, str(run), plot)


def files_of(data: DataSection | None) -> list[pathlib.Path]:
    """The files that the configuration names, with a ~ for the home folder, and those in folders of a treebank."""
    if isinstance(data, TreebankData):
        from .data.treebank import files_of as files_of_treebank

        return [file.path for file in files_of_treebank(data.files)]
    return [pathlib.Path(os.path.expanduser(path)) for path in getattr(data, "paths", ())]


def show(card: Any, run: pathlib.Path, text: str, settings: dict[str, Any], as_json: bool) -> None:
    """Print a Scorecard or a ParsingCard, for a person or as one JSON object, after what was scored and the search."""
    if as_json:
        print(json.dumps({"run": str(run), "text": text, **settings, **card.as_json()}, ensure_ascii=False))
        return
    words = {name: " and ".join(value) if isinstance(value, list) else value for name, value in settings.items()}
    search = (f"{name.replace('_', ' ').removesuffix(' size')} {value}" for name, value in words.items())
    print("\n".join([f"{text}, {', '.join(search)}:", *card.lines()]))


def evaluated_trees(
    translator: Any,
    data: DataSection,
    output: pathlib.Path | None,
    against: pathlib.Path | None,
    load: Callable[[pathlib.Path], Any],
    paired_test: str,
) -> Any:
    """The ParsingCard of the test set of a treebank. The trees are written to `output` with the treebank's tags."""
    from .data.prepare import load_corpus
    from .scoring.parsing_card import parsing_card, tagged_trees
    from .scoring.scorecard import translate_timed
    from .scoring.tree_comparison import compare_trees

    corpus = load_corpus(data)
    pairs, trees = list(corpus.test), corpus.test.trees
    theirs = other_trees(against, pairs, trees, load) if against else None
    timed = translate_timed(translator, pairs)
    ours = [sample.translation for sample in timed.samples]
    if output:
        write_lines(output, tagged_trees(trees, ours))
    card = parsing_card(timed, trees, corpus.train.trees)
    if theirs is None:
        return card
    return dataclasses.replace(card, comparison=compare_trees(str(against), trees, ours, theirs, paired_test))


def other_trees(
    against: pathlib.Path, pairs: list[tuple[str, str]], trees: list, load: Callable[[pathlib.Path], Any]
) -> list[str]:
    """The outputs that --against names, as lines of brackets: of another run, or the trees of a file, as --output has.

    Raises CorpusError if the file has not one tree over the words of each sentence.
    """
    from keras_transformer.samples import translate_pairs

    from .data.files import lines_of
    from .data.trees import read_trees

    if against.is_dir():
        return [sample.translation for sample in translate_pairs(load(against), pairs)]
    found = list(read_trees("\n".join(lines_of(against)), str(against)))
    if len(found) != len(trees):
        raise CorpusError(f"--against {against} has {len(found):,} trees, but there are {len(trees):,} sentences.")
    for number, (one, tree) in enumerate(zip(found, trees, strict=True), 1):
        if len(one.words) != len(tree.words):
            raise CorpusError(
                f"--against {against}: tree {number:,} has {len(one.words)} words and its sentence "
                f"{len(tree.words)}: give the trees in the order of the sentences."
            )
    return [one.pair[1] for one in found]


def check_tree_options(**given: Any) -> None:
    """Raises ConfigError for an option that is of text, since the run writes trees."""
    if names := [name for name, value in given.items() if value]:
        raise ConfigError(
            f"--{names[0]} is for runs that translate text, and this one was trained on a treebank, whose test trees "
            "are scored: leave it out."
        )


def check_kinds(run: pathlib.Path, has_trees: bool, against: pathlib.Path | None) -> None:
    """Raises ConfigError if one of two runs writes trees and the other one text, which no measure compares."""
    if against and against.is_dir() and isinstance(outputs_of(against), Trees) != has_trees:
        RunFolder(run).check_exists()
        ours, theirs = ("trees", "text") if has_trees else ("text", "trees")
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
    """Raises ConfigError now, not after the translation, for options that do not fit or files that it cannot write."""
    if bool(source) != bool(reference):
        raise ConfigError("--source and --reference belong together: give both, or neither.")
    if source:
        check_sides(source, reference)
    if plot:
        check_picture("--plot", plot)
        check_not_read("--plot", plot, (*runs, against))
    if output:
        check_plain_text("--output", output)
        check_writable("--output", output)
        check_not_read("--output", output, (source, reference, *runs, against))


def draw(card: Any, name: str, path: pathlib.Path) -> None:
    """Draw a Scorecard, of the run called `name`, into a file. Raises ConfigError if the file cannot be written."""
    from .scoring.scorecard_plot import plot_scorecard

    try:
        plot_scorecard(card, name, path)
    except OSError as error:
        raise ConfigError(f"--plot {path} cannot be written: {error.strerror}.") from None


def write_lines(path: pathlib.Path, texts: list[str]) -> None:
    """One line per text. Raises ConfigError if the file cannot be written."""
    try:
        path.write_text("".join(f"{on_one_line(text)}\n" for text in texts), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {path} cannot be written: {error.strerror}.") from None


def main(prog_name: str | None = None, arguments: Sequence[str] | None = None) -> None:
    """Prepare the process, then run the command."""
    end_on_signals()
    prepare_process(is_long=True)
    app(arguments, prog_name=prog_name)


if __name__ == "__main__":
    main()
