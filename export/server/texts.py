"""Whole texts through the models of a route: what all APIs share that name languages and not a signature's inputs."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.languages import short_code
from keras_transformer.text.asks import SOURCE_LANGUAGE, TARGET_LANGUAGE
from keras_transformer.text.detection import Detected, detected
from keras_transformer.text.formats import WITH_STATES
from keras_transformer.text.formats.parts import Field

from .bounds import check_bounds
from .bytes_in_flight import Share
from .dispatcher import NOBODY, RECORD, Dispatcher
from .errors import invalid, shown
from .paragraphs import FORMAT, LANGUAGE, N_BEST, OUTPUT_LANGUAGE, PARAGRAPHS, TEXT, TEXTS, as_text_inputs, parts_of
from .protection import as_array
from .routing import Hop, Languages, Route
from .signature import Arrays, Signature

BEAM_SIZE = "beam_size"  # an input of the graph
AUTO = "auto"  # in place of the code of the source language
SIGNATURE = "translate"
UNKNOWN = "en"  # the language by whose rules sentences are found if a model does not tell its own


class TextsCodec(NamedTuple):
    """The Codec of whole texts, whose answer is a list of translations, best first, for each."""

    texts: list[bytes]
    hop: Hop
    format: str = TEXT
    n_best: int = 1
    beam_size: int = 0
    signature_name: str = SIGNATURE
    output_names: tuple[str, ...] = (TEXTS,)

    def read(self, signature: Signature) -> Arrays:
        """Return the inputs. Raises RequestError if the signature does not take whole texts."""
        if PARAGRAPHS not in signature.inputs:
            raise invalid(f"The model {self.hop.model} was exported before models took whole texts: export it again.")
        inputs = {
            **as_text_inputs(self.texts),
            LANGUAGE: as_array([(self.hop.source or UNKNOWN).encode()]),
            FORMAT: as_array([self.format.encode()]),
            OUTPUT_LANGUAGE: as_array([short_code(self.hop.target).encode()]),
        }
        if self.n_best > 1:
            most = most_translations(signature)
            if most is not None and self.n_best > most:
                raise invalid(
                    f"{self.n_best - 1} alternatives were asked for, and the model {self.hop.model} has a translation "
                    f"and {most - 1} alternatives: ask for at most {most - 1}."
                )
            inputs[N_BEST] = np.array([self.n_best], np.int32)
        if self.beam_size:
            if BEAM_SIZE not in signature.inputs:
                raise invalid(f"The model {self.hop.model} does not take {BEAM_SIZE}.")
            inputs[BEAM_SIZE] = np.array([self.beam_size], np.int32)
        for name, code in ((SOURCE_LANGUAGE, self.hop.source), (TARGET_LANGUAGE, self.hop.target)):
            if name in signature.inputs:
                inputs[name] = as_array([code.encode()])
        return inputs

    def write(self, outputs: Arrays, most: int) -> list[list[bytes]]:
        """Return the translations of each text."""
        return [[text for rank, text in enumerate(row) if text or not rank] for row in outputs[TEXTS].tolist()]


def most_translations(signature: Signature) -> int | None:
    """Return how many translations of a text a signature finds at most; None if it does not tell."""
    beam = signature.defaults.get(BEAM_SIZE)
    return None if beam is None else int(beam[0])


def encoded(text: str) -> bytes:
    """Return a text as the graph takes it. Raises RequestError for half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise invalid("A text has half of a surrogate pair, which is no character.") from None


class Wanted(NamedTuple):
    """Texts in UTF-8, or as their format tells, and what is asked of them.

    n_best: translations of each, at most. beam_size: of the search; 0 for that of the model.
    """

    texts: list[bytes]
    format: str = TEXT
    n_best: int = 1
    beam_size: int = 0


async def translations(
    dispatcher: Dispatcher, route: Route, wanted: Wanted, share: Share, until: float
) -> list[list[bytes]]:
    """Return the translations of each text along a route, best first, at least one. Raises RequestError.

    Of the first of two models, the best translation goes into the second. The log has what the client asked.
    """
    if len(route.hops) > 1 and wanted.format in WITH_STATES:  # the second would find each text translated
        raise invalid(
            f"{shown(wanted.format)} has the translation beside the text, and no model here translates "
            f"{route.source} to {route.target} by itself: ask for {route.through}, or send a format "
            "of one language."
        )
    found, record = [[text] for text in wanted.texts], RECORD.get(NOBODY)
    asked: dict[str, Any] = {}
    for number, hop in enumerate(route.hops, start=1):
        n_best = wanted.n_best if number == len(route.hops) else 1
        codec = TextsCodec([best for best, *_ in found], hop, wanted.format, n_best, wanted.beam_size)
        with dispatcher.version_in_use(hop.model, None) as version:
            size = sum(map(len, codec.texts))
            question = await dispatcher.question(version, lambda codec, most: codec, codec, size, until)
            asked = asked or {"rows": record.rows, "inputs": record.inputs}
            found = await dispatcher.predict(version, question, share, until)
    record.rows, record.inputs = asked.get("rows", len(found)), asked.get("inputs")
    share.resize(sum(len(text) for texts in found for text in texts))
    return found


def detect(languages: Languages, wanted: Wanted) -> list[Detected]:
    """Return how probable each language that is served is for all texts together, best first. Raises RequestError."""
    check_bounds(as_text_inputs(wanted.texts))
    try:
        parts = itertools.chain.from_iterable(parts_of(text, wanted.format) for text in wanted.texts)
        read = "\n".join(part.passage.text for part in parts if isinstance(part, Field))
        return detected(read, languages.sources)
    except UnicodeDecodeError:
        raise invalid("A text is not UTF-8.") from None
    except UserError as error:
        raise invalid(str(error)) from None


def source_of(languages: Languages, source: str, wanted: Wanted) -> tuple[str, Detected | None]:
    """Return the code of the source language of a request, and what was detected if it is AUTO. Raises RequestError."""
    if source.lower() != AUTO:
        return languages.code(source), None
    best, *_ = detect(languages, wanted)
    return best.language, best
