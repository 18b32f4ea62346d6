"""JSON lines and tab-separated values: a record per line, whose fields have names."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground import json_members
from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.ground.files import BYTE_ORDER_MARK, read_whole_lines, with_line_feeds
from keras_transformer.pieces.batching import SURROGATE
from keras_transformer.text.formats.parts import CODE_UNITS, Field, Notation, Part

ESCAPE = re.compile(rf"{CODE_UNITS}|\\.")
JSON = Notation(ESCAPE, lambda raw: json.loads(f'"{raw}"'), lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
TSV = Notation(re.compile(r"(?!)"), str, lambda text: text.replace("\t", " "))
MOST_DIGITS = 10  # of the number of a column


def jsonl_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of JSON lines: the texts of the fields of these names. A field that is null stays so.

    Raises InputError, with the number of the line, for one that is no JSON object, that lacks a field, or in which it
    is no text.
    """
    wanted = required(fields, "jsonl", "--field text")
    for number, line in enumerate(read_whole_lines(stream, name), start=1):
        where = f"{name}, line {number:,}"
        if not line.strip():
            yield line
            continue
        members = members_of(line, where)
        names = [member.name for member in members]
        if lacking := [each for each in wanted if each not in names]:
            raise InputError(f"{where} has no field {lacking[0]!r}; it has {', '.join(names) or 'none'}.")
        reached = 0
        for member in members:
            if member.name not in wanted or member.value is None:
                continue
            if not isinstance(member.value, str):
                raise InputError(
                    f"{where}: the field {member.name!r} is {line[member.start : member.end]:.40}, not a text."
                )
            check_whole(member.value, f"{where}: the field {member.name!r}")
            yield line[reached : member.start + 1]
            yield Field(JSON.passage(line[member.start + 1 : member.end - 1]))
            reached = member.end - 1
        yield line[reached:]


def check_whole(text: str, name: str) -> None:
    """Raises InputError, which begins with the name of a text of JSON, if it has half of a character."""
    if half := SURROGATE.search(text):
        raise InputError(f"{name} has \\u{ord(half[0]):x}, half of a character: a text was cut inside of it.")


def members_of(line: str, where: str) -> list[json_members.Member]:
    """Return the members of a JSON object in a line. Raises InputError, which begins with `where`, if it is none."""
    start = json_members.behind_space(line, int(line.startswith(BYTE_ORDER_MARK)))
    try:
        content = json.loads(line[start:], parse_int=len)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{where} is not a JSON object with fields, but {line.strip():.40}.")
    return json_members.members_of(line, start)


def tsv_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of tab-separated values: the texts of these fields.

    Fields are numbers, from 1; or names, which the first line has. Raises InputError, with the number of the line, for
    one that has too few fields.
    """
    wanted, numbers = required(fields, "tsv", "--field 2, or --field text if the first line has names"), []
    if is_numbered := all(field.isdecimal() and len(field) < MOST_DIGITS for field in wanted):
        numbers = [int(field) for field in wanted]
        if 0 in numbers:
            raise UserError("Fields are counted from 1: there is no field 0.")
    for number, line in enumerate(with_line_feeds(read_whole_lines(stream, name), name), start=1):
        content = line.rstrip("\r\n")
        values = content.split("\t")
        if number == 1 and not is_numbered:
            names = [values[0].removeprefix(BYTE_ORDER_MARK), *values[1:]]
            if unknown := [field for field in wanted if field not in names]:
                raise InputError(f"{name}, line 1 has no field {unknown[0]!r}; it has {', '.join(names) or 'none'}.")
            numbers = [number for number, each in enumerate(names, start=1) if each in wanted]
            yield line
            continue
        if content and len(values) < max(numbers):
            count = f"{len(values)} field{'s' * (len(values) > 1)}"
            raise InputError(f"{name}, line {number:,} has {count}, and field {max(numbers)} is to be translated.")
        for place, value in enumerate(values, start=1):
            yield Field(TSV.passage(value)) if place in numbers and content else value
            yield "\t" if place < len(values) else line[len(content) :]


def required(fields: Sequence[str], kind: str, example: str) -> Sequence[str]:
    """Return the fields. Raises UserError if there are none."""
    if not fields:
        raise UserError(f"--format {kind} needs the fields that are translated, such as {example}.")
    return fields
