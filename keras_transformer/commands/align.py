"""`keras-transformer align RUN`: choose the attention with which a run aligns words."""

import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import OutputLanguage, RunName, SourceLanguage
from keras_transformer.commands.runs import opened
from keras_transformer.commands.shortlist import check_pairs, texts_of
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.outputs import outputs_of

app = command_app()

STEPS = {False: "the step that writes a word", True: "the step that reads it"}


@app.command()
def align(
    run: RunName,
    source: Annotated[
        list[pathlib.Path],
        typer.Option(metavar="FILE", default_factory=list, help="Sentences, one per line; may be repeated."),
    ],
    target: Annotated[
        list[pathlib.Path],
        typer.Option(metavar="FILE", default_factory=list, help="Their translations, a file for each of --source."),
    ],
    source_language: SourceLanguage = "",
    target_language: OutputLanguage = "",
):
    """Choose the attention with which a run aligns words.

    What is protected, tags and terms are placed by it. A dictionary is learned from the sentence pairs, such as the
    training text, and 600 of their sources are translated. Prints the share of words, of those that certainly translate
    a word of their source, that each decoder block aligns with another one, in the step that writes a word and in the
    one that reads it. The best is written into RUN/inference.json, and exports of the run have it. Training does the
    same at its end.
    """
    with exit_codes():
        if not source:
            raise ConfigError("There is no text: give --source FILE and --target FILE.")
        check_pairs(source, target)
        folder = RunFolder(opened(run))
        outputs_of(folder.path).check_text("Words are aligned in text.")
        pairs = list(zip(*texts_of(source, target), strict=True))
        with quiet_imports():
            from keras_transformer.translation.alignment_choice import adopt_best, error_rates
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.translator import Translator

        tune_for_translation()
        translator = Translator.load(folder.path, SearchOptions(beam_size=1))
        if not translator.aligns:
            raise ConfigError(f"{run} attends to no source, so it aligns no words.")
        translator.languages.chosen(source_language, target_language)  # refuses what the model lacks
        rates = error_rates(translator, pairs, [(source_language, target_language)] * len(pairs))
        if not rates:
            raise InputError(
                f"{source[0]} and {target[0]} have too few words that certainly translate each other: give more text, "
                "such as all that the model was trained on."
            )
        best = adopt_best(folder, rates)
        print(f"Of {best.links:,} words whose source is certain, aligned with another one, per cent:\n")
        for rate in rates:
            step, mark = STEPS[rate.aligned_by.reads], "  <- chosen" if rate == best else ""
            print(f"block {rate.aligned_by.block}, {step}: {100 * rate.error:.1f}{mark}")


main = program(app, is_long=True)
