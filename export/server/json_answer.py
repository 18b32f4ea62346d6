"""The JSON of an answer, by row or by column, in parts.

Python lets no other thread run while it writes one text as JSON, so a long one is written part by part.
"""

import base64
import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .errors import too_big
from .signature import Arrays, size_of

CHUNK = 3 << 14  # bytes of outputs that are written, and sent, at once; a multiple of 3 for base64

Json = Any  # what json.dumps takes


def by_rows(outputs: Arrays) -> Iterator[str]:
    """Yield the pieces of an answer by row: a list of objects, or of the values of the only output."""
    yield '{"predictions": '
    if len(outputs) == 1:
        [(name, array)] = outputs.items()
        yield from list_of(name, array)
    else:
        yield from list_of_objects(outputs)
    yield "}"


def by_columns(outputs: Arrays) -> Iterator[str]:
    """Yield the pieces of an answer by column: an object of lists, or the list of the only output."""
    yield '{"outputs": '
    yield from object_of(outputs) if len(outputs) > 1 else value_of(*next(iter(outputs.items())))
    yield "}"


def list_of_objects(outputs: Arrays) -> Iterator[str]:
    """Yield the pieces of a list with an object per row."""
    rows = len(next(iter(outputs.values())))
    yield "["
    for start, stop in slices(rows, size_of(outputs)):
        part = {name: array[start:stop] for name, array in outputs.items()}
        yield ", " if start else ""
        if size_of(part) <= 2 * CHUNK:
            columns = [json_of(name, array) for name, array in part.items()]
            yield as_text([dict(zip(part, row, strict=True)) for row in zip(*columns, strict=True)])[1:-1]
            continue
        for row in range(stop - start):
            yield ", " if row else ""
            yield from object_of({name: array[row] for name, array in part.items()})
    yield "]"


def object_of(values: Arrays) -> Iterator[str]:
    """Yield the pieces of an object."""
    for number, (name, value) in enumerate(values.items()):
        yield f"{', ' if number else '{'}{as_text(name)}: "
        yield from value_of(name, value)
    yield "}"


def list_of(name: str, array: np.ndarray) -> Iterator[str]:
    """Yield the pieces of a list with the elements of an output."""
    yield "["
    for start, stop in slices(len(array), size_of({name: array})):
        part = array[start:stop]
        yield ", " if start else ""
        if size_of({name: part}) <= 2 * CHUNK:
            yield as_text(json_of(name, part))[1:-1]
            continue
        for number, value in enumerate(part):
            yield ", " if number else ""
            yield from value_of(name, value)
    yield "]"


def slices(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of slices of some CHUNK bytes each, if rows of `size` bytes together are equally long."""
    step = max(1, rows * CHUNK // max(size, 1))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def value_of(name: str, value: np.ndarray | np.generic | bytes) -> Iterator[str]:
    """Yield the pieces of an element of an output, or of the whole output."""
    if isinstance(value, np.ndarray) and value.ndim:
        yield from list_of(name, value)
    elif isinstance(value, bytes) and len(value) > CHUNK:
        yield from text_of(value, name.endswith("_bytes"))
    else:
        yield as_text(json_of(name, np.asarray(value, object if isinstance(value, bytes) else None)))


def text_of(value: bytes, is_binary: bool) -> Iterator[str]:
    """Yield the pieces of a long string, or of {"b64": ...}."""
    yield '{"b64": "' if is_binary else '"'
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    for start in range(0, len(value), CHUNK):
        part = value[start : start + CHUNK]
        is_last = start + CHUNK >= len(value)
        yield base64.b64encode(part).decode() if is_binary else as_text(decode(part, is_last))[1:-1]
    yield '"}' if is_binary else '"'


def json_of(name: str, array: np.ndarray) -> Json:
    """Return an output as nested lists."""
    if array.dtype != object:
        return array.tolist()
    is_binary = name.endswith("_bytes")

    def text(value: Json) -> Json:
        if isinstance(value, list):
            return [text(element) for element in value]
        return {"b64": base64.b64encode(value).decode()} if is_binary else value.decode("utf-8", "replace")

    return text(array.tolist())


def as_text(content: Json) -> str:
    """Return JSON as text that is not only ASCII."""
    return json.dumps(content, ensure_ascii=False)


def encoded(pieces: Iterable[str], most: int) -> list[bytes]:
    """Return text in UTF-8, in parts of at least CHUNK bytes. Raises RequestError if there are more than `most`."""
    chunks, waiting, length, begun = [], [], 0, 0
    for piece in pieces:
        waiting.append(piece.encode("utf-8"))
        length += len(waiting[-1])
        if length > most:
            raise too_big(most)
        if length - begun >= CHUNK:
            chunks.append(b"".join(waiting))
            waiting, begun = [], length
    return [*chunks, b"".join(waiting)]
