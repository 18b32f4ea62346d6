"""Members of a JSON object where they stand in a text, so that all but their values can stay as it is written.

A parser makes 1.5 of 1.50, and one key of two that are equal.
"""

import json
import json.decoder
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

SPACE = " \t\r\n"  # of JSON


class Member(NamedTuple):
    """A member of a JSON object. start, end: where its value stands."""

    name: str
    value: Any
    start: int
    end: int


def members_of(line: str, start: int = 0) -> list[Member]:
    """Return the members of the JSON object that begins at a place of a line. An integer has no value."""
    members, place, decoder = [], start + 1, json.JSONDecoder(parse_int=len)
    while line[place := behind_space(line, place)] != "}":
        name, place = decoder.raw_decode(line, behind_space(line, place + (line[place] == ",")))
        place = behind_space(line, behind_space(line, place) + 1)  # behind the colon
        value, end = decoder.raw_decode(line, place)
        members.append(Member(name, value, place, end))
        place = end
    return members


def behind_space(line: str, place: int) -> int:
    """Return where the first character of a line is, from this place on, that is no white space."""
    while line[place : place + 1] and line[place] in SPACE:
        place += 1
    return place


def with_values(line: str, values: Mapping[str, Any], written: Callable[[Any], str]) -> str:
    """Return a line that is a JSON object with values in place of those of the same names, or else behind the others.

    written: returns how a value is written. All else stays as it is.
    """
    members, left, parts, reached = members_of(line, behind_space(line, 0)), dict(values), [], 0
    for member in members:
        if member.name in values:
            parts += [line[reached : member.start], written(values[member.name])]
            left.pop(member.name, None)
            reached = member.end
    added = ", ".join(f"{written(name)}: {written(value)}" for name, value in left.items())
    end = line.rindex("}")
    return "".join([*parts, line[reached:end].rstrip(SPACE), ", " * bool(members and added), added, "}"])
