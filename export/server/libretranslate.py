"""LibreTranslate's API over the served models, for the clients, plugins and browser extensions that speak it.

https://docs.libretranslate.com describes it: names of fields, forms of answers and status codes are those of it.
"""

import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from keras_transformer.pieces.language_names import name_of
from keras_transformer.text.formats.endings import USUAL, format_of_name, why_not

from .api_keys import ApiKeys, has_key
from .bounds import WHOLE_TEXTS
from .bytes_in_flight import Share
from .dispatcher import Dispatcher
from .errors import Code, RequestError, invalid, shown
from .exchange import BEHIND_PROXY, Answer, as_json, content_of, encoded_json, unless_disconnected
from .forms import Fields, fields_of, missing
from .kept_files import KeptFiles
from .paragraphs import KNOWN_FORMATS, TEXT
from .routing import Languages
from .texts import AUTO, Wanted, detect, encoded, source_of, translations

KEYED_BODIES = ("/translate", "/detect", "/translate_file")
OPEN_PATHS = ("/languages", "/health", "/frontend/settings")  # without a key
FORMATS = (TEXT, "html")
TEXT_ENDING = "txt"
BYTES_OF_A_CHARACTER = 4  # at most, in UTF-8
FRONTEND_TIMEOUT = 500  # milliseconds that a page waits after a key was pressed

Handler = Callable[["LibreTranslate", Fields, Share, float], Coroutine[Any, Any, Any]]
Endpoint = Callable[["LibreTranslate", Request], Coroutine[Any, Any, Response]]


def asks(method: str) -> Callable[[Handler], Endpoint]:
    """Return what makes an endpoint of a handler: it reads the body of a POST, and answers with JSON if its key is one.

    method: as logs and metrics name the call.
    """

    def with_body(handler: Handler) -> Endpoint:
        @functools.wraps(handler)
        async def endpoint(self: "LibreTranslate", request: Request) -> Response:
            with contextlib.ExitStack() as stack, as_there():
                until = stack.enter_context(self.dispatcher.request("REST", method))
                share = stack.enter_context(self.dispatcher.bytes_in_flight.share())
                body = await content_of(request, self.dispatcher, share, until)
                query = request.scope["query_string"].decode("latin-1")
                read = functools.partial(fields_of, request.headers, query, body)
                fields = await self.dispatcher.off_the_loop(read, len(body), until)
                self.check_key(request, fields)
                fields.values["base_url"] = str(request.base_url)
                answer = await unless_disconnected(request, handler(self, fields, share, until))
                chunks = await self.dispatcher.off_the_loop(lambda: encoded_json(answer), share.size, until)
                share.resize(sum(map(len, chunks)))
                return Answer(chunks, stack.pop_all(), self.dispatcher.options.deadline)

        return endpoint

    return with_body


@contextlib.contextmanager
def as_there() -> Iterator[None]:
    """Within, a server that is busy answers 429, as LibreTranslate does, for which its clients wait."""
    try:
        yield
    except RequestError as error:
        if error.http_status == Code.RESOURCE_EXHAUSTED.http_status and error.code is Code.RESOURCE_EXHAUSTED:
            raise RequestError(error.code, f"Slowdown: {error.message}", 429) from None
        raise


class LibreTranslate:
    """The endpoints."""

    def __init__(self, dispatcher: Dispatcher, keys: ApiKeys | None):
        self.dispatcher, self.keys, self.files = dispatcher, keys, KeptFiles()

    def paths(self) -> list[Path]:
        return [
            Path("/languages", self.languages),
            Path("/health", self.health),
            Path("/frontend/settings", self.settings),
            Path("/detect", self.detect, methods=["POST"]),
            Path("/translate", self.translate, methods=["POST"]),
            Path("/translate_file", self.translate_file, methods=["POST"], middleware=BEHIND_PROXY),
            Path("/download_file/{name}", self.download_file),
        ]

    def check_key(self, request: Request, fields: Fields) -> None:
        """Raise RequestError unless a header or the field `api_key` has a key that this server knows."""
        if self.keys is None or has_key(request.scope):
            return
        key = fields.text("api_key", "")
        if not key:
            raise RequestError(Code.UNAUTHENTICATED, "This server wants an API key, as api_key.", 400)
        if not self.keys.has(key.encode(errors="replace")):
            raise RequestError(Code.UNAUTHENTICATED, "Invalid API key", 403)

    async def languages(self, request: Request) -> Response:
        """Answer with each language, and what it can become."""
        served = Languages.of(self.dispatcher.models)
        return as_json(
            [{"code": code, "name": name_of(code), "targets": sorted(served.targets(code))} for code in served.all]
        )

    async def health(self, request: Request) -> Response:
        """Answer 200 while the server answers new requests, else 503."""
        self.dispatcher.refuse_unless_well()
        return as_json({"status": "ok"})

    async def settings(self, request: Request) -> Response:
        """Answer with what a page needs to know."""
        served = Languages.of(self.dispatcher.models)
        source = {"code": AUTO, "name": "Auto Detect"}
        targets = (
            [code for code in served.targets(served.sources[0]) if code != served.sources[0]] if served.all else []
        )
        target = {"code": targets[0], "name": name_of(targets[0])} if targets else source
        return as_json(
            {
                "charLimit": WHOLE_TEXTS.each // BYTES_OF_A_CHARACTER,
                "frontendTimeout": FRONTEND_TIMEOUT,
                "apiKeys": self.keys is not None,
                "keyRequired": self.keys is not None,
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": [f".{ending}" for ending in file_endings()],
                "language": {"source": source, "target": target},
            }
        )

    @asks("Detect")
    async def detect(self, fields: Fields, share: Share, until: float) -> Any:
        """Answer with how probable each language is for a text."""
        wanted, served = Wanted(texts_in(fields)), Languages.of(self.dispatcher.models)
        found = await self.dispatcher.off_the_loop(lambda: detect(served, wanted), share.size, until)
        return [{"confidence": percent(each.confidence), "language": each.language} for each in found]

    @asks("Predict")
    async def translate(self, fields: Fields, share: Share, until: float) -> Any:
        """Answer with the translation of a text, or of each of a list."""
        texts, source, target = texts_in(fields), fields.text("source"), fields.text("target")
        format, alternatives = fields.text("format", TEXT), number_of(fields, "alternatives")
        if format not in FORMATS:
            raise invalid(f"{shown(format)} format is not supported")
        wanted = Wanted(texts, format, 1 + alternatives if format == TEXT else 1)
        translated, answer = await self.translated(wanted, source, target, share, until)
        found = [[text.decode(errors="replace") for text in of_text] for of_text in translated]
        is_list = isinstance(fields.values["q"], list)
        answer["translatedText"] = [best for best, *_ in found] if is_list else found[0][0]
        if is_list and "detectedLanguage" in answer:
            answer["detectedLanguage"] = [answer["detectedLanguage"]] * len(texts)
        if alternatives:
            others = [[text for text in dict.fromkeys(rest) if text not in ("", best)] for best, *rest in found]
            answer["alternatives"] = others if is_list else others[0]
        return answer

    @asks("Predict")
    async def translate_file(self, fields: Fields, share: Share, until: float) -> Any:
        """Answer with where the translation of a file can be fetched."""
        file = fields.files.get("file")
        if file is None:
            raise missing("file")
        if not file.name or not file.content:
            raise invalid("Invalid request: empty file")
        source, target, format = fields.text("source"), fields.text("target"), format_of_file(file.name)
        found, _ = await self.translated(Wanted([file.content], format), source, target, share, until)
        return {"translatedFileUrl": fields.values["base_url"] + self.files.keep(file.name, found[0][0])}

    async def translated(
        self, wanted: Wanted, source: str, target: str, share: Share, until: float
    ) -> tuple[list[list[bytes]], dict[str, Any]]:
        """Return the translations of texts, and what an answer says of their languages."""
        served = Languages.of(self.dispatcher.models)
        size = sum(map(len, wanted.texts))
        code, found = await self.dispatcher.off_the_loop(lambda: source_of(served, source, wanted), size, until)
        route, answer = served.route(code, served.code(target)), dict[str, Any]()
        if found is not None:
            answer["detectedLanguage"] = {"confidence": percent(found.confidence), "language": found.language}
        if route.through:
            answer["intermediateLanguage"] = route.through
        return await translations(self.dispatcher, route, wanted, share, until), answer

    async def download_file(self, request: Request) -> Response:
        """Answer with a file that `translate_file` wrote."""
        file = self.files.get(request.path_params["name"])
        if file is None:
            raise RequestError(
                Code.NOT_FOUND, "There is no such file: it was fetched too late, or from another server."
            )
        headers = {"content-disposition": f'attachment; filename="{file.name}"', "x-content-type-options": "nosniff"}
        return Response(file.content, 200, headers, "application/octet-stream")


def texts_in(fields: Fields) -> list[bytes]:
    """Return the texts of `q` in UTF-8. Raises RequestError."""
    value = fields.values.get("q")
    if not value:
        raise missing("q")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise invalid("Invalid request: q must be a text, or a list of texts.")
    return [encoded(text) for text in texts]


def number_of(fields: Fields, name: str) -> int:
    """Return a number that is not negative, 0 if it is missing. Raises RequestError for what is none."""
    value = fields.values.get(name) or 0
    digits = value if isinstance(value, str) else str(value)
    if isinstance(value, bool) or not digits.isdecimal() or len(digits) > 9:
        raise invalid(f"Invalid request: {name} parameter is not a number")
    return int(digits)


def percent(probability: float) -> float:
    return round(100 * probability, 1)


def file_endings() -> list[str]:
    """Return the endings of names of files that are translated."""
    return [TEXT_ENDING, *(ending for ending, format in USUAL.items() if format in KNOWN_FORMATS)]


def format_of_file(name: str) -> str:
    """Return the format of a file by its name. Raises RequestError if this server reads none of its kind."""
    format = format_of_name(name) or TEXT
    if format not in KNOWN_FORMATS or why_not(name, format, False) or name.lower().endswith(".gz"):
        known = ", ".join(f".{ending}" for ending in file_endings())
        raise invalid(f"Invalid request: file format not supported; {shown(name)} may end in {known}.")
    return format
