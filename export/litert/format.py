"""`--format litert`: the model and its beam search as one LiteRT file, with the tokenizer and a README.md."""

import dataclasses
import logging
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.signals import signals_raise
from keras_transformer.ground.files import resolved
from keras_transformer.ground.imports import quiet_imports

from ..job import ExportJob, Quantization
from ..versions import ExportError, refuse_existing, unfinished_version

log = logging.getLogger("export")

QUANTIZATIONS = (None, "int8")
LARGEST = 1_800_000_000  # bytes of weights: a file and a graph of TensorFlow have 2 GiB, with all else in them


@dataclasses.dataclass(frozen=True)
class LiteRT:
    """A model in a folder of its own, which must not exist yet.

    It must translate as the Translator does. If its weights are quantized, the difference is only printed.
    """

    quantization: Quantization = None
    constraints: Annotated[
        bool,
        typer.Option(
            "--constraints",
            help="With --format litert: the file has a search too whose translations begin with a text, have phrases, "
            "or do not have some.",
        ),
    ] = False

    def export(self, job: ExportJob) -> pathlib.Path:
        if self.quantization not in QUANTIZATIONS:
            raise ExportError(f"--quantization {self.quantization} does not exist; LiteRT models have int8.")
        folder = resolved(job.folder)  # the end of a link, or ".", can be replaced
        refuse_existing(folder)
        with quiet_imports():
            from keras_transformer.lite.interpreters import require_litert
            from keras_transformer.lite.translator import LiteTranslator

            from .write import compare, refuse_disagreement, write_model

        require_litert()  # before a minute of conversion
        transformer, tokenizer = job.load_run()
        refuse_too_large(transformer.count_params(), self.quantization)
        lines = job.lines()
        translator = job.translator(transformer, tokenizer)
        with signals_raise(), unfinished_version(folder.parent) as unfinished:
            write_model(transformer, translator, unfinished, folder.name, self.quantization, self.constraints)
            exported = LiteTranslator(unfinished)  # opens it, so that a file that LiteRT refuses is not published
            if lines:
                log.info("written; comparing it with the Translator on %d lines", len(lines))
                agreed = compare(exported, translator, lines)
                print(agreed)
                if not self.quantization:
                    refuse_disagreement(agreed)
            return unfinished.rename(folder)


def refuse_too_large(parameters: int, quantization: str | None) -> None:
    """Raise ExportError for so many parameters, whose conversion would fail after minutes."""
    size = parameters * (1 if quantization else 4)
    if size <= LARGEST:
        return
    smaller = "" if quantization or parameters > LARGEST else "give --quantization int8, or "
    raise ExportError(
        f"The model has {size / 1e9:.2f} GB of weights in {quantization or 'float32'}, and a LiteRT file has at most "
        f"{LARGEST / 1e9:.2f}: {smaller}export it as a SavedModel, without --format litert."
    )
