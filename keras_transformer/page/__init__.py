"""The page: a translation and how the model found it, as one HTML text that loads nothing.

`keras-transformer serve` shows it at `/`; with an explanation inside, it is a file that needs no server.
"""

import base64
import functools
import hashlib
import importlib.resources
import json
import re
from typing import Any

STYLES = "page.css", "figures.css"
SCRIPTS = (  # in the order in which they are run; together they are one module
    "elements.js",
    "pieces.js",
    "answers.js",
    "requests.js",
    "options.js",
    "translations.js",
    "attention.js",
    "tree.js",
    "beam.js",
    "paragraphs.js",
    "page.js",
)


def page(data: dict[str, Any]) -> str:
    """Return the page as HTML.

    data: "model" is its name; "models", which may be missing, are the names that the page lets choose from;
    "options" are those of the signature `translate`, each with name, default, help, group, and, unless it is a text,
    lowest, highest and is_whole, or a placeholder if it is a text of several lines, or choices, and the
    initial one, if it is one of them;
    "has_explain": the server has the signature `explain`;
    "has_paragraphs": it translates whole texts, as `export/server/paragraphs.py` says;
    "explanation" is None if the page asks the server from which it came; otherwise an object that `answers.js`
    describes, and the page asks no server.
    """
    parts = {
        "policy": content_security_policy(data),
        "style": text_of(STYLES),
        "script": text_of(SCRIPTS),
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),  # ASCII: U+2028 and U+2029 are escaped
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda name: parts[name[1]], text_of(["page.html"]))


def content_security_policy(data: dict[str, Any]) -> str:
    """Return the policy that lets the page run its own script and ask its own server, if any, and nothing else.

    See https://www.w3.org/TR/CSP3/. Code that is injected in spite of all escaping does not run.
    """
    server = "'self'" if data["explanation"] is None else "'none'"
    return (
        f"default-src 'none'; script-src '{digest(text_of(SCRIPTS))}'; style-src '{digest(text_of(STYLES))}'; "
        f"img-src data:; connect-src {server}; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def text_of(names: tuple[str, ...] | list[str]) -> str:
    """Return files of this package, one after the other."""
    return "\n".join(map(text_of_file, names))


@functools.cache
def text_of_file(name: str) -> str:
    return (importlib.resources.files(__name__) / name).read_text(encoding="utf-8")
