"""`POST /v1/translations`: texts by language, in the form of OpenAI's API, at once or as events while they are written.

The fields are those that vLLM's maintainers discuss for the same path (vllm-project/vllm, pull request 58111).
"""

import asyncio
import bisect
import contextlib
import functools
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keras_transformer.search.options import WIDEST_BEAM
from keras_transformer.text.sentences import LINE_END, paragraphs_of, sentences_of

from .bounds import check_bounds
from .bytes_in_flight import Share
from .dispatcher import NOBODY, RECORD, Dispatcher
from .errors import Code, RequestError, answered_as, invalid, shown
from .exchange import Answer, as_json, content_of, encoded_json, unless_disconnected
from .json_codec import parsed
from .live_sentences import limits_of, live_pieces, look
from .paragraphs import MOST_SENTENCES, as_text_inputs
from .routing import Languages, Route, route_of_model
from .signature import too_many_sentences
from .texts import AUTO, BEAM_SIZE, UNKNOWN, TextsCodec, Wanted, encoded, source_of, translations

KEYS = ("model", "input", "source_language", "target_language", "beam_size", "stream")
MOST_AT_ONCE = 32  # sentences of a stream that are translated together: 1, then 2, 4 and so on
EVENTS = {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
Pieces = list[tuple[int, str]]  # of translations, each with the number of its text
END = b"data: [DONE]\n\n"


class Asked(NamedTuple):
    """What a request says. texts: of `input`, which is a list or a text."""

    model: str
    texts: list[str]
    is_list: bool
    source: str
    target: str
    is_stream: bool
    beam_size: int = 0  # that of the model

    @property
    def wanted(self) -> Wanted:
        """Raises RequestError for a text that is none."""
        return Wanted([encoded(text) for text in self.texts], beam_size=self.beam_size)


def asked_by(body: bytes) -> Asked:
    """Return what a body asks. Raises RequestError."""
    content = parsed(body)
    if not isinstance(content, dict):
        raise invalid("The body must be a JSON object.")
    if unknown := sorted(content.keys() - set(KEYS)):
        raise invalid(f"There is no field {shown(unknown[0])!a}; there are {', '.join(KEYS)}.")
    for key in ("model", "source_language", "target_language"):
        if not isinstance(content.get(key), str | None):
            raise invalid(f"{key} must be a text.")
    given, is_stream = content.get("input"), content.get("stream")
    texts: list[Any] = given if isinstance(given, list) else [given]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise invalid("input must be a text, or a list of texts with at least one.")
    if not isinstance(is_stream, bool | None):
        raise invalid("stream must be true or false.")
    beam_size = content.get(BEAM_SIZE, 0)
    if BEAM_SIZE in content and (type(beam_size) is not int or not 1 <= beam_size <= WIDEST_BEAM):
        raise invalid(f"{BEAM_SIZE} must be a whole number from 1 to {WIDEST_BEAM}.")
    model, source, target = (content.get(key) or "" for key in ("model", "source_language", "target_language"))
    if not model and not target:
        raise invalid("Name a model, or a target_language.")
    return Asked(model, texts, isinstance(given, list), source, target, bool(is_stream), beam_size)


class TranslationsApi:
    """The endpoint."""

    def __init__(self, dispatcher: Dispatcher):
        self.dispatcher = dispatcher

    async def translate(self, request: Request) -> Response:
        """Answer with the translations of texts, or with a stream of events that have them sentence by sentence."""
        with contextlib.ExitStack() as stack:
            try:
                until = stack.enter_context(self.dispatcher.request("REST"))
                share = stack.enter_context(self.dispatcher.bytes_in_flight.share())
                body = await content_of(request, self.dispatcher, share, until)
                asked = await self.dispatcher.off_the_loop(functools.partial(asked_by, body), len(body), until)
                wanted = asked.wanted
                route_of = functools.partial(self.route, asked, wanted)
                route, head = await self.dispatcher.off_the_loop(route_of, len(body), until)
                if asked.is_stream:
                    pieces = self.pieces(asked, route, share, until)
                    first = await unless_disconnected(request, first_of(pieces))  # an error of it is no stream
                    events = events_of(head, first, pieces, len(asked.texts))
                    return Events(events, stack.pop_all(), self.dispatcher.options.deadline)
                found = await unless_disconnected(request, translations(self.dispatcher, route, wanted, share, until))
            except RequestError as error:
                raise as_openai(error) from None
            texts = [best.decode(errors="replace") for best, *_ in found]
            answer = {**head, "object": "translation", "text": texts if asked.is_list else texts[0]}
            chunks = await self.dispatcher.off_the_loop(lambda: encoded_json(answer), share.size, until)
            share.resize(sum(map(len, chunks)))
            return Answer(chunks, stack.pop_all(), self.dispatcher.options.deadline)

    def route(self, asked: Asked, wanted: Wanted) -> tuple[Route, dict[str, Any]]:
        """Return the way of texts, and what every answer says of it. Raises RequestError."""
        served, found = Languages.of(self.dispatcher.models), None
        source = "" if asked.source.lower() == AUTO else asked.source
        if asked.model:
            version = self.dispatcher.version(asked.model)
            if not source and len(version.languages.source) > 1:
                source, found = source_of(served.of_model(asked.model), AUTO, wanted)
            route = route_of_model(version, asked.model, source, asked.target)
        else:
            source, found = source_of(served, source or AUTO, wanted)
            route = served.route(source, served.code(asked.target))
        head = {
            "id": f"trsl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": ", ".join(hop.model for hop in route.hops),
            "source_language": route.source,
            "target_language": route.target,
        }
        head |= {"detected_confidence": found.confidence} if found else {}
        return route, head | ({"intermediate_language": route.through} if route.through else {})

    async def pieces(self, asked: Asked, route: Route, share: Share, until: float) -> AsyncIterator[Pieces]:
        """Yield the translations of texts in pieces, each with the number of its text; joined, they are the answer."""
        texts, wanted = asked.texts, asked.wanted
        check_bounds(as_text_inputs(wanted.texts))
        language = route.hops[0].source or UNKNOWN if route.hops else UNKNOWN
        divided = await self.dispatcher.off_the_loop(
            lambda: [Divided.of(text, language) for text in texts], sum(map(len, texts)), until
        )
        count, most = sum(text.sentences for text in divided), self.dispatcher.options.request_rows
        if count > most:
            raise too_many_sentences(count, most)
        parts = [(text, number, encoded(part)) for number, text in enumerate(divided) for part in text.parts]
        if limits := route.hops and limits_of(self.dispatcher.version(route.hops[-1].model), asked.beam_size):
            *before, last = route.hops
            ask = functools.partial(look, self.dispatcher, last, share, until)
            for text, number, part in parts:
                first = wanted._replace(texts=[part])
                way = route._replace(hops=tuple(before))
                [[read, *_]] = await translations(self.dispatcher, way, first, share, until)
                codec, so_far = TextsCodec([read], last, beam_size=asked.beam_size), text.next_piece("")
                async for piece in live_pieces(ask, codec, limits):
                    yield [(number, so_far + piece)]
                    so_far = ""
        else:
            start, size = 0, 1  # together are translated as many as become ready together: one, so that it comes soon
            while start < len(parts):
                group = parts[start : start + size]
                several = wanted._replace(texts=[part for *_, part in group])
                found = await translations(self.dispatcher, route, several, share, until)
                yield [
                    (number, text.next_piece(best.decode(errors="replace")))
                    for (text, number, _), (best, *_) in zip(group, found, strict=True)
                ]
                start, size = start + len(group), min(2 * size, MOST_AT_ONCE)
        record = RECORD.get(NOBODY)
        record.rows = len(texts)
        record.inputs = as_text_inputs(wanted.texts) if record.inputs is not None else None
        yield [(number, text.rest()) for number, text in enumerate(divided)]


class Divided:
    """A text in parts that are translated alone: its sentences, and whole paragraphs whose lines are wrapped.

    Where the line breaks of a sentence go is known at its end, and what is wrapped from all lines of a paragraph.
    """

    def __init__(self, text: str, spans: list[tuple[int, int]], sentences: int):
        self.text, self.spans, self.sentences = text, spans, sentences
        self._reached = self._next = 0

    @classmethod
    def of(cls, text: str, language: str) -> "Divided":
        spans = sentences_of(text, language)
        if len(spans) > MOST_SENTENCES:
            raise invalid(f"A text has more than {MOST_SENTENCES} sentences, the most here: send it in parts.")
        paragraphs = [(lines[0][0], lines[-1][1]) for lines in paragraphs_of(text)]
        ends, parts = [end for _, end in paragraphs], []
        for number, each in itertools.groupby(spans, lambda span: bisect.bisect_left(ends, span[1])):
            of_paragraph = list(each)
            is_wrapped = any(LINE_END.search(text, *span) for span in of_paragraph)
            parts += [paragraphs[number]] if is_wrapped else of_paragraph
        return cls(text, parts, len(spans))

    @property
    def parts(self) -> list[str]:
        return [self.text[slice(*span)] for span in self.spans]

    def next_piece(self, translation: str) -> str:
        """Return what stands before the next part, and its translation, and go behind it."""
        start, end = self.spans[self._next]
        piece = self.text[self._reached : start] + translation
        self._next, self._reached = self._next + 1, end
        return piece

    def rest(self) -> str:
        """Return what stands behind the last part."""
        return self.text[self._reached :]


async def first_of(pieces: AsyncIterator[Pieces]) -> Pieces:
    return await anext(pieces)


async def events_of(
    head: dict[str, Any], first: Pieces, pieces: AsyncIterator[Pieces], count: int
) -> AsyncIterator[bytes]:
    """Yield the events of a stream: a piece each, then for each text that it has ended."""
    for event in written(head, first):
        yield event
    async for group in pieces:
        for event in written(head, group):
            yield event
    for number in range(count):
        yield event_of(head, {"index": number, "delta": {}, "finish_reason": "stop"})


def written(head: dict[str, Any], group: Pieces) -> Iterator[bytes]:
    """Yield the events of some pieces; an empty one has none."""
    for number, piece in group:
        if piece:
            yield event_of(head, {"index": number, "delta": {"content": piece}, "finish_reason": None})


def event_of(head: dict[str, Any], choice: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % json.dumps({**head, "object": "translation.chunk", "choices": [choice]}).encode()


def as_openai(error: RequestError) -> "OpenAiError":
    """Return an error that is answered in the form of OpenAI's API."""
    return OpenAiError(error.code, error.message, error.http_status)


class OpenAiError(RequestError):
    """A request that gets no result, answered as OpenAI's API answers."""

    @property
    def content(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.http_status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.http_status}}


async def answer_openai_error(request: Request, error: OpenAiError) -> Response:
    """Answer with the status and the sentence of an error."""
    response = as_json(error.content, error.http_status)
    if error.http_status == 503:
        response.headers["retry-after"] = "1"
    return response


class Events(Response):
    """A stream of events. An error after its beginning is its last event; `held` is closed at the end of it.

    It ends too if its client leaves, or reads so slowly that it takes more than so many seconds.
    """

    def __init__(self, events: AsyncIterator[bytes], held: contextlib.ExitStack, seconds: float):
        super().__init__(headers=EVENTS)
        del self.headers["content-length"]
        self._events, self._held, self._seconds = events, held, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        last = END
        try:
            with self._held:
                async with asyncio.timeout(self._seconds):
                    await unless_disconnected(Request(scope, receive), self._send(send))
        except Exception as error:
            if isinstance(error, TimeoutError):
                error = RequestError(Code.DEADLINE_EXCEEDED, "The answer was not read within the deadline.")
            last = b"data: %s\n\n" % json.dumps(as_openai(answered_as(error)).content).encode() + END
        await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _send(self, send: Send) -> None:
        async for event in self._events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
