"""The description of all that the server answers over HTTP, in the form of OpenAPI 3.1, which programs read."""

from collections.abc import Iterable, Mapping
from typing import Any

from keras_transformer.search.options import WIDEST_BEAM

from ..graph.request import SOURCE_LANGUAGE, TARGET_LANGUAGE
from .api_keys import TRANSLATIONS
from .libretranslate import FORMATS, file_endings
from .models import Models
from .paragraphs import FORMAT, KNOWN_FORMATS, LANGUAGE, OUTPUT_LANGUAGE, PARAGRAPHS
from .routing import Languages
from .signature import SERVING_DEFAULT
from .texts import AUTO, SIGNATURE
from .welcome import given_by, is_askable

Json = dict[str, Any]

VERSION = "3.1.0"
TENSORFLOW, LIBRE, OPENAI, OPERATION = "TensorFlow Serving", "LibreTranslate", "Translations by language", "Operation"
TAGS = {
    OPENAI: "A text by its languages or by the name of a model, at once or as a stream.",
    LIBRE: "What clients, plugins and browser extensions for LibreTranslate ask.",
    TENSORFLOW: "TensorFlow Serving's REST API: the signatures of a model, with all their options.",
    OPERATION: "What probes, Prometheus and readers ask.",
}
ERROR = {"$ref": "#/components/schemas/Error"}
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}
CHOICES = {"": "", "/versions/{version}": "version", "/labels/{label}": "label"}  # of a version of a model
CHOICE_TYPES: dict[str, Json] = {
    "version": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
    "label": {"type": "string", "pattern": "^[^/:]+$"},
}


def description(models: Models, has_keys: bool) -> Json:
    """Return the description of a server of these models, which asks for keys or does not."""
    served = Languages.of(models)
    paths = {
        TRANSLATIONS: {"post": translations_operation(models, served)},
        **libre_paths(served, has_keys),
        **tensorflow_paths(models),
        **operation_paths(),
    }
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    keys: Json = {"security": [{name: []} for name in schemes]} if has_keys else {}
    return {
        "openapi": VERSION,
        "info": {
            "title": "keras-transformer",
            "version": "1",
            "description": "A server of translators. Errors are one sentence, in `error`.",
        },
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {"Error": of_object({"error": TEXT}), "Inputs": inputs_schema(models)},
            **({"securitySchemes": schemes} if has_keys else {}),
        },
        **keys,
    }


# parts


def of_object(properties: Json, required: Iterable[str] | None = None, **more: Any) -> Json:
    """Return the schema of an object, all of whose properties are required unless some are named."""
    names = list(properties) if required is None else list(required)
    return {"type": "object", "properties": properties, **({"required": names} if names else {}), **more}


def text_of(help: str, values: Iterable[str] = (), **more: Any) -> Json:
    """Return the schema of a text, which is one of some values if there are any."""
    choices = list(values)
    return {"type": "string", "description": help, **({"enum": choices} if choices else {}), **more}


def content(kind: str, schema: Json) -> Json:
    return {"content": {kind: {"schema": schema}}}


def operation(tag: str, name: str, summary: str, answer: Json, about: str = "", **more: Any) -> Json:
    """Return an operation. answer: a schema of JSON, or the `content` of the answer."""
    found = answer if "content" in answer else content("application/json", answer)
    return {
        "tags": [tag],
        "operationId": name,
        "summary": summary,
        **({"description": about} if about else {}),
        **more,
        "responses": {
            "200": {"description": "The answer.", **found},
            "default": {"description": "Why there is none.", **content("application/json", more_errors(tag))},
        },
    }


def more_errors(tag: str) -> Json:
    """Return the schema of errors: those of OpenAI's API are objects."""
    of_openai = of_object({"message": TEXT, "type": TEXT, "code": {"type": "integer"}})
    return {"anyOf": [ERROR, of_object({"error": of_openai})]} if tag == OPENAI else ERROR


def body(example: Json, **schemas: Json) -> Json:
    """Return the body of a request, in JSON, and as a form or in parts."""
    kinds = {"json": "application/json", "form": "application/x-www-form-urlencoded", "parts": "multipart/form-data"}
    return {
        "required": True,
        "content": {kinds[name]: {"schema": schema, "example": example} for name, schema in schemas.items()},
    }


def parameter(name: str, schema: Json, help: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": help}


# by language


def translations_operation(models: Models, served: Languages) -> Json:
    """Return `POST /v1/translations`."""
    schema = of_object(
        {
            "model": text_of(
                "A model that answers; without it, one that translates the languages.", ["", *models.names]
            ),
            "input": {"anyOf": [TEXT, {**TEXTS, "minItems": 1}], "description": "A text, or a list of texts."},
            "source_language": text_of(
                "Its code; left out or auto, it is the model's only one, or is detected.",
            ),
            "target_language": text_of("Its code; not needed beside a model of one."),
            "beam_size": {
                "type": "integer",
                "minimum": 1,
                "maximum": WIDEST_BEAM,
                "description": "Hypotheses per sentence, at most those of the model; with 1, a stream is live.",
            },
            "stream": {"type": "boolean", "default": False, "description": "Server-sent events."},
        },
        ["input"],
        additionalProperties=False,
    )
    example = {"input": "A dog runs.", "source_language": first(served.sources), "target_language": target_of(served)}
    answer = of_object(
        {
            "id": TEXT,
            "object": {"const": "translation"},
            "created": {"type": "integer"},
            "model": TEXT,
            "text": {"anyOf": [TEXT, TEXTS]},
            "source_language": TEXT,
            "target_language": TEXT,
            "intermediate_language": TEXT,
            "detected_confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
        ["id", "object", "created", "model", "text"],
    )
    kinds = {"application/json": {"schema": answer}, "text/event-stream": {"schema": TEXT}}
    about = (
        "With `stream`, each event has a piece of the translation in `choices[0].delta.content`; joined, the pieces of "
        "an `index` are its translation. `data: [DONE]` is the last one."
    )
    return operation(
        OPENAI, "translations", "Translate texts", {"content": kinds}, about, requestBody=body(example, json=schema)
    )


def libre_paths(served: Languages, has_keys: bool) -> Json:
    """Return the paths of LibreTranslate's API."""
    language = {"type": "object", "required": ["code", "name"], "properties": {"code": TEXT, "name": TEXT}}
    percentage = {"type": "number", "minimum": 0, "maximum": 100}
    detected = of_object({"confidence": percentage, "language": TEXT})
    key = {"api_key": text_of("A key, if the server asks for one; or a header.")}
    of_languages = {
        "source": text_of("The code of the source language, or auto.", [AUTO, *served.all]),
        "target": text_of("The code of the target language.", served.all),
    }
    fields = {
        "q": {
            "anyOf": [{**TEXT, "minLength": 1}, {**TEXTS, "minItems": 1}],
            "description": "A text, or a list of texts.",
        },
        **of_languages,
        "format": text_of("What the texts are.", FORMATS, default=FORMATS[0]),
        "alternatives": {"type": "integer", "minimum": 0, "default": 0, "description": "Other translations of each."},
        **key,
    }
    needed, one = ["q", "source", "target"], {"q": {**TEXT, "minLength": 1, "description": "A text."}}
    example = {"q": "A dog runs.", "source": first(served.sources), "target": target_of(served)}
    answer = of_object(
        {
            "translatedText": {"anyOf": [TEXT, TEXTS]},
            "alternatives": {"type": "array", "items": {"anyOf": [TEXT, TEXTS]}},
            "detectedLanguage": {"anyOf": [detected, {"type": "array", "items": detected}]},
            "intermediateLanguage": TEXT,
        },
        ["translatedText"],
    )
    file = {"type": "string", "format": "binary", "description": f"Its name ends in {', '.join(file_endings())}."}
    settings = of_object({"charLimit": {"type": "integer"}, "keyRequired": {"type": "boolean"}, "language": {}})
    targets = {"allOf": [language, of_object({"targets": TEXTS})]}
    keyed: Json = {"security": [{}, {"bearer": []}, {"header": []}]} if has_keys else {}  # or in the body
    free: Json = {"security": []}
    of_form = of_object(fields | one, needed)
    return {
        "/translate": {
            "post": operation(
                LIBRE,
                "translate",
                "Translate a text, or a list of texts",
                answer,
                "`intermediateLanguage` is there if two models were needed.",
                requestBody=body(example, json=of_object(fields, needed), form=of_form, parts=of_form),
                **keyed,
            )
        },
        "/translate_file": {
            "post": operation(
                LIBRE,
                "translate_file",
                "Translate a file",
                of_object({"translatedFileUrl": TEXT}),
                "The translation can be fetched for ten minutes.",
                requestBody=body({}, parts=of_object({"file": file, **of_languages, **key}, ["file", *of_languages])),
                **keyed,
            )
        },
        "/download_file/{name}": {
            "get": operation(
                LIBRE,
                "download_file",
                "Fetch a translated file",
                content("application/octet-stream", {}),
                parameters=[parameter("name", TEXT, "The end of `translatedFileUrl`.")],
                **free,
            )
        },
        "/detect": {
            "post": operation(
                LIBRE,
                "detect",
                "Detect the language of a text",
                {"type": "array", "items": detected},
                requestBody=body(
                    {"q": "A dog runs."}, json=of_object(one | key, ["q"]), form=of_object(one | key, ["q"])
                ),
                **keyed,
            )
        },
        "/languages": {
            "get": operation(
                LIBRE, "languages", "Languages, and what each can become", {"type": "array", "items": targets}, **free
            )
        },
        "/frontend/settings": {"get": operation(LIBRE, "settings", "What a page needs to know", settings, **free)},
        "/health": {
            "get": operation(LIBRE, "health", "Whether the server is well", of_object({"status": TEXT}), **free)
        },
    }


def first(codes: list[str]) -> str:
    return codes[0] if codes else "en"


def target_of(served: Languages) -> str:
    """Return a language that the first one becomes, for examples."""
    source = first(served.sources)
    return next((code for code in served.targets(source) if code != source), source)


# TensorFlow Serving


def inputs_schema(models: Models) -> Json:
    """Return what a request may ask of the signature `translate` of the first model that has options, by name."""
    found = (folder.versions[0].signatures.get(SIGNATURE) for folder in models if folder.versions)
    signature = next((each for each in found if each is not None and is_askable(each)), None)
    properties: Json = {"text": text_of("A line of text, or with `paragraphs` a text of many sentences.")}
    for option in given_by(signature.defaults) if signature else ():
        kind = "string" if option.default == "" else "integer" if option.dtype.is_integer else "number"
        properties[option.name] = {"type": kind, "description": option.help, "default": option.default}
        if kind != "string":
            properties[option.name] |= {"minimum": option.lowest, "maximum": option.highest}
    for option in (SOURCE_LANGUAGE, TARGET_LANGUAGE):
        if signature and option.name in signature.defaults:
            properties[option.name] = text_of(f"{option.help} Left out, it is the only one, or that of the export.")
    if signature and PARAGRAPHS in signature.inputs:
        properties |= {
            PARAGRAPHS: {"type": "boolean", "default": False, "description": "Whether a line is a whole text."},
            LANGUAGE: text_of("The language of a text, by whose rules its sentences are found.", default="en"),
            FORMAT: text_of("What a text is.", KNOWN_FORMATS, default=KNOWN_FORMATS[0]),
            OUTPUT_LANGUAGE: text_of("What a file tells as the language of its translation.", default=""),
        }
    return of_object(properties, ["text"])


def tensorflow_paths(models: Models) -> Json:
    """Return the paths of TensorFlow Serving's API."""
    inputs = {"$ref": "#/components/schemas/Inputs"}
    either = {
        "type": "object",
        "properties": {
            "signature_name": text_of("Of the model.", default=SERVING_DEFAULT),
            "instances": {"type": "array", "minItems": 1, "description": "A text, or the inputs by name, per line."},
            "inputs": {"description": "The inputs by column: lists by name, or the list of the only input."},
        },
        "oneOf": [{"required": ["instances"]}, {"required": ["inputs"]}],
    }
    example = {"signature_name": SIGNATURE, "instances": [{"text": "A dog runs."}]}
    about = "An instance of the signature `translate` has the fields of the schema `Inputs`."
    states = of_object({"model_version_status": {"type": "array", "items": {"type": "object"}}})
    metadata = of_object({"model_spec": {"type": "object"}, "metadata": {"type": "object"}})
    answer = {"type": "object", "properties": {"predictions": {}, "outputs": {}}, "minProperties": 1}
    named = parameter("model", text_of("Its name.", models.names), "The name of a model.")
    paths: Json = {}
    for end, choice in CHOICES.items():
        which = f" of a {choice}" if choice else ""
        parameters = [named, *([parameter(choice, CHOICE_TYPES[choice], f"The {choice}.")] if choice else [])]
        name, start = f"_{choice}" if choice else "", f"/v1/models/{{model}}{end}"

        def asked(operation_of: str, summary: str, schema: Json, **more: Any) -> Json:
            own = {"parameters": parameters, **more}  # noqa: B023
            return operation(TENSORFLOW, operation_of + name, summary + which, schema, **own)  # noqa: B023

        ask = asked("predict", "Ask a signature", answer, about=about, requestBody=body(example, json=either))
        ask["x-instance"] = inputs
        state = asked("status", "The states of its versions", states, security=[])
        state["responses"]["503"] = {"description": "No version is served.", **content("application/json", {})}
        paths[f"{start}:predict"] = {"post": ask}
        paths[start] = {"get": state}
        paths[f"{start}/metadata"] = {"get": asked("metadata", "Its signatures", metadata)}
    return paths


def operation_paths() -> Json:
    """Return the other paths."""
    pages: Mapping[str, tuple[str, ...]] = {
        "/": ("page", "The page that translates", "text/html", "text/plain"),
        "/docs": ("docs", "This description, to be read", "text/html"),
        "/openapi.json": ("openapi", "This description, for programs", "application/json"),
        "/monitoring/prometheus/metrics": ("metrics", "Counts and times for Prometheus", "text/plain"),
    }
    return {
        path: {"get": operation(OPERATION, name, summary, {"content": {kind: {"schema": {}} for kind in kinds}})}
        for path, (name, summary, *kinds) in pages.items()
    }
