"""What to export, whatever the format: a run, how it searches, and the sentences on which the export is compared."""

import dataclasses
import itertools
import pathlib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Protocol

import typer

from keras_transformer.ground.files import read_lines
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.confidence import calibration_of
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import OFF, SearchOptions

from .versions import ExportError

if TYPE_CHECKING:  # it takes seconds to import
    import keras

    from keras_transformer.pieces.tokenizer import Tokenizer
    from keras_transformer.shortlist.shortlist import Shortlist
    from keras_transformer.translation.translator import Translator

MOST_SENTENCES = 500  # to compare on

Quantization = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE", help="With --format ctranslate2 or litert: the type of its weights, for example int8."
    ),
]


class ExportJob(NamedTuple):
    """An export that the command line asks for.

    run: the run folder. folder: where the export is written. options: how it searches. max_source_tokens: longer
    sentences are truncated to this number of tokens. sentences: the file of source sentences on which the export is
    compared with the run; None: it is not compared. languages: of the model; whoever names none means its defaults.
    alignment: which attention of it aligns words.
    """

    run: pathlib.Path
    folder: pathlib.Path
    options: SearchOptions
    max_source_tokens: int
    sentences: pathlib.Path | None
    languages: Languages = NO_LANGUAGES
    alignment: AlignedBy = LAST_BUT_ONE

    def load_run(self) -> tuple["keras.Model", "Tokenizer"]:
        """Return the trained model and its tokenizer, ready for the comparison. Raises UserError if there is no run.

        GPUs then multiply float32 as such, and not in TF32, whose scores are too far from those of processors.
        """
        import tensorflow as tf

        from keras_transformer.runs.saved_run import load_run

        tf.config.experimental.enable_tensor_float_32_execution(False)
        return load_run(self.run)

    def load_shortlist(self) -> "Shortlist | None":
        """Return the shortlist of the run, if the search has one. Raises ConfigError if it is not there, or damaged."""
        from keras_transformer.shortlist.shortlist import shortlist_of

        return shortlist_of(RunFolder(self.run), self.options)

    def translator(self, model: "keras.Model", tokenizer: "Tokenizer", precision: str = "float32") -> "Translator":
        """Return what translates as the export shall. Raises ConfigError as `load_shortlist` does."""
        with quiet_imports():
            from keras_transformer.translation.translator import Translator

        return Translator(
            model,
            tokenizer,
            self.options,
            max_source_tokens=self.max_source_tokens,
            precision=precision,
            calibration=calibration_of(RunFolder(self.run)),
            shortlist=self.load_shortlist(),
            languages=self.languages,
            alignment=self.alignment,
        )

    def without_shortlist(self) -> "ExportJob":
        """Return the job for a format whose probabilities are over all pieces."""
        return self._replace(options=dataclasses.replace(self.options, shortlist=OFF))

    def lines(self) -> list[str]:
        """Return the sentences to compare on, none without a comparison. Raises ExportError if the file has none."""
        path = self.sentences
        if path is None:
            return []
        if not path.is_file():
            raise ExportError(
                f"There is no file {path} to compare the export on: give sentences with --check FILE, "
                "or publish without comparing with --no-check."
            )
        with path.open("rb") as stream:
            lines = list(itertools.islice(read_lines(stream, path), MOST_SENTENCES))
        if all(map(is_blank, lines)):
            raise ExportError(f"{path} has no sentence to compare the export on.")
        first = self.languages.source_first
        if first and self.languages.default(first):  # each line is told that language
            return [self.languages.untagged(line)[1] for line in lines]
        return lines


class Format(Protocol):
    """A format of exports: a dataclass whose fields are the options that this format adds to the command."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def export(self, job: ExportJob) -> pathlib.Path:
        """Write the export and compare it with the run. Return its path.

        Raises UserError if the run cannot be opened, if the export cannot be written, and if it does not compute what
        the run computes; then nothing is published.
        """
