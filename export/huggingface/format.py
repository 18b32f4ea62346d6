"""`--format huggingface`: a folder that transformers opens, with a model card."""

import dataclasses
import logging
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.signals import signals_raise
from keras_transformer.ground.files import resolved
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.runs.run_folder import RunFolder

from ..job import ExportJob
from ..versions import ExportError, refuse_existing, unfinished_version

log = logging.getLogger("export")


@dataclasses.dataclass(frozen=True)
class HuggingFace:
    """A model in a folder of its own, which must not exist yet, written without transformers and torch.

    Read back as `keras-transformer import` reads such folders, it must give the run's translations the run's scores.
    """

    license: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --format huggingface: the licence of the weights as the model card names it, for example "
            "cc-by-4.0.",
            show_default="left out",
        ),
    ] = None

    def export(self, job: ExportJob) -> pathlib.Path:
        if job.options.coverage_penalty:
            raise ExportError(
                f"The coverage penalty is {job.options.coverage_penalty}, and transformers searches without one: give "
                "--coverage-penalty 0, or --format saved_model."
            )
        job = job.without_shortlist()  # of which MarianMTModel knows nothing
        folder = resolved(job.folder)  # the end of a link, or ".", can be replaced
        refuse_existing(folder)
        with quiet_imports():
            from keras_transformer.translation.translator import Translator

            from .card import languages_of, model_card
            from .comparison import compare
            from .families import family_of
            from .settings import Beside
            from .weights import write_safetensors

        model, tokenizer = job.load_run()
        config = model.model_config
        family = family_of(config, job.languages)
        family.check(config, tokenizer)
        lines, run = job.lines(), RunFolder(job.run)
        translator = Translator(
            model, tokenizer, job.options, max_source_tokens=job.max_source_tokens, languages=job.languages
        )
        longest = translator.max_source_tokens
        with signals_raise(), unfinished_version(folder.parent) as unfinished:
            write_safetensors(unfinished / "model.safetensors", family.arrays(model, tokenizer, job.languages))
            family.write(Beside(config, tokenizer, job.languages, languages_of(run), job.options, longest, unfinished))
            card = model_card(folder.name, run, config, job.options, self.license, job.languages)
            (unfinished / "README.md").write_text(card, encoding="utf-8")
            if lines:
                log.info("written; comparing it with the run on %d lines", len(lines))
                print(compare(unfinished, model, translator, lines))
            return unfinished.rename(folder)
