"""The error of every benchmark, and the check of a list of names in an option."""

from collections.abc import Iterable

from keras_transformer.ground.errors import UserError


class BenchmarkError(UserError):
    """A benchmark that cannot run; the message names what is missing and what to do."""


def names_in(text: str, known: Iterable[str], kind: str) -> list[str]:
    """Return the names in a comma-separated list. Raises BenchmarkError for one that is not known."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise BenchmarkError(f"There is no {kind} {unknown[0]!r}; there are {', '.join(known)}.")
    return names
