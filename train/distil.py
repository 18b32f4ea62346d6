"""`keras-transformer distil RUN`: of a model's translations of a text, those nearest to the references.

They are chosen as in sequence-level interpolation (Kim and Rush 2016, section 3.3), where they replace the references.
A model that is trained on them beside the real pairs learns from references and from another model at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import contextlib
import hashlib
import json
import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from keras_transformer.commands.console import BATCHES_AT_ONCE, CutLines, command_app, exit_codes, program
from keras_transformer.commands.options import (
    BatchSize,
    Ensemble,
    OutputLanguage,
    Precision,
    RunName,
    Samples,
    SearchArguments,
    SourceLanguage,
    takes_search_options,
)
from keras_transformer.commands.output_files import check_not_read, check_plain_text, check_replaced, check_writable
from keras_transformer.commands.runs import opened, sums_of
from keras_transformer.commands.translate_input import deciding
from keras_transformer.ground.files import behind_links, on_one_line, sha256_of, write_atomically
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.languages import tokenizer_of, warn_of_unspaced
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import ON, SearchOptions
from keras_transformer.translation.outputs import outputs_of

from .data.files import aligned_pairs, check_sides
from .loop.stopping import interrupted_by_signals
from .scoring.unfinished import Unfinished

NEAREST, DECIDED = ("most probable", "nearest"), ("chosen",)  # the last one is what is written

log = logging.getLogger("train")
app = command_app()


@app.command()
@takes_search_options("beam_size", "length_penalty", "length_normalization", "coverage_penalty", beam_size=8)
def write_nearest(
    run: RunName,
    source: Annotated[
        pathlib.Path, typer.Option(metavar="FILE", help="Sentences to translate, one per line; .gz is unpacked.")
    ],
    reference: Annotated[
        pathlib.Path, typer.Option(metavar="FILE", help="Their reference translations, line by line.")
    ],
    output: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="Write the chosen translations to this file.")],
    ensemble: Ensemble,
    search: SearchArguments,
    batch_size: BatchSize = BATCH_SIZE,
    precision: Precision = "float32",
    source_language: SourceLanguage = "",
    target_language: OutputLanguage = "",
    mbr: Samples = 0,
):
    """Write the translations nearest to the references of a text.

    Translates a training text with a trained run and chooses one translation from each beam. The nearest is what has
    the highest sentence BLEU (Kim and Rush 2016, section 3.3), of lower-cased references if the run writes lower case.
    With --mbr it is what minimum Bayes risk chooses, whatever the reference is.
    One line per sentence: the output is the target side of a further entry of data.train, whose source side is
    --source. If the command is stopped, it exits with code 75, and the same one goes on where it was.
    """
    with exit_codes():
        runs = [opened(name) for name in (run, *ensemble)]
        check_files(runs, source, reference, output)
        output, pairs = behind_links(output), aligned_pairs(source, reference)
        of_run = {name: value for name, value in outputs_of(runs[0]).search.items() if name != "beam_size"}
        values = search.with_run_defaults(of_run)  # the beam is that of this command: it chooses from many
        options = SearchOptions(**values, n_best=1 if mbr else values["beam_size"])
        languages = RunFolder(runs[0]).inference().languages.by_default(source_language, target_language)
        with quiet_imports():
            from keras_transformer.translation.parallel import tune_for_translation
            from keras_transformer.translation.translator import Translator

        tune_for_translation()
        translator = Translator.load(runs, options, batch_size=batch_size, precision=precision, languages=languages)
        engine = deciding(translator, mbr, confidence=False)

        def candidates_of(lines: Sequence[str], first_line: int) -> list[list[Translation]]:
            translated = engine.translate_n_best(lines, first_line)
            return [[each._replace(text=on_one_line(each.text)) for each in candidates] for candidates in translated]

        references = translator.tokenizer.restored([reference for _, reference in pairs])
        pairs = [(source, reference) for (source, _), reference in zip(pairs, references, strict=True)]
        weights = [sha256_of(RunFolder(path).weights) for path in runs]
        text = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
        language = languages.default_target or language_of(runs[0])
        description = {"weights": weights, "text": text, "language": language, "precision": precision, **values}
        if mbr:
            description["mbr"] = mbr
        if source_language or target_language:
            description["languages"] = [languages.default_source, languages.default_target]
        description |= sums_of(runs[0], options.shortlist == ON, calibration=False)
        work = Unfinished(output, description)
        stopped = f"Stopped. {work.path} has the translations so far: run the same command again to go on after them."
        with contextlib.closing(work), interrupted_by_signals(stopped):
            chosen = distil(
                pairs, candidates_of, BATCHES_AT_ONCE * batch_size, work, language, DECIDED if mbr else NEAREST
            )
            write_atomically(output, "".join(f"{text}\n" for text in chosen))
            work.finish()


def check_files(
    runs: Sequence[pathlib.Path], source: pathlib.Path, reference: pathlib.Path, output: pathlib.Path
) -> None:
    """Raises ConfigError for a run that writes trees, files that are the same, or an output that cannot be written."""
    for run in runs:
        outputs_of(run).check_text("Give a run that translates text.")
    check_sides(source, reference)
    check_not_read("--output", output, (source, reference, *runs))
    check_plain_text("--output", output)
    check_writable("--output", output)
    check_replaced("--output", output)


def distil(
    pairs: Sequence[tuple[str, str]],
    candidates_of: Callable[[Sequence[str], int], list[list[Translation]]],
    at_once: int,
    work: Unfinished,
    language: str = "",
    names: Sequence[str] = NEAREST,
) -> list[str]:
    """Return for each pair the translation of its source that is nearest to its target.

    Logs how near they are, and which of them their limit ended.

    candidates_of: translates source sentences, at most `at_once`, and gets the number of the first one, counted from
    1; it returns the translations of each, the most probable one first. work: keeps the most probable and the nearest
    translation of each sentence, and whether the nearest was cut, which results of older versions lack. language: of
    the translations, which decides what a word is. names: of the translations whose BLEU is logged.
    """
    from keras_transformer.inspection.bleu import raw_bleu, score_by

    warn_of_unspaced([reference for _, reference in pairs], language)
    for start in range(len(work.results), len(pairs), at_once):
        part = pairs[start : start + at_once]
        candidates_of_part, rows = candidates_of([source for source, _ in part], start + 1), []
        for candidates, (_, reference) in zip(candidates_of_part, part, strict=True):
            of_texts = {candidate.text: candidate for candidate in reversed(candidates)}
            best = of_texts[nearest([candidate.text for candidate in candidates], reference, language)]
            rows.append([candidates[0].text, best.text, bool(best.is_cut)])
        work.add(rows)
        log.info("%s of %s sentences", f"{len(work.results):,}", f"{len(pairs):,}")
    probable, chosen = ([texts[column] for texts in work.results] for column in (0, 1))
    references = [reference for _, reference in pairs]
    for name, texts in zip(names, (probable, chosen)[-len(names) :], strict=True):
        same = sum(text == reference for text, reference in zip(texts, references, strict=True))
        bleu = score_by(raw_bleu(language), texts, references)
        log.info("the %s translations: BLEU %s, %s of them the reference; %s", name, bleu, f"{same:,}", bleu.note)
    cut_lines = CutLines()
    cut_lines.numbers = [number for number, (_, _, *is_cut) in enumerate(work.results, 1) if any(is_cut)]
    cut_lines.warn("leave these lines of both sides out of a training text")
    return chosen


def nearest(candidates: Sequence[str], reference: str, language: str = "") -> str:
    """Return the candidate with the highest sentence BLEU, the first one of equals."""
    import sacrebleu

    tokenizer = tokenizer_of(language)
    return max(candidates, key=lambda text: sacrebleu.sentence_bleu(text, [reference], tokenize=tokenizer).score)


def language_of(run: pathlib.Path) -> str:
    """Return the language that a run translates into; "" if it has no config.toml, as a run of examples/fit.py."""
    from .config.recorded import load_recorded

    path = RunFolder(run).config
    return load_recorded(path).data.target_language if path.exists() else ""


main = program(app, is_long=True)


if __name__ == "__main__":
    main()
