"""`python -m train.evaluate RUN`: translate a test set with a trained run and score the translations.

TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import os
import pathlib
from typing import Annotated

import typer

from keras_transformer.batching import BATCH_SIZE
from keras_transformer.config import ConfigError, SearchOptions
from keras_transformer.console import command_app, exit_codes, on_one_line, prepare_process, quiet_start
from keras_transformer.options import BatchSize, BeamSize, LengthPenalty, Precision, RunPath
from keras_transformer.run_folder import RunFolder
from train.config import Data, load_config
from train.data.corpus import CorpusError

app = command_app()


@app.command()
def main(
    run: RunPath,
    source: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Sentences to translate, one per line; .gz is unpacked.")
    ] = None,
    reference: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Their reference translations, line by line.")
    ] = None,
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="BLEU of Moses-tokenised, lower-cased text instead of raw text.")
    ] = False,
    beam_size: BeamSize = SearchOptions.beam_size,
    length_penalty: LengthPenalty = SearchOptions.length_penalty,
    batch_size: BatchSize = BATCH_SIZE,
    precision: Precision = "float32",
    output: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Write the translations to this file.")
    ] = None,
):
    """Print BLEU and chrF with sacreBLEU's signatures, and the share of exact translations.

    Without --source and --reference: of the test set of the run's configuration (of its validation set if it has none).
    """
    prepare_process(is_long=True)
    with exit_codes():
        check_files(source, reference, output)
        options = SearchOptions(beam_size, length_penalty)
        with quiet_start():
            from keras_transformer.parallel import tune_for_translation
            from keras_transformer.translator import Translator
            from train.evaluation.validation import translate_and_score

        tune_for_translation()
        translator = Translator.load(run, options, batch_size=batch_size, precision=precision)
        data = load_config(RunFolder(run).config).data
        pairs = pairs_of_files(source, reference) if source else pairs_of_run(data)
        language = data.target_language if tokenised else None
        scores, samples = translate_and_score(translator, pairs, language)
        if output:
            write_lines(output, [sample.translation for sample in samples])
    print("\n".join(scores.lines()))


def check_files(source: pathlib.Path | None, reference: pathlib.Path | None, output: pathlib.Path | None) -> None:
    """Raises ConfigError now, not after the translation, for options that do not fit or an output without a folder."""
    if bool(source) != bool(reference):
        raise ConfigError("--source and --reference belong together: give both, or neither.")
    if source and source.resolve() == reference.resolve():
        raise ConfigError(f"--source and --reference are both {source}: name the file of each side.")
    if output and not output.parent.is_dir():
        raise ConfigError(f"--output {output} cannot be written: there is no folder {output.parent}. Create it first.")
    if output and (output.is_dir() or not os.access(output if output.exists() else output.parent, os.W_OK)):
        raise ConfigError(f"--output {output} cannot be written: it is a folder, or not writable.")


def pairs_of_run(data: Data) -> list[tuple[str, str]]:
    """The pairs of the test set, or of the validation set if there is none. Needs no training text."""
    from train.data.prepare import load_test_split

    return list(load_test_split(data))


def pairs_of_files(source: pathlib.Path, reference: pathlib.Path) -> list[tuple[str, str]]:
    """All lines, empty ones too, because a test set is scored as a whole. Raises CorpusError if there are none."""
    from train.data.files import read_aligned

    pairs = list(read_aligned(source, reference))
    if not pairs:
        raise CorpusError(f"{source} and {reference} are empty: there is nothing to score.")
    return pairs


def write_lines(path: pathlib.Path, texts: list[str]) -> None:
    """One line per text. Raises ConfigError if the file cannot be written."""
    try:
        path.write_text("".join(f"{on_one_line(text)}\n" for text in texts), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {path} cannot be written: {error.strerror}.") from None


if __name__ == "__main__":
    app()
