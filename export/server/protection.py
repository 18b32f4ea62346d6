"""What a request to the local server may ask beside the inputs of the graph: spans that must come through, and terms.

The graph translates the lines without their tags; from its alignments the spans are put back. So these inputs are
inputs of the local server, and not of TensorFlow Serving. A span may take the place of a phrase that the graph put
there, or bring one that must not come: the answer names it.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import UserError
from keras_transformer.text.glossary import FLAGS, Glossary
from keras_transformer.text.placing import alignment_of
from keras_transformer.text.protected import Abilities, ProtectedLine
from keras_transformer.text.required import has_phrase
from keras_transformer.text.spans import KINDS, Protection

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
UNPLACED = "unplaced"  # an output: spans and required phrases that are missing in a translation, one per line
REMAINING = "remaining"  # an output: forbidden phrases that are in a translation all the same, one per line
FORCED = "is_forced"  # an output of the graph: whether required phrases made a translation improbable
OF_PHRASES = (UNPLACED, REMAINING)
READ_FROM = ("translations", "alignments")  # outputs of the graph
GLOSSARIES_KEPT = 32  # that were read last

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
    """Return the outputs that are answered: UNPLACED, REMAINING and FORCED only if named, or if something is asked."""
    if is_named:
        return names
    idle = {UNPLACED} if not is_asked(inputs, *INPUTS, REQUIRED) else set()
    idle |= {FORCED} if not is_asked(inputs, REQUIRED) else set()
    idle |= {REMAINING} if not is_asked(inputs, FORBIDDEN) else set()
    return tuple(name for name in names if name not in idle)


def is_asked(inputs: Arrays, *of: Input) -> bool:
    return any(any(inputs[each.name].tolist()) for each in of if each.name in inputs)


def run_protected(compute: Compute, outputs: tuple[str, ...], inputs: Arrays, abilities: Abilities) -> Arrays:
    """Return the outputs of a batch of lines, with every span of each.

    compute: from names of outputs, and the inputs of the graph, to these outputs. In `pieces`, scores and `alignments`
    is what the model wrote. Raises RequestError for a kind or a term that makes no sense.
    """
    of_graph = {name: values for name, values in inputs.items() if name not in [each.name for each in INPUTS]}
    lines = [
        protected_line(text, asked, abilities)
        for text, asked in zip(inputs["text"], of_rows(inputs, INPUTS), strict=True)
    ]
    texts = [
        text if line is None else line.source.text.encode() if line.source.has_text else b""
        for text, line in zip(inputs["text"], lines, strict=True)
    ]
    wanted = tuple(dict.fromkeys([*(name for name in outputs if name not in OF_PHRASES), *READ_FROM]))
    found = {name: values.copy() for name, values in compute(wanted, of_graph | {"text": as_array(texts)}).items()}
    translations, alignments = (found[name] for name in READ_FROM)
    unplaced = np.full(translations.shape, b"", object)
    for row, (line, [required]) in enumerate(zip(lines, of_rows(inputs, (REQUIRED,)), strict=True)):
        if line is None:
            continue
        if not line.source.has_text:
            translations[row, 0] = line.untranslated().encode()
            for name in {"scores", "log_probabilities"} & set(found):
                found[name][row, 0] = 0
            continue
        for rank, text in enumerate(translations[row]):
            if text or alignments[row, rank]:
                alignment = alignment_of(alignments[row, rank].decode())
                restored, missing = line.restored(text.decode(), alignment, phrases_in(required))
                translations[row, rank], unplaced[row, rank] = restored.encode(), "\n".join(missing).encode()
    return with_phrases(found | {UNPLACED: unplaced}, outputs, inputs)


def with_phrases(found: Arrays, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
    """Return outputs, with required phrases that are missing in UNPLACED, and forbidden ones that came in REMAINING."""
    if is_asked(inputs, REQUIRED, FORBIDDEN):
        texts, unplaced, remaining = found[READ_FROM[0]], found[UNPLACED], np.full_like(found[UNPLACED], b"")
        for row, (required, forbidden) in enumerate(of_rows(inputs, (REQUIRED, FORBIDDEN))):
            for rank, text in enumerate(texts[row]):
                if rank == 0 or text:
                    missing = [unplaced[row, rank], *missing_in(text.decode(), required)]
                    unplaced[row, rank] = b"\n".join(filter(None, missing))
                    remaining[row, rank] = b"\n".join(remaining_in(text.decode(), forbidden))
        found = found | {REMAINING: remaining}
    return {name: found[name] if name in found else np.full_like(found[UNPLACED], b"") for name in outputs}


def missing_in(text: str, required: bytes) -> list[bytes]:
    """Return which phrases, one per line, a text does not have, however characters are written."""
    return [each.encode() for each in phrases_in(required) if not has_phrase(plain(text), plain(each))]


def phrases_in(required: bytes) -> list[str]:
    """Return the different phrases, one per line, without blank ones."""
    phrases = [phrase.strip() for phrase in required.decode(errors="replace").split("\n")]
    return list(dict.fromkeys(filter(None, phrases)))


def remaining_in(text: str, forbidden: bytes) -> list[bytes]:
    """Return the phrases, one per line, that a text has, as it has them."""
    matches = Glossary.of_words(forbidden.decode(errors="replace").split("\n"), FORBIDDEN.name, ()).matches(text)
    return [each.encode() for each in dict.fromkeys(text[match.start : match.end] for match in matches)]


def plain(text: str) -> str:
    """Return a text without what a tokenizer may change: capitals, forms of characters, and spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def as_array(texts: list[bytes]) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def of_rows(inputs: Arrays, of: Sequence[Input]) -> Iterable[tuple[bytes, ...]]:
    """Yield the values of some inputs of each line, b"" of one that is not there; a single value holds for all."""
    rows = len(inputs["text"])
    columns = (inputs[each.name].tolist() if each.name in inputs else [b""] for each in of)
    return zip(*(column * rows if len(column) == 1 else column for column in columns), strict=True)


def protected_line(text: bytes, asked: tuple[bytes, ...], abilities: Abilities) -> ProtectedLine | None:
    """Return a line with its spans; None if it has none, or is no UTF-8. asked: INPUTS. Raises RequestError."""
    try:
        protection = protection_of(*asked)
        line = ProtectedLine.of(text.decode(), protection, abilities.placeholders, not abilities.aligns)
    except UnicodeDecodeError:  # of the line
        return None
    except UserError as error:
        raise invalid(str(error)) from None
    return line if line.has_spans else None


@functools.lru_cache(GLOSSARIES_KEPT)
def protection_of(protect: bytes, keep: bytes, glossary: bytes) -> Protection:
    """Return the Protection that a request asks for. Raises UserError."""
    try:
        kinds, words, terms = (value.decode() for value in (protect, keep, glossary))
    except UnicodeDecodeError:
        raise UserError(f"{', '.join(each.name for each in INPUTS)} must be UTF-8.") from None
    kept = Glossary.of_words(words.splitlines(), KEEP.name)
    return Protection.of(kinds, kept.joined(Glossary.of_lines(terms.splitlines(), GLOSSARY.name)))
