"""`--format saved_model`: a numbered version that TensorFlow Serving serves, with a certificate."""

import dataclasses
import logging
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.options import Precision
from keras_transformer.commands.signals import signals_raise
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.versions import LITERT

from .job import ExportJob
from .versions import ExportError, publish, refuse_version, unfinished_version

log = logging.getLogger("export")


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """The next version in a folder of versions. It must translate as the Translator of the same precision does."""

    precision: Precision = "float32"
    alignment_layer: Annotated[
        int | None,
        typer.Option(
            help="The decoder block, counted from 1, whose attention aligns words in the signature translate.",
            show_default="what `align` has chosen, else the last but one",
        ),
    ] = None
    signatures: Annotated[
        list[str] | None,
        typer.Option(
            "--signature",
            metavar="NAME",
            help="Write this signature alone; repeat the option for several. serving_default alone loads sooner.",
            show_default="all five",
        ),
    ] = None

    litert: Annotated[
        bool,
        typer.Option(
            "--litert",
            help="Write a LiteRT model into the version too, with which the local server answers one sentence sooner.",
        ),
    ] = False

    def export(self, job: ExportJob) -> pathlib.Path:
        refuse_version(job.folder)
        with quiet_imports():
            from keras_transformer.lite.interpreters import require_litert
            from keras_transformer.translation.precision import in_precision

            from .certificate.certificate import certify, summary
            from .graph.operations import refuse_xla
            from .graph.served_graph import ServedGraph
            from .graph.version_folder import write_saved_model
            from .litert.write import write_model

        if self.litert and self.precision != "float32":
            raise ExportError(f"--litert is float32 and --precision is {self.precision}: leave one of them out.")
        if self.litert:
            require_litert()  # without it the local server answers by the graph alone, and nothing would be compared
        if self.alignment_layer is not None:
            job = job._replace(alignment=AlignedBy(self.alignment_layer))
        transformer, tokenizer = job.load_run()
        transformer = in_precision(transformer, self.precision)
        lines = job.lines()
        translator = job.translator(transformer, tokenizer, self.precision)
        with quiet_imports():  # the tokenizer prints a notice
            graph = ServedGraph(
                transformer,
                tokenizer,
                job.options,
                translator.max_source_tokens,
                job.alignment,
                translator.calibration,
                translator.shortlist,
                job.languages,
            )
        with signals_raise(), unfinished_version(job.folder) as unfinished:
            write_saved_model(graph, tokenizer, unfinished, tuple(self.signatures or ()))
            refuse_xla(unfinished)
            if self.litert:
                write_model(transformer, translator, unfinished / LITERT, job.folder.name, None, aligns=False)
            if lines:
                log.info("written; comparing each runtime with the Translator on %d lines", len(lines))
                run = RunFolder(job.run)
                print(summary(certify(unfinished, run, translator, lines, self.precision, graph.aligned_by)))
            return publish(unfinished)
