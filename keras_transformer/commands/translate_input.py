"""What the commands that translate have in common: standard input or a file through an engine, and what is written."""

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_transformer.commands.console import CutLines, confidence_of, output_line, standard_output, translate_lines
from keras_transformer.commands.files import (
    LINES,
    TEXT,
    FileArguments,
    noted,
    road_of_files,
    road_of_lines,
    translate_files,
)
from keras_transformer.commands.options import TextArguments
from keras_transformer.commands.target_prefixes import RequiredPhrases, TargetPrefixes
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import on_one_line
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import Ask
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.road import Engine, refuse_beyond

log = logging.getLogger("keras_transformer")


class Written(NamedTuple):
    """How translations of lines are written: how many of each, and what stands before each."""

    n_best: int = 1
    scores: bool = False
    confidence: bool = False

    def check(self, text: TextArguments, files: FileArguments) -> None:
        """Raises ConfigError for options that are for lines, and for a prefix of what is not one text."""
        if files.format == LINES:
            return
        if self.n_best > 1 or self.scores or self.confidence or text.is_of_lines:
            raise ConfigError(
                "--n-best, --scores, --confidence, --target-prefixes, --require and --required are for lines: leave "
                "them out, or give --format lines."
            )
        if text.target_prefix and files.format != TEXT:
            raise ConfigError("--target-prefix is for lines and for --format text: leave it out.")

    def lines(self, translated: Sequence[Sequence[Translation]], first_line: int) -> list[str]:
        """Return what is written for the translations of lines, the first of which has this number."""
        if self.n_best == 1:
            return [output_line(best, self.scores, self.confidence) for [best] in translated]
        return [
            n_best_line(number, translation, self.confidence)
            for number, translations in enumerate(translated, first_line)
            for translation in translations
        ]


def n_best_line(number: int, translation: Translation, with_confidence: bool) -> str:
    """Return one of several translations of the line `number` as a line of output."""
    confidence = f" ||| {confidence_of(translation):.3f}" if with_confidence else ""
    return f"{number} ||| {on_one_line(translation.text)} ||| {translation.score:.4f}{confidence}\n"


def deciding(engine: Engine, samples: int, confidence: bool) -> Engine:
    """Return an engine that decides by minimum Bayes risk among so many samples; 0: the engine itself.

    Raises ConfigError if it does not draw, and if the confidence of translations is asked, which goes by their scores.
    """
    if not samples:
        return engine
    if confidence:
        raise ConfigError("--confidence goes by the score of a search, and --mbr decides by another: leave out one.")
    from keras_transformer.translation.minimum_bayes_risk import MinimumBayesRisk

    return MinimumBayesRisk(engine, samples)


def as_it_is(lines: Sequence[str], translations: Any, first_line: int) -> Any:
    return translations


class AskedText:
    """What the options of the text ask for, with their files open: so their mistakes are told before a model is loaded.

    Raises UserError for a file that makes no sense, and OSError for one that cannot be opened.
    """

    def __init__(self, text: TextArguments):
        self.text, self.protection = text, text.protection()
        self.prefixes = TargetPrefixes(text.target_prefix, text.target_prefixes)
        self.phrases = RequiredPhrases("\t".join(text.require), text.required)

    def described(self) -> dict[str, Any]:
        """What decides the output beside what is read line by line."""
        return {
            "target_prefix": self.text.target_prefix,
            "require": self.text.require,
            "languages": self.text.languages,
            "protection": [*self.protection.kinds, *map(str, self.protection.glossary.terms)],
            "forbidden": [*map(str, self.protection.forbidden.terms)],
        }


def check_languages(engine: Engine, text: TextArguments) -> None:
    """Raises ConfigError for a language that the model lacks or needs, before there is a line; a server tells none."""
    engine.told(Ask(**text.languages))
    if engine.languages != NO_LANGUAGES:
        engine.languages.chosen(text.source_language, text.target_language)


def translate_input(
    engine: Engine,
    asked: AskedText,
    files: FileArguments,
    written: Written,
    batch_size: int,
    work: Callable[[], dict[str, Any]],
    advice: str,
    *warnings: Callable[[], None],
    read: Callable[[list[str]], Sequence[str]] = list,
    through: Callable[..., Any] = as_it_is,
    is_live: bool = True,
) -> None:
    """Translate the input to the output.

    work: returns what decides the output beside the input and what is `asked`. advice: for translations that were cut.
    warnings: are called at the end. read, through: of lines as the engine reads them, and of its translations. is_live:
    whether a terminal may show a translation while it is written, which then goes `through` nothing.
    Raises ConfigError for what is not among the abilities of the engine, and for a language that its model lacks.
    """
    refuse_beyond(engine, asked.text.names)
    check_languages(engine, asked.text)
    files = files.of_languages(asked.text.source_language, asked.text.target_language)
    prefixes, phrases, protection = asked.prefixes, asked.phrases, asked.protection
    cut_lines = CutLines("line" if files.format == LINES else "sentence")
    is_live = is_live and files.is_plain and written == Written()

    def output_lines(lines: list[str], first_line: int) -> Iterable[str]:
        begins = prefixes.of_next(len(lines), first_line)
        musts = phrases.lists_of_next(len(lines), first_line)
        if is_live and len(lines) == 1 and standard_output().isatty():
            pieces = live(lines[0], first_line, begins[0] if begins else "", musts[0] if musts else ())
            return itertools.chain(map(on_one_line, pieces), ["\n"])
        found = engine.translate_n_best(read(lines), first_line, begins, protection, musts, **asked.text.languages)
        translated = through(lines, found, first_line)
        cut_lines.note(translated, first_line)
        return written.lines(translated, first_line)

    def live(line: str, number: int, prefix: str, required: Sequence[str]) -> Iterator[str]:
        best = yield from engine.translate_live(line, number, prefix, protection, required, **asked.text.languages)
        cut_lines.note([[best]], number)

    def checked(lines: Iterator[str]) -> Iterator[str]:
        return phrases.beside(prefixes.beside(lines, engine), engine)

    def described() -> dict[str, Any]:
        of_files = {"format": files.format, "fields": files.fields, "language": files.language}
        of_files |= files.of_format
        return work() | of_files | asked.described() | written._asdict()

    with cut_lines.warning(advice, *warnings):
        if files.is_plain:
            translate_lines(output_lines, batch_size, checked)
        elif files.format == LINES:
            road = road_of_lines(output_lines, checked, lambda: prefixes.last_read + phrases.last_read)
            translate_files(road, files, batch_size, described)
        else:
            with_marks = dataclasses.replace(protection, has_marks=True)
            of_sentences = functools.partial(engine.translate, protect=with_marks, **asked.text.languages)
            translate_sentences = noted(of_sentences, cut_lines)
            documents = DocumentTranslator(translate_sentences, files.language, engine.are_too_long, reads_marks=True)
            translate_files(road_of_files(files, documents, asked.text.target_prefix), files, batch_size, described)
