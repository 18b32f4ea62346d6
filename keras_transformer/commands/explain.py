"""`keras-transformer explain RUN SENTENCE`: write a page that shows how a sentence is translated.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import dataclasses
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import (
    exit_codes,
    lean_start,
)
from keras_transformer.commands.options import (
    BeamSize,
    CoveragePenalty,
    ExtraLength,
    LengthPenalty,
    MaxLength,
    MinLength,
    NoRepeatNgramSize,
    RepetitionPenalty,
    RunPath,
    Seed,
    TargetPrefix,
    Temperature,
    TopK,
    TopP,
    or_of_run,
)
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.files import write_atomically
from keras_transformer.parsing.run import tree_search
from keras_transformer.parsing.written import parsed_sentences
from keras_transformer.run_folder import RunFolder


def explain(
    context: typer.Context,
    run: RunPath,
    sentence: Annotated[str, typer.Argument(help="What to translate.")],
    to: Annotated[pathlib.Path, typer.Option(help="Where to write the page, for example page.html.")],
    beam_size: BeamSize = SearchOptions.beam_size,
    length_penalty: LengthPenalty = SearchOptions.length_penalty,
    coverage_penalty: CoveragePenalty = SearchOptions.coverage_penalty,
    extra_length: ExtraLength = SearchOptions.extra_length,
    n_best: Annotated[int, typer.Option(help="Different translations to show, at most.")] = SearchOptions.beam_size,
    min_length: MinLength = SearchOptions.min_length,
    max_length: MaxLength = SearchOptions.max_length,
    no_repeat_ngram_size: NoRepeatNgramSize = SearchOptions.no_repeat_ngram_size,
    repetition_penalty: RepetitionPenalty = SearchOptions.repetition_penalty,
    temperature: Temperature = SearchOptions.temperature,
    top_k: TopK = SearchOptions.top_k,
    top_p: TopP = SearchOptions.top_p,
    seed: Seed = SearchOptions.seed,
    target_prefix: TargetPrefix = "",
):
    """Write a page that shows how a sentence is translated, as one file that needs no server and no network.

    It has the translations with the probability of each token, the attention of every head, and the beam as a tree.
    A run that was trained on a treebank reads words and searches as in `translate`.
    """
    with exit_codes():
        of_trees = tree_search(run)
        search = {
            "beam_size": beam_size, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
            "extra_length": extra_length,
        }  # fmt: skip
        search = or_of_run(context, search, of_trees)
        options = SearchOptions(
            **search, n_best=min(n_best, search["beam_size"]), min_length=min_length, max_length=max_length,
            no_repeat_ngram_size=no_repeat_ngram_size, repetition_penalty=repetition_penalty, temperature=temperature,
            top_k=top_k, top_p=top_p, seed=seed,
        )  # fmt: skip
        RunFolder(run).check_spared("--to", to)
        if of_trees is not None:
            [sentence] = parsed_sentences([sentence])
        with lean_start():
            from keras_transformer.explainer import Explainer
            from keras_transformer.page import page
            from keras_transformer.parallel import tune_for_translation

        tune_for_translation()
        explanation = dataclasses.asdict(Explainer.load(run, options).explain(sentence, target_prefix))
        write_atomically(to, page({"model": run.resolve().name, "explanation": explanation}))
        print(to)
