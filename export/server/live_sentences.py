"""A sentence of a stream while greedy search writes it: searches that may write twice as much each time."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.text.live import LiveText
from keras_transformer.text.road import is_one_search
from keras_transformer.text.sentences import LINE_END

from ..graph.request import PREFIX
from .bytes_in_flight import Share
from .dispatcher import Dispatcher
from .errors import invalid
from .paragraphs import SPANS, TEXTS
from .protection import as_array
from .routing import Hop
from .signature import Arrays, Signature
from .texts import BEAM_SIZE, SIGNATURE, TextsCodec, encoded
from .version import Version

IS_CUT = "is_cut"  # an output of the graph
OF_OUTPUT = MOST, LEAST, TEMPERATURE = "max_length", "min_length", "temperature"  # inputs of the graph
TOLD = 4  # places that SPANS has of each sentence


class Look(NamedTuple):
    """What a search has written of a sentence. is_whole: whether it was not divided, as one that is too long is."""

    text: str
    is_cut: bool
    is_whole: bool


class LookCodec(NamedTuple):
    """The Codec of a sentence that is stopped after `limit` tokens, 0 for none, and begins with `prefix`."""

    sentence: TextsCodec
    limit: int
    prefix: str
    signature_name: str = SIGNATURE
    output_names: tuple[str, ...] = (TEXTS, IS_CUT, SPANS)

    def read(self, signature: Signature) -> Arrays:
        inputs = self.sentence.read(signature)
        if self.limit:
            inputs[MOST] = np.array([self.limit], np.int32)
        if self.prefix:
            inputs[PREFIX.name] = as_array([self.prefix.encode()])
        return inputs

    def write(self, outputs: Arrays, most: int) -> Look:
        [[text, *_]], [[is_cut, *_]], [spans] = (outputs[name].tolist() for name in self.output_names)
        return Look(text.decode(errors="replace"), is_cut, len(spans.split()) <= TOLD)


def limits_of(version: Version, beam_size: int) -> tuple[int, int] | None:
    """Return the fewest and the most tokens of a greedy search of a version; None if its search is none.

    beam_size: what a request asks; 0 for that of the version.
    """
    signature = version.signatures.get(SIGNATURE)
    if signature is None or not {BEAM_SIZE, MOST, PREFIX.name} <= signature.defaults.keys():
        return None
    of = {name: float(values[0]) for name, values in signature.defaults.items() if name in (BEAM_SIZE, *OF_OUTPUT)}
    is_greedy = (beam_size or of[BEAM_SIZE]) == 1 and not of.get(TEMPERATURE) and IS_CUT in signature.outputs
    return (int(of.get(LEAST, 1)), int(of[MOST])) if is_greedy else None


async def live_pieces(
    ask: Callable[[LookCodec], Any], sentence: TextsCodec, limits: tuple[int, int]
) -> AsyncIterator[str]:
    """Yield the translation of a sentence in pieces; several sentences come as a whole.

    ask: returns a Look. Raises RequestError.
    """
    [line] = sentence.texts
    text = line.decode()
    live = LiveText(*limits) if is_one_search(text) and not LINE_END.search(text) else LiveText(0, 0)
    while not live.has_ended:
        text, is_cut, is_whole = await ask(LookCodec(sentence, live.limit, live.prefix))
        if live.limit and not is_whole:
            live = LiveText(0, 0)  # the end of its first part is none of the whole
            continue
        try:
            yield live.piece(text, is_cut)
        except InputError as error:
            raise invalid(str(error)) from None


async def look(dispatcher: Dispatcher, hop: Hop, share: Share, until: float, codec: LookCodec) -> Look:
    """Return what a model has written of a sentence. Raises RequestError."""
    with dispatcher.version_in_use(hop.model, None) as version:
        size = len(encoded(codec.prefix)) + sum(map(len, codec.sentence.texts))
        question = await dispatcher.question(version, lambda codec, most: codec, codec, size, until)
        return await dispatcher.predict(version, question, share, until, is_stopped=codec.limit > 0)
