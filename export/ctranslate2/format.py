"""`--format ctranslate2`: a model folder for CTranslate2, with the tokenizer and a README.md."""

import dataclasses
import logging
import pathlib

from keras_transformer.commands.signals import signals_raise
from keras_transformer.ground.files import resolved
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.language_marks import NO_LANGUAGES, SOURCE, TARGET

from ..job import ExportJob, Quantization
from ..versions import ExportError, refuse_existing, unfinished_version

log = logging.getLogger("export")


@dataclasses.dataclass(frozen=True)
class CTranslate2:
    """A model in a folder of its own, which must not exist yet.

    It must give the translations of the Translator the same scores. If its weights are quantized, the difference is
    only printed.
    """

    quantization: Quantization = None

    def export(self, job: ExportJob) -> pathlib.Path:
        if job.options.coverage_penalty:
            raise ExportError(
                f"The coverage penalty is {job.options.coverage_penalty}, and the README.md of --format ctranslate2 "
                "searches without one: give --coverage-penalty 0, or --format saved_model."
            )
        if job.options.no_repeat_ngram_size or job.options.repetition_penalty != 1:
            raise ExportError(
                "The README.md of --format ctranslate2 searches without rules of repetition, which this run has: give "
                "--no-repeat-ngram-size 0 --repetition-penalty 1, or --format saved_model."
            )
        folder = resolved(job.folder)  # the end of a link, or ".", can be replaced
        refuse_existing(folder)
        with quiet_imports():
            from keras_transformer.translation.translator import Translator

            from . import convert

        convert.require(self.quantization)
        if job.languages.needs(SOURCE) or job.languages.needs(TARGET):
            raise ExportError(
                "This model is told languages by pieces at the ends of a sentence, which a user of --format "
                "ctranslate2 would have to put there: export it as saved_model or litert."
            )
        job = job._replace(languages=NO_LANGUAGES)  # the user's text begins with a tag
        transformer, tokenizer = job.load_run()
        shortlist, job = job.load_shortlist(), job.without_shortlist()  # scores are compared over all pieces
        lines = job.lines()
        translator = Translator(transformer, tokenizer, job.options, max_source_tokens=job.max_source_tokens)
        with signals_raise(), unfinished_version(folder.parent) as unfinished:
            convert.write_model(transformer, tokenizer, unfinished, self.quantization)
            if shortlist is not None:
                convert.write_vocabulary_map(shortlist, tokenizer, unfinished)
            convert.write_readme(unfinished, folder.name, translator, transformer.transformer_config)
            if lines:
                log.info("written; comparing it with the Translator on %d lines", len(lines))
                comparison = convert.compare_scores(unfinished, translator, lines)
                print(comparison)
                if not self.quantization:
                    comparison.refuse_beyond()
            return unfinished.rename(folder)
