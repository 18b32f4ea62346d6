"""What a request to the local server may ask beside the inputs of the graph: spans that must come through, and terms.

The graph translates the lines without their tags; from its alignments the spans are put back. So these inputs are
inputs of the local server, and not of TensorFlow Serving. A span may take the place of a phrase that the graph put
there, or bring one that must not come: the answer names it.
"""

import dataclasses
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import SPANS, Ask, phrases_of
from keras_transformer.text.forbidden import forbidden_phrases
from keras_transformer.text.glossary import FLAGS, Glossary
from keras_transformer.text.messages import pieces_of
from keras_transformer.text.placing import alignment_of
from keras_transformer.text.required import FROM_SOURCE
from keras_transformer.text.road import KEEP_LETTERLESS, Candidates, Engine, translate_sentences
from keras_transformer.text.spans import KINDS, Protection, bare, kinds_of

from ..graph.request import FORBIDDEN, REQUIRED, TEXT, Input
from .errors import invalid
from .signature import Arrays, Signature, Tensor

PROTECT = Input(
    "protect",
    "",
    tf.string,
    0,
    0,
    "",
    f"What comes through as it is, with commas in between: {', '.join(KINDS)}.",
    TEXT,
)
KEEP = Input("keep", "", tf.string, 0, 0, "", "Words that stay as they are, one per line.", TEXT)
GLOSSARY = Input(
    "glossary",
    "",
    tf.string,
    0,
    0,
    "",
    f"One term per line: the term, a tab, its translation, and flags after a second tab: {', '.join(FLAGS)}.",
    TEXT,
)
INPUTS = (PROTECT, KEEP, GLOSSARY)
MARKS = "has_marks"  # an input that no request names: whether a line has the signs of text/marks.py
UNPLACED = "unplaced"  # an output: spans and required phrases that are missing in a translation, one per line
REMAINING = "remaining"  # an output: forbidden phrases that are in a translation all the same, one per line
FORCED = "is_forced"  # an output of the graph: whether required phrases made a translation improbable
OF_PHRASES = (UNPLACED, REMAINING)
READ_FROM = ("translations", "alignments")  # outputs of the graph
MOST_KEPT, KEPT_BYTES = 12, 1 << 19  # Protections that were asked last, and bytes of what asked for them: see Kept
AS_IT_IS = "utf-8", "surrogateescape"  # what is no text is left to the graph

Compute = Callable[[tuple[str, ...], Arrays], Arrays]


def with_protection(signature: Signature) -> Signature:
    """Return the signature `translate` of a graph with INPUTS, UNPLACED and, if it has `forbidden`, REMAINING.

    Another signature is returned as it is.
    """
    if signature.name != "translate" or not set(READ_FROM) <= set(signature.outputs):
        return signature
    named = [UNPLACED, *([REMAINING] if FORBIDDEN.name in signature.inputs else [])]
    more = dict.fromkeys(named, Tensor("", tf.string, signature.outputs["alignments"].shape))
    return signature._replace(
        inputs=signature.inputs | {each.name: Tensor("", tf.string, (None,)) for each in INPUTS},
        outputs=signature.outputs | more,
        defaults=signature.defaults | {each.name: np.array([b""], object) for each in INPUTS},
    )


def answered(names: tuple[str, ...], inputs: Arrays, is_named: bool) -> tuple[str, ...]:
    """Return the outputs that are answered: UNPLACED, REMAINING and FORCED only if named, or if something is asked.

    UNPLACED is answered too if a line is an ICU message with branches, whose numbers and arguments are protected.
    """
    if is_named:
        return names
    of_spans, of_phrases = (each.name for each in INPUTS), (REQUIRED.name, *FROM_SOURCE)
    has_messages = "text" in inputs and any(
        b"{" in line and pieces_of(line.decode(*AS_IT_IS)) for line in inputs["text"]
    )
    idle = {UNPLACED} if not has_messages and not is_asked(inputs, *of_spans, *of_phrases) else set()
    idle |= {FORCED} if not is_asked(inputs, *of_phrases) else set()
    idle |= {REMAINING} if not is_asked(inputs, FORBIDDEN.name) else set()
    return tuple(name for name in names if name not in idle)


def is_asked(inputs: Arrays, *names: str) -> bool:
    return any(any(inputs[name].tolist()) for name in names if name in inputs)


class Traits(NamedTuple):
    """What a model does with protected text: how many placeholders it knows, and whether it aligns words."""

    placeholders: int = 0
    aligns: bool = True


class RequestEngine(Engine):
    """Computes the graph for a request, whose inputs but the text stay as they are.

    lines, found: what it computed, and its outputs.
    """

    abilities = SPANS | {REQUIRED.name, FORBIDDEN.name}

    def __init__(self, compute: Callable[[Arrays], Arrays], traits: Traits):
        self.compute, (self.placeholders, self.aligns) = compute, traits
        self.lines: list[str] = []
        self.found: Arrays = {}

    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        self.lines = lines
        self.found = self.compute({"text": as_array([line.encode(*AS_IT_IS) for line in lines])})
        columns = zip(*(self.found[name].tolist() for name in READ_FROM), strict=True)
        return [
            Candidates(
                [Translation(text.decode(*AS_IT_IS), 0.0) for text in texts],
                [alignment_of(alignment.decode()) for alignment in alignments],
            )
            for texts, alignments in columns
        ]

    def are_too_long(self, lines: list[str]) -> list[bool]:
        return [False] * len(lines)  # `run_paragraphs` asks the graph


def run_protected(
    compute: Compute, outputs: tuple[str, ...], inputs: Arrays, traits: Traits, branches: Collection[int] = ()
) -> Arrays:
    """Return the outputs of a batch of lines, with every span of each.

    branches: the numbers of the lines that are sentences of ICU messages. With MARKS all lines have them. compute: from
    names of outputs, and the inputs of the graph, to these outputs. In `pieces`, scores and `alignments` is what the
    model wrote. Raises RequestError for what makes no sense.
    """
    own = MARKS, *(each.name for each in INPUTS)
    of_graph = {name: values for name, values in inputs.items() if name not in own}
    wanted = tuple(dict.fromkeys([*(name for name in outputs if name not in OF_PHRASES), *READ_FROM]))
    engine = RequestEngine(lambda text: compute(wanted, of_graph | text), traits)
    keep_letterless = min(inputs.get(KEEP_LETTERLESS, ()), default=1)  # if a line does not, the graph does
    engine.options = {KEEP_LETTERLESS: keep_letterless}
    lines = [text.decode(*AS_IT_IS) for text in inputs["text"]]
    try:
        asks = [ask_of(*values) for values in of_rows(inputs, (REQUIRED, *INPUTS, FORBIDDEN))]
        if MARKS in inputs:
            asks = [ask._replace(protection=dataclasses.replace(ask.protection, has_marks=True)) for ask in asks]
        asks = [ask.of_branches() if row in branches else ask for row, ask in enumerate(asks)]
        for name in FROM_SOURCE.keys() & inputs.keys():
            are_asked = np.broadcast_to(inputs[name] > 0, len(asks)).tolist()
            asks = [
                ask._replace(from_source=ask.from_source | {name}) if asked else ask
                for ask, asked in zip(asks, are_asked, strict=True)
            ]
        results = translate_sentences(engine, lines, asks, first_line=None)
        if not lines:
            engine.search([], [], 1)  # outputs of no rows
    except UserError as error:
        raise invalid(str(error)) from None
    found = {name: values.copy() for name, values in engine.found.items()}
    texts, searched = found[READ_FROM[0]], engine.found
    found |= {name: np.full(texts.shape, b"", object) for name in OF_PHRASES}
    for row, (line, ask, candidates) in enumerate(zip(lines, asks, results, strict=True)):
        for rank, translation in enumerate(candidates.translations):
            if rank and not any(searched[name][row, rank] for name in READ_FROM):
                continue  # beyond n_best there is nothing
            texts[row, rank] = translation.text.encode(*AS_IT_IS)
            found[UNPLACED][row, rank] = "\n".join(translation.unplaced).encode()
            remaining = [*map(ask.protection.forbidden.found, (translation.text, bare(translation.text)))]
            found[REMAINING][row, rank] = "\n".join(dict.fromkeys(itertools.chain(*remaining))).encode()
        if line and not engine.lines[row]:  # nothing in it was to be translated
            for name in {"scores", "log_probabilities"} & set(found):
                found[name][row, 0] = 0
    return {name: found[name] for name in outputs}


def as_array(texts: list[bytes]) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def of_rows(inputs: Arrays, of: Sequence[Input]) -> Iterable[tuple[bytes, ...]]:
    """Yield the values of some inputs of each line, b"" of one that is not there; a single value holds for all."""
    rows = len(inputs["text"])
    columns = (inputs[each.name].tolist() if each.name in inputs else [b""] for each in of)
    return zip(*(column * rows if len(column) == 1 else column for column in columns), strict=True)


def ask_of(required: bytes, *of_protection: bytes) -> Ask:
    """Return what a request asks of a line. Raises UserError."""
    phrases = required.decode(errors="replace").split("\n")
    return Ask(required=phrases_of(phrases), protection=protection_of(*of_protection))


def read_protection(protect: bytes, keep: bytes, glossary: bytes, forbidden: bytes) -> Protection:
    try:
        kinds, words, terms = (value.decode() for value in (protect, keep, glossary))
    except UnicodeDecodeError:
        raise UserError(f"{', '.join(each.name for each in INPUTS)} must be UTF-8.") from None
    kept = Glossary.of_words(words.splitlines(), KEEP.name)
    joined = kept.joined(Glossary.of_lines(terms.splitlines(), GLOSSARY.name))
    return Protection(kinds_of(kinds), joined, forbidden_phrases(forbidden))


class Kept:
    """The Protections that requests asked last, so that a glossary is read once: `kept(*texts)` is `read(*texts)`.

    At most `most`, of `most_bytes` together. A Protection takes 60 bytes for each byte of its terms, and 280 for each
    sign of its regular expressions, of which it has MOST_WRITTEN_OUT. Several threads may call it.
    """

    def __init__(self, read: Callable[..., Protection], most: int, most_bytes: int):
        self.read, self.most, self.most_bytes, self.size = read, most, most_bytes, 0
        self._of_texts: dict[tuple[bytes, ...], Protection] = {}  # oldest first
        self._lock = threading.Lock()

    def __call__(self, *texts: bytes) -> Protection:
        with self._lock:
            protection = self._of_texts.pop(texts, None)
            if protection is not None:
                self._of_texts[texts] = protection
                return protection
        protection = self.read(*texts)
        with self._lock:
            if self._of_texts.setdefault(texts, protection) is protection:
                self.size += sum(map(len, texts))
            while self._of_texts and (len(self._of_texts) > self.most or self.size > self.most_bytes):
                oldest = next(iter(self._of_texts))
                del self._of_texts[oldest]
                self.size -= sum(map(len, oldest))
        return protection


protection_of = Kept(read_protection, MOST_KEPT, KEPT_BYTES)
