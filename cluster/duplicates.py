"""Which pairs came before, in the whole corpus: by two sorts of hashes over all machines, while texts stay in place.

    part 3, line 7            hash of its texts            sorted by it: the first of equals is kept
    hash, part 3, line 7      ->  part 3, line 7, no       sorted back: a mark beside each line, in the order of lines

Spark sorts on disk, so no machine holds more than its share: 16 bytes and two numbers for a line.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .formats import Format, RowError

REPEATED = "repeated"  # the third text of a row that came before
Key = tuple[bytes, int, int]  # a hash of a row, the number of its part, and its place in it


class MarkedRows(NamedTuple):
    """Lines as another format has them, each with whether it came before: a further text, REPEATED or ""."""

    format: Format

    def read(self, line: tuple[Any, bool]) -> tuple[str, ...]:
        return (*self.format.read(line[0]), REPEATED if line[1] else "")

    def write(self, line: tuple[Any, bool], outputs: dict[str, Any]) -> Any:
        return self.format.write(line[0], outputs)

    def refuse(self, line: tuple[Any, bool], names: Iterable[str], reason: str) -> Any:
        return self.format.refuse(line[0], names, reason)

    def is_refused(self, line: Any) -> bool:
        return self.format.is_refused(line)


def marked(lines: Any, format: Format) -> Any:
    """Return the lines of an RDD, each with whether the same texts came before it, in the order of the lines."""
    parts = lines.getNumPartitions()

    def keys_of(part: int, rows: Iterable[Any]) -> Iterator[tuple[Key, None]]:
        for place, row in enumerate(rows):
            yield (hash_of(format, row) or unique(part, place), part, place), None

    by_hash = lines.mapPartitionsWithIndex(keys_of).repartitionAndSortWithinPartitions(parts, part_of_hash)
    by_place = by_hash.mapPartitions(repeated).repartitionAndSortWithinPartitions(parts, part_of_place)
    return lines.zip(by_place.values())


def hash_of(format: Format, line: Any) -> bytes | None:
    """Return a hash of the texts of a line, the same for the same texts; None if it has none."""
    try:
        texts = format.read(line)
    except RowError:
        return None
    return hashlib.blake2b(repr(texts).encode(), digest_size=16).digest()


def unique(part: int, place: int) -> bytes:
    """Return what no other line has, and no hash, which has 16 bytes."""
    return f"line {part} {place}".encode().rjust(17)


def part_of_hash(key: Key) -> int:
    """Return a number by which Spark chooses the part of a key: equal hashes come together."""
    return int.from_bytes(key[0])


def part_of_place(place: tuple[int, int]) -> int:
    return place[0]


def repeated(keys: Iterable[tuple[Key, None]]) -> Iterator[tuple[tuple[int, int], bool]]:
    """Yield of sorted keys the part and place of each, and whether a key with the same hash came before it."""
    before = None
    for (digest, part, place), _ in keys:
        yield (part, place), digest == before
        before = digest
