"""Whether the variables of a SavedModel are all there, read without TensorFlow.

`variables.index` is a table of LevelDB: blocks of entries with shared beginnings of keys, an index of the blocks, and a
footer that ends in a magic number (https://github.com/google/leveldb/blob/main/doc/table_format.md). Each value is a
BundleEntryProto (tensorflow/core/protobuf/tensor_bundle.proto): 3 is the shard, 4 the offset, 5 the size.
"""

import collections
import pathlib
from collections.abc import Iterator

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # bytes
SHARD, OFFSET, SIZE = 3, 4, 5  # fields of BundleEntryProto
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how protobuf writes a field


def damage_in(folder: pathlib.Path) -> str | None:
    """Return what is wrong with the folder `variables` of a SavedModel; None if its files are there and complete."""
    index = folder / "variables.index"
    try:
        needed = bytes_by_shard(index.read_bytes())
    except OSError as error:
        return f"{index.name} cannot be read: {error.strerror}"
    except (ValueError, IndexError):
        return f"{index.name} is damaged"
    for shard in range(max(needed) + 1 if needed else 1):
        file = folder / f"variables.data-{shard:05d}-of-{max(needed, default=0) + 1:05d}"
        if not file.is_file():
            return f"{file.name} is missing"
        if file.stat().st_size < needed[shard]:
            return f"{file.name} has {file.stat().st_size:,} bytes of {needed[shard]:,}"
    return None


def bytes_by_shard(table: bytes) -> collections.Counter[int]:
    """Return how many bytes each file of data must have. Raises ValueError or IndexError if the table is damaged."""
    footer = table[-FOOTER:]
    if len(footer) < FOOTER or int.from_bytes(footer[-8:], "little") != MAGIC:
        raise ValueError("no footer")
    _, place = handle_at(footer, 0)
    index, _ = handle_at(footer, place)
    needed: collections.Counter[int] = collections.Counter()
    for value in values_in(table, index):
        block, _ = handle_at(value, 0)
        for entry in values_in(table, block):
            fields = numbers_in(entry)
            shard, end = fields.get(SHARD, 0), fields.get(OFFSET, 0) + fields.get(SIZE, 0)
            needed[shard] = max(needed[shard], end)
    return needed


def handle_at(data: bytes, place: int) -> tuple[tuple[int, int], int]:
    """Return the offset and the size of a block, and where the next handle begins."""
    offset, place = varint_at(data, place)
    size, place = varint_at(data, place)
    return (offset, size), place


def values_in(table: bytes, handle: tuple[int, int]) -> Iterator[bytes]:
    """Yield the values of a block, which must not be compressed: TensorFlow's are not."""
    offset, size = handle
    block = table[offset : offset + size]
    if len(block) < max(size, 4) or table[offset + size] != 0:  # the byte behind a block says how it is compressed
        raise ValueError("a block is cut off or compressed")
    end = size - 4 * (
        1 + int.from_bytes(block[-4:], "little")
    )  # of the entries; restart points and their number follow
    place = 0
    while place < end:
        _, place = varint_at(block, place)  # bytes that the key shares with the one before
        key, place = varint_at(block, place)
        length, place = varint_at(block, place)
        place += key
        yield block[place : place + length]
        place += length


def numbers_in(message: bytes) -> dict[int, int]:
    """Return the whole numbers of a protobuf message by field; others are skipped."""
    numbers, place = {}, 0
    while place < len(message):
        tag, place = varint_at(message, place)
        field, kind = tag >> 3, tag & 7
        if kind == VARINT:
            numbers[field], place = varint_at(message, place)
        elif kind == BYTES:
            length, place = varint_at(message, place)
            place += length
        elif kind in (FIXED32, FIXED64):
            place += 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"field {field} is of kind {kind}")
    return numbers


def varint_at(data: bytes, place: int) -> tuple[int, int]:
    """Return the number that is written 7 bits a byte, the lowest first, and where it ends."""
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place
