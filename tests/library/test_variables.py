"""The table of a SavedModel's variables, byte by byte; test_exports.py has what TensorFlow writes."""

import pytest

from keras_transformer.doctor.variables import FOOTER, MAGIC, bytes_by_shard, damage_in, numbers_in


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, kind, content):
    return varint(number << 3 | kind) + content


def block(*values, key=b"k", kind=0):
    """A block whose entries have one key and these values, one restart point, and the byte of its compression."""
    entries = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for value in values)
    return entries + bytes(4) + (1).to_bytes(4, "little"), bytes([kind]) + bytes(4)


def table(*entries, kind=0):
    """A table of one block of these entries, its index and its footer."""
    content, behind = block(*entries, kind=kind)
    index, behind_index = block(varint(0) + varint(len(content)))
    start = len(content + behind)
    footer = varint(0) + varint(0) + varint(start) + varint(len(index))
    footer = footer + bytes(FOOTER - 8 - len(footer)) + MAGIC.to_bytes(8, "little")
    return content + behind + index + behind_index + footer


def entry(shard, offset, size):
    """A BundleEntryProto with a type, a shape and a checksum beside what counts."""
    parts = [field(1, 0, varint(1)), field(2, 2, varint(2) + b"xy")]
    parts += [field(3, 0, varint(shard)), field(4, 0, varint(offset)), field(5, 0, varint(size))]
    return b"".join([*parts, field(6, 5, bytes(4)), field(9, 1, bytes(8))])


def test_the_numbers_of_a_message_are_read_and_all_else_is_passed():
    assert numbers_in(entry(2, 300, 70_000)) == {1: 1, 3: 2, 4: 300, 5: 70_000}
    for kind in (3, 4, 6, 7):
        with pytest.raises(ValueError, match=f"field 7 is of kind {kind}"):
            numbers_in(entry(2, 300, 70_000) + field(7, kind, b""))


def test_a_file_of_data_has_the_bytes_up_to_the_end_of_its_last_tensor():
    assert bytes_by_shard(table(entry(0, 0, 8), entry(1, 8, 300), entry(1, 0, 8), entry(0, 8, 4))) == {0: 12, 1: 308}


@pytest.mark.parametrize("damaged", [table(kind=1), table(entry(0, 0, 1), kind=1), table()[-20:], b"", bytes(FOOTER)])
def test_a_table_that_is_compressed_or_has_no_footer_is_damaged(damaged):
    with pytest.raises((ValueError, IndexError)):
        bytes_by_shard(damaged)


def test_every_file_of_data_is_needed_and_may_have_more_bytes_than_its_tensors(tmp_path):
    (tmp_path / "variables.index").write_bytes(table(entry(0, 0, 8), entry(1, 0, 1000)))
    assert damage_in(tmp_path) == "variables.data-00000-of-00002 is missing"
    (tmp_path / "variables.data-00000-of-00002").write_bytes(bytes(9))
    assert damage_in(tmp_path) == "variables.data-00001-of-00002 is missing"
    (tmp_path / "variables.data-00001-of-00002").write_bytes(bytes(999))
    assert damage_in(tmp_path) == "variables.data-00001-of-00002 has 999 bytes of 1,000"
    (tmp_path / "variables.data-00001-of-00002").write_bytes(bytes(1000))
    assert damage_in(tmp_path) is None
    (tmp_path / "variables.index").write_bytes(table())
    assert damage_in(tmp_path) == "variables.data-00000-of-00001 is missing"
    for damaged in (b"short", table(entry(0, 0, 8), entry(0, 8, 1) + field(7, 3, b"")), table(field(3, 7, b""))):
        (tmp_path / "variables.index").write_bytes(damaged)
        assert damage_in(tmp_path) == "variables.index is damaged"
