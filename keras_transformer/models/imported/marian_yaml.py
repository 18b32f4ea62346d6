"""The two kinds of YAML that Marian writes, read line by line: a vocabulary, and options.

A parser of YAML takes the pieces `on`, `0` and `1.5` of a vocabulary for a truth value and numbers, and loses them.
"""

import os
import pathlib
import re
from typing import Any

from keras_transformer.ground.notations import json_of
from keras_transformer.models.imported.errors import refusing_damage

ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
CHARACTERS = {  # of YAML 1.2, section 5.7
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
OPTION = re.compile(r"(?<![\w-])([\w-]++):(?:\s++(.*))?")
ITEM = re.compile(r"(?<!\s)\s*+-\s++(.*)")
NUMBERS = {"true": True, "false": False, "null": None, "~": None}


def read_vocabulary(path: str | os.PathLike) -> list[str]:
    """Return the pieces of a vocab.yml or vocab.json by their ids, which must be 0, 1, 2 and so on.

    Raises ImportedModelError, with the number of the line, if it is damaged, and OSError if it cannot be read.
    """
    with refusing_damage(path, "a vocabulary"):
        text = pathlib.Path(path).read_bytes().decode("utf-8-sig")
        entries = json_entries(text) if text.lstrip().startswith("{") else yaml_entries(text)
        ids, pieces = {}, {}
        for piece, number in entries:
            if type(number) is not int or number < 0:
                raise ValueError(f"the piece {piece!r:.60} has the id {number!r}")
            if piece in ids or number in pieces:
                raise ValueError(f"the piece {piece!r:.60} or its id {number} is there twice")
            ids[piece], pieces[number] = number, piece
        if not pieces or max(pieces) != len(pieces) - 1:
            missing = next(number for number in range(len(pieces) + 1) if number not in pieces)
            raise ValueError(f"it has {len(pieces):,} pieces, and none with the id {missing}")
        return [pieces[number] for number in range(len(pieces))]


def json_entries(text: str) -> list[tuple[str, Any]]:
    """Return the pieces and ids of an object of JSON, in order and with those that are there twice."""
    return json_of(text, object_pairs_hook=list)


def yaml_entries(text: str) -> list[tuple[str, int]]:
    """Return the pieces and ids of lines `piece: id`; a piece may stand in quotes."""
    entries = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or (number == 1 and line.strip() == "---"):
            continue
        piece, colon, index = line.rpartition(":")
        if not colon or not index.strip().isascii() or not index.strip().isdecimal():
            raise ValueError(f"its line {number:,} is {line!r:.60}, expected a piece, a colon and an id")
        entries.append((unquoted(piece), int(index)))
    return entries


def unquoted(text: str) -> str:
    """Return a scalar of YAML as the text that it means. Raises ValueError for one that means none."""
    text = text.strip(" ")
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        written = ESCAPE.sub(lambda match: character(match[1]), text[1:-1])
        return written.encode("utf-16", "surrogatepass").decode("utf-16")  # two halves, as JSON writes them, are one
    return text


def character(escape: str) -> str:
    """Return what stands for a backslash and `escape`. Raises ValueError if YAML knows no such escape."""
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape not in CHARACTERS:
        raise ValueError(f"YAML has no escape \\{escape}")
    return CHARACTERS[escape]


def read_options(content: bytes, name: str | os.PathLike) -> dict[str, Any]:
    """Return Marian's options, as it writes them beside a model and into it: `key: value`, or lines `- value` below.

    The NULs at the end of those in a model are left out. `name` is what an error names. Raises ImportedModelError if
    the content is damaged.
    """
    with refusing_damage(name, "a list of Marian's options"):
        options, key = {}, None
        for number, line in enumerate(content.decode("utf-8").rstrip("\0").split("\n"), start=1):
            if match := OPTION.fullmatch(line.rstrip()):
                key, value = match[1], (match[2] or "").strip()
                options[key] = value_of(value)
            elif key is not None and (match := ITEM.fullmatch(line.rstrip())):
                options[key] = [*(options[key] or []), value_of(match[1])]
            elif line.strip() == "[]" and key is not None:
                options[key] = []
            elif line.strip() and not line.startswith("#"):
                raise ValueError(f"its line {number} is {line!r:.60}")
        return options


def value_of(text: str) -> Any:
    """Return a scalar, or a list of them in brackets: numbers, true and false, null or nothing as None, or text."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [value_of(part) for part in text[1:-1].split(",") if part.strip()]
    if not text or text in NUMBERS:
        return NUMBERS.get(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return unquoted(text)
