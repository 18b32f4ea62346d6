"""`keras-transformer explain RUN SENTENCE`: write a page that shows how a sentence is translated.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

import dataclasses
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import RunName, SearchArguments, TargetPrefix, takes_search_options
from keras_transformer.commands.runs import opened
from keras_transformer.ground.files import behind_links, resolved, write_atomically
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.models.hub import is_on_hub
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.outputs import outputs_of

app = command_app()


@app.command()
@takes_search_options(n_best=SearchOptions.beam_size)
def explain(
    run: RunName,
    sentence: Annotated[str, typer.Argument(help="What to translate.")],
    to: Annotated[pathlib.Path, typer.Option(help="Where to write the page, for example page.html.")],
    search: SearchArguments,
    target_prefix: TargetPrefix = "",
    source_language: Annotated[str, typer.Option(help="As --from of translate.", show_default="the only one")] = "",
    target_language: Annotated[str, typer.Option(help="As --to of translate.", show_default="the only one")] = "",
):
    """Write a page that shows how a run translates a sentence.

    It is one file that needs no server and no network. It has the translations with the probability of each token, the
    attention of every head, and the beam as a tree. What is left out is that of the run, as in `translate`; a run that
    was trained on a treebank reads words.
    """
    with exit_codes():
        folder = opened(run)
        outputs = outputs_of(folder)
        values = search.with_run_defaults(outputs.search)
        options = SearchOptions(**values | {"n_best": min(values["n_best"], values["beam_size"])})
        RunFolder(folder).refuse_own_file("--to", to)
        [sentence] = outputs.read([sentence])
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            from keras_transformer.page import page
            from keras_transformer.translation.explainer import Explainer
            from keras_transformer.translation.parallel import tune_for_translation

        tune_for_translation()
        name = run if is_on_hub(run) else resolved(folder).name
        explainer = Explainer.load(folder, options)
        explanation = dataclasses.asdict(explainer.explain(sentence, target_prefix, source_language, target_language))
        write_atomically(behind_links(to), page({"model": name, "explanation": explanation}))
        print(to)


main = program(app)
