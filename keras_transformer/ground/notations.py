"""JSON and TOML of files that may be damaged, or come from strangers."""

import json
import tomllib
from typing import Any

REGISTERED_NAME = "registered_name"  # the key that tells Keras' config.json from those of other libraries


def json_of(text: str | bytes, **options: Any) -> Any:
    """Return what JSON says; `options` are those of `json.loads`. Raises ValueError if it is none.

    Python gives up with a RecursionError at thousands of lists inside of each other, which no handler expects.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def toml_of(text: str) -> dict[str, Any]:
    """Return what TOML says. Raises tomllib.TOMLDecodeError, a ValueError, if it is none.

    Python raises a RecursionError at many lists inside of each other, and a mere ValueError at a number of thousands of
    digits.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("Lists or tables are nested too deeply") from None
    except ValueError:
        raise tomllib.TOMLDecodeError("A number has thousands of digits") from None
