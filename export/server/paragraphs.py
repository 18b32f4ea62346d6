"""Requests for whole texts: with `"paragraphs": true` a line is a text, which is translated sentence by sentence.

With `"format": "html"` it is a web page, or a part of one, and so for the other formats of files that need no more.

These inputs and this output are those of the local server, and not of TensorFlow Serving, which runs the graph alone.
"""

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.languages import check_code, short_code
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.scores import NEVER
from keras_transformer.text.documents import Document, DocumentTranslator
from keras_transformer.text.formats import FORMATS, PACKED, WITH_FIELDS, parts_of_format
from keras_transformer.text.formats.parts import PLAIN, Field, Part, TranslatedError, bytes_of
from keras_transformer.text.sentences import require_sentencex, sentences_of

from ..graph.request import FORBIDDEN, PREFIX, REQUIRED
from .errors import invalid
from .protection import MARKS, OF_PHRASES, PROTECT
from .signature import Arrays, Signature, Tensor

PARAGRAPHS, LANGUAGE, FORMAT, OUTPUT_LANGUAGE = "paragraphs", "language", "format", "output_language"
OF_TEXTS = (PARAGRAPHS, LANGUAGE, FORMAT, OUTPUT_LANGUAGE)  # inputs that the graph does not have
TEXT = "text"  # the format of a text without markup
KNOWN_FORMATS = tuple(name for name in FORMATS if name not in WITH_FIELDS)
SPANS = "spans"  # an output: of each sentence where it begins and ends in the text, and its translation in the other
TEXTS, TRUNCATED = "translations", "truncated"  # outputs of the graph
N_BEST = "n_best"  # an input of the graph
# Inputs with which a search ends at once
BRIEFEST: dict[str, Any] = dict.fromkeys(("beam_size", "min_length", "max_length", N_BEST), 1)
BRIEFEST |= {"require_numbers": 0, PREFIX.name: b"", FORBIDDEN.name: b""}
MOST_SENTENCES = 1000  # of a line
ROWS_AT_ONCE = 32  # sentences

Compute = Callable[[tuple[str, ...], Arrays], Arrays]


def with_paragraphs(signature: Signature) -> Signature:
    """Return the signature `translate` of a graph with OF_TEXTS and SPANS; another signature as it is."""
    if signature.name != "translate" or not {TEXTS, TRUNCATED} <= set(signature.outputs):
        return signature
    return signature._replace(
        inputs=signature.inputs
        | {PARAGRAPHS: Tensor("", tf.bool, (None,))}
        | dict.fromkeys((LANGUAGE, FORMAT, OUTPUT_LANGUAGE), Tensor("", tf.string, (None,))),
        outputs=signature.outputs | {SPANS: Tensor("", tf.string, (None,))},
        defaults=signature.defaults
        | {PARAGRAPHS: np.array([False]), LANGUAGE: np.array([b"en"], object)}
        | {FORMAT: np.array([TEXT.encode()], object), OUTPUT_LANGUAGE: np.array([b""], object)},
    )


def as_text_inputs(texts: list[bytes]) -> Arrays:
    """Return the inputs by which lines are whole texts."""
    return {"text": as_array(texts), PARAGRAPHS: np.array([True])}


def has_spans(names: tuple[str, ...], inputs: Arrays, is_named: bool) -> tuple[str, ...]:
    """Return the outputs that are answered: SPANS only if it is named, or a line is a text."""
    is_asked = PARAGRAPHS in inputs and bool(inputs[PARAGRAPHS].any())
    return names if is_named or is_asked else tuple(name for name in names if name != SPANS)


def lines_in(inputs: Arrays) -> list[str]:
    """Return the lines of a request, of a text its sentences, before those that are too long are split.

    Raises RequestError for a language or a format that there is not, for a text that is not of its format, and if no
    package is installed that finds sentences.
    """
    texts = inputs["text"].tolist()
    if PARAGRAPHS not in inputs or not inputs[PARAGRAPHS].any():
        return [text.decode(errors="replace") for text in texts]
    wide = (np.broadcast_to(inputs[name], len(texts)).tolist() for name in OF_TEXTS)
    lines: list[str] = []
    try:
        require_sentencex()
        for text, is_text, *of_text in zip(texts, *wide, strict=True):
            if is_text:
                lines += sentences_in_text(text, *(value.decode(errors="replace") for value in of_text))
            else:
                lines.append(text.decode(errors="replace"))
    except UnicodeDecodeError:
        raise invalid("A text is not UTF-8.") from None
    except UserError as error:
        raise invalid(str(error)) from None
    return lines


def sentences_in_text(text: bytes, language: str, format: str, output_language: str) -> list[str]:
    """Return the sentences of a text of a format. Raises UserError, or UnicodeDecodeError."""
    check_code(language)
    if output_language:
        check_code(output_language)
    texts = [part.passage.text for part in parts_of(text, format, output_language) if isinstance(part, Field)]
    return [each[slice(*span)] for each in texts for span in sentences_of(each, language)]


def parts_of(text: bytes, format: str, language: str = "") -> list[Part]:
    """Return what a text of a format consists of. Raises UserError, or UnicodeDecodeError.

    language: that of the translation, if it is known, which a file then tells, and whose forms of numbers it has.
    """
    if format == TEXT:
        return [Field(PLAIN.passage(text.decode()))]
    if format not in KNOWN_FORMATS:
        raise UserError(f"{FORMAT} is {format!r:.60}; it may be {', '.join(KNOWN_FORMATS)}.")
    parts: list[Part] = []
    with contextlib.suppress(TranslatedError):  # an element that is not closed is in the answer as it is here
        parts.extend(parts_of_format(format, io.BytesIO(text), "The text", (), language))
    return parts


def run_paragraphs(compute: Compute, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
    """Return the outputs of a batch of lines, some of which are texts.

    compute: from names of outputs, and the other inputs, to these outputs. The translation of some rank of a text has
    the one of that rank of each sentence, or its best one: its score is the mean of those of its sentences, its
    log-probability their sum; OF_PHRASES are those of all; what concerns pieces is empty. PREFIX begins its first
    sentence. Raises RequestError for a text of too many sentences, or with `required`.
    """
    rows = len(inputs["text"])
    wide = {name: np.repeat(values, rows) if len(values) == 1 else values for name, values in inputs.items()}
    is_text, *of_texts = (wide.pop(name) for name in OF_TEXTS)
    if REQUIRED.name in wide and any(wide[REQUIRED.name][is_text]):
        raise invalid("required is for sentences, and paragraphs is true: send sentences as lines, each with its own.")
    names, answers = tuple(name for name in outputs if name != SPANS), [{}] * rows
    lines = np.flatnonzero(~is_text)
    if len(lines):
        found = compute(names, {name: values[lines] for name, values in wide.items()})
        for place, row in enumerate(lines):
            answers[row] = {name: values[place] for name, values in found.items()} | {SPANS: b""}
    for row in np.flatnonzero(is_text):
        of_row = {name: values[[row]] for name, values in wide.items()}
        answers[row] = answer_of(compute, names, of_row, *(column[row].decode(errors="replace") for column in of_texts))
    return {name: as_array([answer[name] for answer in answers]) for name in outputs}


def as_array(values: list) -> np.ndarray:
    """Return values of one shape as an array; texts are bytes."""
    if not isinstance(values[0], bytes):
        return np.stack(values)
    array = np.empty(len(values), object)
    array[:] = values
    return array


class Sentences:
    """The sentences of a text through the graph: each is computed once, at most MOST_SENTENCES in all.

    inputs: of the text, of one row. has_marks: whether its lines have signs of marks. used: the outputs of the
    sentences of a translation, for each rank that was asked for.
    """

    def __init__(self, compute: Compute, names: tuple[str, ...], inputs: Arrays, has_marks: bool):
        self._compute, self._names = compute, tuple(dict.fromkeys([*names, TEXTS, TRUNCATED]))
        self._inputs, self._has_marks = inputs, has_marks
        self._known: dict[tuple[str, str], dict[str, Any]] = {}  # the outputs of each sentence with its prefix
        self._too_long: dict[str, bool] = {}
        self.used: list[list[dict[str, Any]]] = []

    def outputs_of(self, lines: list[str], prefixes: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the outputs of each sentence. Raises RequestError if there are too many."""
        pairs = list(zip(lines, prefixes or [""] * len(lines), strict=True))
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if len(self._known) + len(new) > MOST_SENTENCES:
            raise invalid(f"A text has more than {MOST_SENTENCES} sentences, the most here: send it in parts.")
        inputs = self._inputs | ({MARKS: np.array([True])} if self._has_marks else {})
        of_pairs = ("text", PREFIX.name)[: 1 + (PREFIX.name in inputs)]
        columns = dict(zip(of_pairs, zip(*new, strict=True), strict=False))
        self._known.update(zip(new, self._rows(self._names, inputs, columns), strict=True))
        return [self._known[pair] for pair in pairs]

    def are_too_long(self, lines: list[str]) -> list[bool]:
        """Return of each line whether it is longer than the graph reads."""
        if not self._has_marks:
            return [bool(of_line[TRUNCATED]) for of_line in self.outputs_of(lines)]
        new = [line for line in dict.fromkeys(lines) if line not in self._too_long]  # in outputs_of they have signs
        briefest = {n: np.array([value], self._inputs[n].dtype) for n, value in BRIEFEST.items() if n in self._inputs}
        found = self._rows((TRUNCATED,), self._inputs | briefest, {"text": new})
        self._too_long.update((line, bool(outputs[TRUNCATED])) for line, outputs in zip(new, found, strict=True))
        return [self._too_long[line] for line in lines]

    def translate(self, lines: list[str], prefixes: Sequence[str] | None = None) -> list[Translation]:
        """Return the best translation of each sentence the first time, then the second one, and so on."""
        self.used.append([of_rank(of_line, len(self.used)) for of_line in self.outputs_of(lines, prefixes)])
        return [Translation(first(of_line[TEXTS]).decode(), 0.0) for of_line in self.used[-1]]

    def _rows(
        self, names: tuple[str, ...], inputs: Arrays, columns: Mapping[str, Sequence[str]]
    ) -> Iterator[dict[str, Any]]:
        """Yield outputs row by row. inputs: of all rows; columns: texts of each, computed ROWS_AT_ONCE."""
        for start in range(0, len(columns.get("text", ())), ROWS_AT_ONCE):
            part = {
                name: as_array([text.encode() for text in column[start : start + ROWS_AT_ONCE]])
                for name, column in columns.items()
            }
            rows = len(part["text"])
            found = self._compute(names, {name: np.repeat(values, rows) for name, values in inputs.items()} | part)
            yield from ({name: values[row] for name, values in found.items()} for row in range(rows))


def answer_of(
    compute: Compute, names: tuple[str, ...], inputs: Arrays, language: str, format: str, output_language: str
) -> dict[str, Any]:
    """Return the outputs of one text, without the dimension of rows."""
    reads_marks = format != TEXT and PROTECT.name in inputs
    sentences = Sentences(compute, names, inputs, reads_marks)
    try:
        prefix = inputs.get(PREFIX.name, [b""])[0].decode()
        target = inputs.get("target_language", [b""])[0].decode(errors="replace")
        parts = parts_of(inputs["text"][0], format, output_language or short_code(target))
        passages = [part.passage for part in parts if isinstance(part, Field)]
        translator = DocumentTranslator(sentences.translate, language, sentences.are_too_long, reads_marks)
        ranked = [translator.documents(passages, prefix)]
        columns = len(np.atleast_1d(sentences.used[0][0][TEXTS])) if sentences.used[0] else 1
        for _ in range(1, min(int(inputs.get(N_BEST, [1])[0]), columns)):
            ranked.append(translator.documents(passages, prefix))
    except UnicodeDecodeError:
        raise invalid(f"The text, or its {PREFIX.name}, is not UTF-8.") from None
    except UserError as error:
        raise invalid(str(error)) from None
    rows = [of_line or sentences.outputs_of([""]) for of_line in sentences.used]
    answer = {name: joined(name, [of_line[name] for of_line in rows[0]]) for name in names}
    if TEXTS in names:
        packed = PACKED.get(format, bytes)
        texts = [packed(bytes_of(written(parts, documents))) for documents in ranked]
        answer[TEXTS] = with_first(answer[TEXTS], texts[0], b"")
        others = [rank for rank, text in enumerate(texts) if text not in texts[:rank]][1:]
        for place, rank in enumerate(others, start=1):
            for name in names:
                if np.ndim(answer[name]):
                    value = joined(name, [of_line[name] for of_line in rows[rank]])
                    answer[name][place] = texts[rank] if name == TEXTS else value[0]
    of_text = ranked[0][0].sentences if format == TEXT else ()  # places in the texts of a file are none in the file
    places = [place for sentence in of_text for place in sentence[:4]]
    return answer | {SPANS: " ".join(map(str, places)).encode()}


def of_rank(outputs: dict[str, Any], rank: int) -> dict[str, Any]:
    """Return the outputs of a line with those of its translation of a rank as the best one, if it has one."""
    is_there = np.ndim(outputs[TEXTS]) and rank < len(outputs[TEXTS]) and outputs[TEXTS][rank]
    if not rank or not is_there:
        return outputs
    return {name: np.roll(value, -rank, axis=0) if np.ndim(value) else value for name, value in outputs.items()}


def written(parts: list[Part], documents: list[Document]) -> str:
    """Return a text of a format with these translations of its fields."""
    texts = iter(documents)
    return "".join(part.laid_out(next(texts).text) if isinstance(part, Field) else part for part in parts)


def first(value: Any) -> Any:
    """Return the output of the best translation: outputs have one value, or one per rank."""
    return value[0] if np.ndim(value) else value


def with_first(value: Any, best: Any, rest: Any) -> Any:
    """Return an output of the shape of `value`, with `best` for the best translation and `rest` for the others."""
    if not np.ndim(value):
        return best if isinstance(best, bytes) else np.asarray(best, value.dtype)[()]
    result = np.full_like(value, rest)
    result[(0,) * value.ndim] = best
    return result


def joined(name: str, values: list[Any]) -> Any:
    """Return an output of a text from those of its sentences: whether of any, the sum or the mean."""
    best = [first(value) for value in values]
    if name in OF_PHRASES:
        return with_first(values[0], b"\n".join(filter(None, best)), b"")
    if isinstance(best[0], bytes):
        return with_first(values[0], b"", b"")
    if np.asarray(best).dtype == bool:
        return with_first(values[0], any(best), False)
    total = np.sum(best) if name == "log_probabilities" else np.mean(best)
    return with_first(values[0], total, NEVER if name in ("scores", "log_probabilities") else 0)
