"""`keras-transformer calibrate RUN`: fit to validation text how sure a run's translations are.

TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import json
import logging
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import BatchSize, OutputLanguage, RunName, SourceLanguage
from keras_transformer.commands.runs import opened
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import sha256_of
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.language_marks import Codes
from keras_transformer.runs.confidence import Bin, expected_calibration_error, fitted, reliability, score_per_token
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.outputs import outputs_of

from .data.files import check_sides
from .scoring.tables import Table

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.pieces.translation import Translation
    from keras_transformer.translation.translator import Translator

FEW = 200  # sentences: a curve that is fitted to fewer says little

log = logging.getLogger("train")
app = command_app()


class Text(NamedTuple):
    """Sentences with references, and what they are called; and the languages of each, if the model is told them."""

    name: str
    pairs: list[tuple[str, str]]
    codes: Sequence[Codes] = ()

    def every_other(self, name: str, first: int) -> "Text":
        """Half of it, from the first one or the second."""
        return Text(name, self.pairs[first::2], self.codes[first::2])


@app.command()
def calibrate(
    run: RunName,
    source: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="Sentences to fit to in place of the validation text; .gz is unpacked."),
    ] = None,
    reference: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Their reference translations, line by line.")
    ] = None,
    least_chrf: Annotated[
        float, typer.Option(min=0, max=100, help="A translation with at least this sentence chrF is good.")
    ] = 60.0,
    batch_size: BatchSize = BATCH_SIZE,
    source_language: SourceLanguage = "",
    target_language: OutputLanguage = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
):
    """Fit to validation text how sure a run's translations are.

    Translates the validation text as `translate` does, writes calibration.json into the run folder, and prints how far
    confidences are to be trusted on the test set: of translations with a confidence of 0.9, nine in ten should be good.
    Without a test set, every other sentence is left out of the fit and measured in its place.

    `translate`, a Translator and exports then have a confidence for each translation.
    """
    with exit_codes():
        folder = RunFolder(opened(run))
        if source and reference:
            check_sides(source, reference)
        elif source or reference:
            raise ConfigError("--source and --reference belong together: give both, or neither.")
        outputs_of(folder.path).check_text("A confidence is of translations.")
        with quiet_imports():
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.translator import Translator

            from .scoring.scored_text import is_told

        languages = folder.inference().languages
        is_one_pair = bool(source or source_language or target_language) or not is_told(folder.path)
        if is_one_pair:
            languages = languages.by_default(source_language, target_language)
        fit, test = texts_of(folder.path, source, reference, has_codes=not is_one_pair)
        tune_for_translation()
        translator = Translator.load(folder.path, batch_size=batch_size, calibration=None, languages=languages)
        is_good, translations = judged(translator, fit, least_chrf)
        scores = [score_per_token(each.score, len(each.ids), translator.options) for each in translations]
        measure = f"sentence chrF of at least {least_chrf:g}"
        calibration = fitted(scores, is_good, measure, sha256_of(folder.weights))
        calibration.save(folder.calibration)
        tested, others = judged(translator, test, least_chrf)
        options = translator.options
        confidences = [calibration.confidence(each.score, len(each.ids), options) for each in others]
        rows = reliability(confidences, tested)
        result = {
            "run": run,
            "measure": measure,
            "fitted_on": {"name": fit.name, "sentences": len(is_good), "good": sum(is_good) / len(is_good)},
            "tested_on": {"name": test.name, "sentences": len(tested), "good": sum(tested) / len(tested)},
            "expected_calibration_error": expected_calibration_error(rows),
            "bins": [row.as_json() for row in rows],
        }
        print(json.dumps(result) if as_json else "\n".join([*lines_of(result, rows), str(folder.calibration)]))


def texts_of(
    run: pathlib.Path, source: pathlib.Path | None, reference: pathlib.Path | None, has_codes: bool = False
) -> tuple[Text, Text]:
    """The text to fit to and the one to measure on. Raises ConfigError if there is none.

    has_codes: of text of the configuration, whether the languages of each pair are those that it tells. With files, the
    text to measure on has them if the model was told them.
    """
    from .data.corpus import Split
    from .data.files import aligned_pairs
    from .data.prepare import load_corpus
    from .scoring.scored_text import codes_of, data_of_run, is_told, pairs_with_text

    data = data_of_run(run, has_files=source is not None)
    corpus = load_corpus(data.offline().model_copy(update={"clean": None})) if data else None  # rules of training text
    if source and reference:
        validation = Split(f"{source} and {reference}", lambda: iter(aligned_pairs(source, reference)))
    elif corpus:  # there is the one or the other, or data_of_run raises
        validation = corpus.validation

    def text_of(split: Split, has_codes: bool) -> Text:
        return Text(split.name, pairs_with_text(split), codes_of(split) if has_codes else ())

    text = text_of(validation, has_codes)
    if len(text.pairs) < FEW:
        log.warning("%s: %d pairs; a calibration on fewer than %d says little", text.name, len(text.pairs), FEW)
    if corpus and corpus.test:
        return text, text_of(corpus.test, has_codes or (source is not None and is_told(run)))
    if len(text.pairs) < 2:
        raise ConfigError(
            f"{validation.name} has one pair, and {run} has no test set: a calibration needs pairs to be fitted to and "
            "others to be measured on. Give --source and --reference with more."
        )
    return text.every_other(f"every other sentence of {text.name}", 0), text.every_other(
        f"the other sentences of {text.name}", 1
    )


def judged(translator: "Translator", text: Text, least_chrf: float) -> tuple[list[bool], list["Translation"]]:
    """Translate a text. Returns of each sentence whether its translation is good, and the translation."""
    import sacrebleu

    from keras_transformer.inspection.samples import translate_sources

    chrf = sacrebleu.metrics.CHRF()
    translations = translate_sources(translator, text.pairs, text.codes)
    references = translator.tokenizer.restored([reference for _, reference in text.pairs])
    scored = zip(translations, references, strict=True)
    return [chrf.sentence_score(each.text, [reference]).score >= least_chrf for each, reference in scored], translations


def lines_of(result: dict, rows: Sequence[Bin]) -> list[str]:
    """What a person reads."""
    fit, test = result["fitted_on"], result["tested_on"]
    cells = [
        (
            f"{row.low:.1f} to {row.high:.1f}",
            f"{row.sentences:,}",
            *(f"{value:.3f}" if row.sentences else "-" for value in (row.confidence, row.good)),
        )
        for row in rows
    ]
    error = result["expected_calibration_error"]
    title = f"On {test['name']}, {test['sentences']:,} sentences, {100 * test['good']:.1f} per cent of them good"
    return [
        f"good is a {result['measure']}",
        f"fitted to {fit['name']}: {fit['sentences']:,} sentences, {100 * fit['good']:.1f} per cent of them good",
        *Table(title, ("confidence", "sentences", "mean confidence", "share of good ones"), cells).lines(),
        f"expected calibration error {error:.3f}: the mean distance of the last two columns",
    ]


main = program(app, is_long=True)


if __name__ == "__main__":
    main()
