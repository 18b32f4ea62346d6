"""Texts of many sentences: taken apart, translated, and put together with their own spaces and line breaks."""

import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.batching import why_no_text
from keras_transformer.pieces.languages import check_code
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.fitting import fitting
from keras_transformer.text.marks import taken_apart
from keras_transformer.text.messages import is_sentence, lost, parts_of_line, pieces_of, written
from keras_transformer.text.passages import Line, Passage, Token
from keras_transformer.text.sentences import Span, require_sentencex, sentences_of

LONGEST_SHOWN = 60  # characters of a branch in the log

log = logging.getLogger("keras_transformer")


class Sentence(NamedTuple):
    """A sentence of a document, or a part of one that was too long: text[source_start:source_end] became
    translation[target_start:target_end]. `translation` has its score, and whether it was cut.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    translation: Translation


class Document(NamedTuple):
    """The translation of a text, and its sentences in their order."""

    text: str
    sentences: list[Sentence]


@dataclasses.dataclass(frozen=True)
class DocumentTranslator:
    """Translates texts sentence by sentence, whatever translates the sentences.

    translate: returns the translation of each line; of `prefixes`, with which translations begin, one per line, only if
    a document is asked for with one. language: the code of the language of the texts, such as "de", for
    its abbreviations and ends of sentences. are_too_long: returns of each line whether it is longer than the model
    takes, so that it is split; None: not known. reads_marks: whether `translate` puts the signs of marks.py, one for
    each tag inside of a sentence, around the words of the translation.

    Raises UserError if sentencex is not installed, or if `language` is no code of a language.
    """

    translate: Callable[..., Sequence[Translation]]
    language: str = "en"
    are_too_long: Callable[[list[str]], Sequence[bool]] | None = None
    reads_marks: bool = False

    def __post_init__(self):
        require_sentencex()
        check_code(self.language)

    def document(self, text: str, prefix: str = "") -> Document:
        """Return the translation of a text, whose first sentence begins with `prefix`."""
        [document] = self.documents([Passage([Token(text, text)])], prefix)
        return document

    def documents(self, passages: Iterable[Passage], prefix: str = "") -> list[Document]:
        """Return the translation of each passage as it is written there; all their sentences are translated at once.

        The translation of the first sentence of all begins with `prefix`.

        `source_start` and `source_end` are places in the `text` of a passage, those of targets in how it is written.
        Raises InputError for a text with half of a character.
        """
        passages = list(passages)
        inner = [text for passage in passages for text in passage.inner]  # in attributes, say
        for passage in [*passages, *inner]:
            if why := why_no_text(passage.text, "The text"):
                raise InputError(why)
        spans = [self.spans(passage) for passage in [*passages, *inner]]
        lines = [self._lines(*each) for each in zip([*passages, *inner], spans, strict=True)]
        asked = [line.with_signs if self.reads_marks else line.text for line in itertools.chain(*lines)]
        begins = {"prefixes": [prefix, *[""] * (len(asked) - 1)]} if prefix and asked else {}
        translations = iter(self.translate(asked, **begins))
        each_has = [list(itertools.islice(translations, len(of_passage))) for of_passage in lines]
        count = len(passages)
        inner_texts = iter(
            [
                self._document(*each).text
                for each in zip(inner, spans[count:], lines[count:], each_has[count:], strict=True)
            ]
        )
        for number, passage in enumerate(passages):
            if passage.inner:
                passages[number] = passage.with_inner(inner_texts)
                lines[number] = self._lines(passages[number], spans[number])
        outer = zip(passages, spans[:count], lines[:count], each_has[:count], strict=True)
        return [self._document(*each) for each in outer]

    def _lines(self, passage: Passage, spans: Iterable[Span]) -> list[Line]:
        return [passage.line(*span, with_pairs=self.reads_marks) for span in spans]

    def _document(
        self, passage: Passage, spans: Sequence[Span], lines: Sequence[Line], translations: Sequence[Translation]
    ) -> Document:
        """Return a passage with the translations of its lines in their place."""
        parts, sentences, reached, length = [], [], 0, 0
        for (start, end), line, translation in zip(spans, lines, translations, strict=True):
            text, places = taken_apart(translation.text) if self.reads_marks else (translation.text, {})
            translation, text = translation._replace(text=text), on_one_line(text, line.text)
            if is_branch(passage.text, start) and (missing := lost(line.text, text)):
                log.warning(
                    "%s: the branch %r of a message stays untranslated, since its translation has not as many of %s",
                    *(passage.where, line.text[:LONGEST_SHOWN], ", ".join(missing)),
                )
                text = line.text
            between = passage.raw[reached : line.raw_start]
            target = passage.rendered(line, text, places)
            parts += [between, target]
            reached, begin = line.raw_end, length + len(between)
            length = begin + len(target)
            sentences.append(Sentence(start, end, begin, length, translation))
        return Document("".join([*parts, passage.raw[reached:]]), sentences)

    def spans(self, passage: Passage) -> list[Span]:
        """Return where the sentences of a passage are, those that are too long in parts."""
        spans = [part for span in sentences_of(passage.text, self.language) for part in branches(passage, span)]
        are_too_long = self.are_too_long
        if are_too_long is None or not spans:
            return spans

        def parts_too_long(parts: list[Span]) -> Sequence[bool]:
            lines = [passage.line(*part).text for part in parts]
            return [is_long and not pieces_of(line) for line, is_long in zip(lines, are_too_long(lines), strict=True)]

        return fitting(passage.text, spans, parts_too_long)


def branches(passage: Passage, span: Span) -> Iterator[Span]:
    """Yield a sentence, or the texts of its ICU message if it has marks: these then stay where they are in the message.

    What has no letter is no text.
    """
    start, end = span
    parts = parts_of_line(passage.text[start:end]) if passage.has_marks(start, end) else ()
    if len(parts) < 2:
        yield span
        return
    for piece in written(parts):
        if is_sentence(piece) and any(map(str.isalpha, piece)):
            yield start, start + len(piece)
        start += len(piece)


def is_branch(text: str, start: int) -> bool:
    """Return whether text[start:] begins with the text of a branch of an ICU message."""
    return text[max(start - 2, 0) : start].rstrip().endswith("{")


def on_one_line(translation: str, line: str) -> str:
    """Return a translation without line breaks and spaces at its ends, so that those of the text stay the only ones."""
    return translation if translation == line else translation.replace("\n", " ").strip()
