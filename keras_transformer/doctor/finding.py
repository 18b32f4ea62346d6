"""What was found, and what to do about it: one line of `keras-transformer doctor`."""

from typing import NamedTuple

OK, NOTE, MISSING = "ok", "note", "MISSING"


class Finding(NamedTuple):
    """state: OK; NOTE, something that works without but may surprise; or MISSING, something that is needed.

    text: what was found. advice: what to do, a sentence or a command; "" if there is nothing to do.
    """

    state: str
    text: str
    advice: str = ""


def ok(text: str, advice: str = "") -> Finding:
    return Finding(OK, text, advice)


def note(text: str, advice: str) -> Finding:
    return Finding(NOTE, text, advice)


def missing(text: str, advice: str) -> Finding:
    return Finding(MISSING, text, advice)
