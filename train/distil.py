"""`python -m train.distil RUN`: of a model's translations of a text, those nearest to the references, or all of them.

The nearest are chosen as in sequence-level interpolation (Kim and Rush 2016, section 3.3), where they replace the
references. A model that is trained on them beside the real pairs learns from references and from another model at once.
All of them, each with its score, are the candidates of minimum risk training (Shen et al. 2016).
"""

from keras_transformer.signals import end_on_signals

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

from keras_transformer.batching import BATCH_SIZE
from keras_transformer.config import SearchOptions
from keras_transformer.console import (
    BATCHES_AT_ONCE,
    command_app,
    exit_codes,
    on_one_line,
    prepare_process,
    quiet_start,
)
from keras_transformer.files import sha256_of, write_atomically
from keras_transformer.options import BatchSize, LengthPenalty, Precision, RunPath
from keras_transformer.parsing.run import check_writes_text
from keras_transformer.run_folder import RunFolder
from train.config import load_config
from train.data.candidates import Scored, line_of
from train.data.files import aligned_pairs, check_sides
from train.evaluation.output_files import check_not_read, check_plain_text, check_writable
from train.evaluation.unfinished import Unfinished

log = logging.getLogger("train")
app = command_app()


@app.command()
def main(
    run: RunPath,
    source: Annotated[
        pathlib.Path, typer.Option(metavar="FILE", help="Sentences to translate, one per line; .gz is unpacked.")
    ],
    reference: Annotated[
        pathlib.Path, typer.Option(metavar="FILE", help="Their reference translations, line by line.")
    ],
    output: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="Write the translations to this file.")],
    every_candidate: Annotated[
        bool,
        typer.Option(
            "--every-candidate", help="Write every translation with its sentence BLEU, as data.candidates reads them."
        ),
    ] = False,
    beam_size: Annotated[
        int, typer.Option(help="Translations of a sentence to choose from; 1 takes what the model says.")
    ] = 8,
    length_penalty: LengthPenalty = SearchOptions.length_penalty,
    batch_size: BatchSize = BATCH_SIZE,
    precision: Precision = "float32",
):
    """Translate a training text with a trained run, and of each beam write the translation nearest to the reference.

    Nearest is what has the highest sentence BLEU (Kim and Rush 2016, section 3.3), of lower-cased references if the run
    writes lower case. One line per sentence: the output is the target side of a further entry of data.train, whose
    source side is --source. With --every-candidate a line is a JSON object that has them all, and the output is
    data.candidates. If the command is stopped, the same one goes on where it was.
    """
    prepare_process(is_long=True)
    with exit_codes():
        check_files(run, source, reference, output)
        pairs = aligned_pairs(source, reference)
        options = SearchOptions(beam_size=beam_size, n_best=beam_size, length_penalty=length_penalty)
        with quiet_start():
            from keras_transformer.parallel import tune_for_translation
            from keras_transformer.translator import Translator

        tune_for_translation()
        translator = Translator.load(run, options, batch_size=batch_size, precision=precision)

        def candidates_of(lines: Sequence[str], first_line: int) -> list[list[str]]:
            translated = translator.translate_n_best(lines, first_line)
            return [[on_one_line(one.text) for one in translations] for translations in translated]

        references = translator.tokenizer.restored([reference for _, reference in pairs])
        compared = [(source, reference) for (source, _), reference in zip(pairs, references, strict=True)]
        weights = sha256_of(RunFolder(run).weights)
        text = hashlib.sha256(json.dumps(compared).encode()).hexdigest()
        language = target_language(run)
        search = {"beam_size": beam_size, "length_penalty": length_penalty, "precision": precision}
        decisive = {"weights": weights, "text": text, "language": language, **search}
        if every_candidate:
            decisive["every_candidate"] = True
        with contextlib.closing(Unfinished(output, decisive)) as work:
            found = distil(compared, candidates_of, BATCHES_AT_ONCE * batch_size, work, language, every_candidate)
            lines = map(line_of, *zip(*pairs, strict=True), found) if every_candidate else found
            write_atomically(output, "".join(f"{line}\n" for line in lines))
            work.finish()


def check_files(run: pathlib.Path, source: pathlib.Path, reference: pathlib.Path, output: pathlib.Path) -> None:
    """Raises ConfigError for a run that writes trees, files that are the same, or an output that cannot be written."""
    check_writes_text(run, "Distil with a run that translates text.")
    check_sides(source, reference)
    check_not_read("--output", output, (source, reference))
    check_plain_text("--output", output)
    check_writable("--output", output)


def distil(
    pairs: Sequence[tuple[str, str]],
    candidates_of: Callable[[Sequence[str], int], list[list[str]]],
    at_once: int,
    work: Unfinished,
    language: str = "",
    every_candidate: bool = False,
) -> list:
    """Return of each pair the translation of its source that is nearest to its target, and log how near they are.

    candidates_of: translates source sentences, given with the number of the first one, counted from 1; the most
    probable translation of each comes first. It gets `at_once` sentences at a time. work: keeps of each sentence the
    most probable and the nearest translation, or all. language: of the translations, which decides what a word is.
    every_candidate: return all translations of each source as lists of Scored, the most probable first.
    """
    for start in range(len(work.results), len(pairs), at_once):
        part = pairs[start : start + at_once]
        found = candidates_of([source for source, _ in part], start + 1)
        scored = [scored_by(texts, reference, language) for texts, (_, reference) in zip(found, part, strict=True)]
        work.add(scored if every_candidate else [[one[0].text, nearest(one).text] for one in scored])
        log.info("%s of %s sentences", f"{len(work.results):,}", f"{len(pairs):,}")
    results = [[Scored(*one) for one in scored] for scored in work.results] if every_candidate else work.results
    probable = [scored[0].text for scored in results] if every_candidate else [texts[0] for texts in results]
    chosen = [nearest(scored).text for scored in results] if every_candidate else [texts[1] for texts in results]
    log_bleu(probable, chosen, [reference for _, reference in pairs], language)
    return results if every_candidate else chosen


def log_bleu(probable: list[str], chosen: list[str], references: list[str], language: str) -> None:
    """Log how near the most probable translations and the chosen ones are to the references."""
    from keras_transformer.inspection.bleu import raw_bleu, score_by

    for name, texts in (("the most probable", probable), ("the nearest", chosen)):
        same = sum(text == reference for text, reference in zip(texts, references, strict=True))
        bleu = score_by(raw_bleu(language), texts, references)
        log.info("%s translations: BLEU %s, %s of them the reference; %s", name, bleu, f"{same:,}", bleu.note)


def scored_by(candidates: Sequence[str], reference: str, language: str = "") -> list[Scored]:
    """Return each candidate with its sentence BLEU."""
    import sacrebleu

    from keras_transformer.inspection.bleu import tokenizer_of

    tokenizer = tokenizer_of(language)
    return [Scored(text, sacrebleu.sentence_bleu(text, [reference], tokenize=tokenizer).score) for text in candidates]


def nearest(candidates: Sequence[Scored]) -> Scored:
    """Return the candidate with the highest score, of equal ones the first."""
    return max(candidates, key=lambda candidate: candidate.score)


def target_language(run: pathlib.Path) -> str:
    """Return the language that a run translates into; "" if it has no config.toml, as a run of examples/fit.py."""
    path = RunFolder(run).config
    return load_config(path).data.target_language if path.exists() else ""


if __name__ == "__main__":
    app()
