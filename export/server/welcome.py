"""What `/` shows: a page that asks the served version, or a line of curl if that version takes no options."""

import json
import shlex
import urllib.parse
from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from keras_transformer.page import content_security_policy, page
from keras_transformer.pieces.language_marks import NO_LANGUAGES, SOURCE, TARGET, Languages
from keras_transformer.search.options import SearchOptions

from ..graph.request import FORBIDDEN, PREFIX, REQUIRED, SOURCE_LANGUAGE, TARGET_LANGUAGE, Input, inputs_of
from .paragraphs import PARAGRAPHS
from .protection import GLOSSARY, INPUTS, KEEP, PROTECT
from .signature import Arrays, Signature

NEEDED = "beam_size", "max_length"  # from their defaults follow the bounds of all options
EXAMPLES = {
    REQUIRED.name: "Hund",
    FORBIDDEN.name: "Kater",
    KEEP.name: "Firefox",
    GLOSSARY.name: "dog = Hund",
}  # of texts that have several lines
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def welcome(
    name: str,
    origin: str,
    signatures: dict[str, Signature],
    example: str,
    names: Sequence[str] = (),
    languages: Languages = NO_LANGUAGES,
) -> Response:
    """Return the page of a version with these signatures, which are served under `name`, with a sentence to try.

    origin: the server as the page's reader reaches it, such as http://localhost:8501. names: the models of the server,
    among which the page lets choose. languages: of the version, among which it lets choose too.
    """
    data = page_data(name, signatures, example, names, languages)
    if data is None:
        body = json.dumps({"instances": [{"text": example or "Hello!"}]})
        url = f"{origin}/v1/models/{urllib.parse.quote(name)}:predict"
        return PlainTextResponse(f"curl -d {shlex.quote(body)} {url}\n")
    policy = content_security_policy(data) + "; frame-ancestors 'none'"
    return HTMLResponse(page(data), headers=HEADERS | {"Content-Security-Policy": policy})


def page_data(
    name: str,
    signatures: dict[str, Signature],
    example: str = "",
    names: Sequence[str] = (),
    languages: Languages = NO_LANGUAGES,
) -> dict[str, Any] | None:
    """Return what the page must know to ask; None if the version has no signature `translate` with options."""
    translate = signatures.get("translate")
    if translate is None or not is_askable(translate):
        return None
    tagged = ""
    if {SOURCE_LANGUAGE.name, TARGET_LANGUAGE.name} <= set(translate.defaults):
        tagged, example = languages.untagged(example)
    return {
        "model": name,
        "models": list(names),
        "options": [
            *(described(each) for each in given_by(translate.defaults)),
            *menus(languages, translate.defaults, tagged),
        ],
        "has_explain": "explain" in signatures,
        "has_paragraphs": PARAGRAPHS in translate.inputs,
        "explanation": None,
        "example": example,
    }


def is_askable(translate: Signature) -> bool:
    """Return whether a signature has the options from which the bounds of all follow."""
    return set(NEEDED) <= set(translate.defaults)


def given_by(defaults: Arrays) -> list[Input]:
    """Return the options of a signature with these defaults, and with the bounds that `export` gave them."""
    beam_size, longest = (int(plain(defaults[name])) for name in NEEDED)
    known = inputs_of(SearchOptions(beam_size=beam_size), longest)
    there = [each._replace(default=plain(defaults[each.name])) for each in known if each.name in defaults]
    return there + [each for each in (PREFIX, REQUIRED, FORBIDDEN, *INPUTS) if each.name in defaults]


def plain(array: np.ndarray) -> int | float:
    """Return the only number of an array; a float32 as it is written, 0.6 and not 0.60000002."""
    [value] = array
    return int(value) if array.dtype.kind == "i" else float(str(value))


def described(option: Input) -> dict[str, Any]:
    """Return an option as the page reads it: see `keras_transformer.page.page`."""
    shown = {"name": option.name, "default": option.default, "help": option.help, "group": option.group}
    if option.name in EXAMPLES:
        return shown | {"placeholder": EXAMPLES[option.name]}
    if option in (PREFIX, PROTECT):
        return shown
    return shown | {"lowest": option.lowest, "highest": option.highest, "is_whole": option.dtype.is_integer}


def menus(languages: Languages, defaults: Arrays, tagged: str) -> list[dict[str, Any]]:
    """Return the options of languages, among which the page lets choose, if a signature with these defaults has any.

    tagged: the language that the example asks for, with which a menu without a default begins.
    """
    options = []
    for side, given in ((SOURCE, SOURCE_LANGUAGE), (TARGET, TARGET_LANGUAGE)):
        codes, default = list(getattr(languages, side)), languages.default(side)
        if given.name in defaults and len(codes) > 1:
            initial = default or (tagged if side == languages.source_first else "")
            named = {"name": given.name, "help": given.help, "group": given.group}
            choices = codes if default else ["", *codes]
            options.append(named | {"default": default, "initial": initial, "choices": choices})
    return options
