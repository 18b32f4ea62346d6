"""One signature of a LiteRT file as a file of its own.

An interpreter prepares everything that its file has, weights included, for each loop of each signature: of a model of
20 MB with 17 signatures it takes 600 MB. The signatures of a file that an export wrote share its weights, so a part of
it is the whole with another list of subgraphs. Fields have the numbers of LiteRT's schema.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from flatbuffers import number_types
from flatbuffers.table import Table

from keras_transformer.runs.lite_folder import IDENTIFIER

SUBGRAPHS, SIGNATURES = 2, 7  # fields of Model
OPERATORS = 3  # of SubGraph
KIND, OPTIONS = 3, 4  # of Operator: the kind of its options, and these
CALLING = (92, 93)  # kinds of options of IF and WHILE, whose fields 0 and 1 are numbers of subgraphs
KEY, SUBGRAPH = 2, 4  # of SignatureDef
NUMBER = struct.Struct("<I")


class Elements(NamedTuple):
    """A list of tables in a file: where its first entry stands, and the tables."""

    start: int
    tables: list[Table]


def one_signature(file: bytearray, key: str) -> bytes:
    """Return a file that has one signature of `file` alone, and the subgraphs that it calls. `file` is changed.

    Raises ValueError if the file has no such signature, or if it is damaged.
    """
    try:
        if file[4:8] != IDENTIFIER:
            raise ValueError("It is no LiteRT file.")
        model = Table(file, NUMBER.unpack_from(file)[0])
        subgraphs, signatures = elements(model, SUBGRAPHS), elements(model, SIGNATURES)
        signature = next((each for each in signatures.tables if name(each) == key.encode()), None)
        if signature is None:
            raise ValueError(f"It has no signature {key}.")
        firsts = places(signature, SUBGRAPH)  # none: it is 0
        needed = [NUMBER.unpack_from(file, place)[0] for place in firsts] or [0]
        for number in needed:  # which grows meanwhile
            called = (NUMBER.unpack_from(file, place)[0] for place in calls(subgraphs.tables[number]))
            needed += [each for each in dict.fromkeys(called) if each not in needed]
        for number in needed:
            for place in calls(subgraphs.tables[number]):
                NUMBER.pack_into(file, place, needed.index(NUMBER.unpack_from(file, place)[0]))
        for place in firsts:
            NUMBER.pack_into(file, place, 0)
        keep(file, subgraphs.start, [subgraphs.tables[number] for number in needed])
        keep(file, signatures.start, [signature])
    except (struct.error, IndexError, TypeError) as error:
        raise ValueError(f"It is damaged: {error}.") from None
    return bytes(file)


def keep(file: bytearray, start: int, tables: list[Table]) -> None:
    """Let a list of tables have these alone. They stand behind the list, as all that a flatbuffer refers to."""
    NUMBER.pack_into(file, start - NUMBER.size, len(tables))
    for index, table in enumerate(tables):
        place = start + NUMBER.size * index
        NUMBER.pack_into(file, place, table.Pos - place)


def calls(subgraph: Table) -> Iterator[int]:
    """Yield where the numbers of the subgraphs stand that a subgraph calls."""
    for operator in elements(subgraph, OPERATORS).tables:
        for kind in places(operator, KIND):
            if operator.Bytes[kind] in CALLING:
                [options] = places(operator, OPTIONS)
                called = Table(operator.Bytes, operator.Indirect(options))
                yield from (*places(called, 0), *places(called, 1))


def elements(table: Table, field: int) -> Elements:
    """Return the tables in a field, which is a list of them."""
    offset = slot(table, field)
    start = table.Vector(offset)
    entries = range(start, start + NUMBER.size * table.VectorLen(offset), NUMBER.size)
    return Elements(start, [Table(table.Bytes, table.Indirect(entry)) for entry in entries])


def name(signature: Table) -> bytes:
    """Return the key of a signature."""
    [place] = places(signature, KEY)
    return signature.String(place)


def places(table: Table, field: int) -> list[int]:
    """Return where a field of a table stands; no place if it has its default value."""
    offset = slot(table, field)
    return [table.Pos + offset] if offset else []


def slot(table: Table, field: int) -> int:
    """Return where a field stands in its table, 0 if it has its default value."""
    return table.Offset(2 * number_types.VOffsetTFlags.bytewidth + field * number_types.VOffsetTFlags.bytewidth)
