"""model.safetensors and model.npz are read as they were written; damaged ones are refused in a sentence."""

import json
import struct
import warnings
import zipfile

import numpy as np
import pytest

from keras_transformer.models.imported.arrays import read_json, read_npz, read_safetensors
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage
from tests.support.damage import cuts, flips
from tests.support.marian_files import npz, safetensors

ARRAYS = {
    "a.weight": np.arange(12, dtype="<f4").reshape(3, 4) / 7,
    "b.bias": np.array([[1.5, -2, 65504]], "<f2"),
    "c": np.array(0.1, "<f8"),
    "empty": np.zeros((0, 4), "<f4"),
}


def same(arrays, expected):
    assert list(arrays) == list(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == np.float32
        np.testing.assert_array_equal(arrays[name], array.astype(np.float32))


def test_safetensors_are_read_as_float32(tmp_path):
    (tmp_path / "m.safetensors").write_bytes(safetensors(ARRAYS))
    same(read_safetensors(tmp_path / "m.safetensors"), ARRAYS)


def test_a_file_may_end_with_its_header(tmp_path):
    arrays = {"empty": ARRAYS["empty"]}
    (tmp_path / "m.safetensors").write_bytes(safetensors(arrays))
    same(read_safetensors(tmp_path / "m.safetensors"), arrays)


def test_whatever_a_parser_raises_is_damage_but_not_that_a_file_cannot_be_read():
    for error in (OSError("ends early"), IndexError(), RecursionError("deep")):
        with pytest.raises(ImportedModelError, match="^m is damaged, or is not a file"), refusing_damage("m", "a file"):
            raise error
    for error in (FileNotFoundError(2, "No such file", "m"), ImportedModelError("It says why.")):
        with pytest.raises(type(error)) as raised, refusing_damage("m", "a file"):
            raise error
        assert raised.value is error


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    exact = np.array([1.0, -3.5, 2.0**-100], np.float32)
    (tmp_path / "m").write_bytes(safetensors({"a": (exact.view(np.uint32) >> 16).astype("<u2")}))
    np.testing.assert_array_equal(read_safetensors(tmp_path / "m")["a"], exact)


def test_an_npz_is_read_with_the_text_in_it(tmp_path):
    text = np.frombuffer(b"type: transformer\n\0", np.int8)
    (tmp_path / "m.npz").write_bytes(npz({**ARRAYS, "special:model.yml": text}))
    arrays = dict(read_npz(tmp_path / "m.npz"))
    assert arrays.pop("special:model.yml").tobytes() == text.tobytes()
    same(arrays, ARRAYS)


CONTENTS = {"m.safetensors": (read_safetensors, safetensors(ARRAYS)), "m.npz": (read_npz, npz(ARRAYS))}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_ends_early_is_refused(tmp_path, name):
    read, content = CONTENTS[name]
    for part in cuts(content):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(ImportedModelError, match=f"{name} is damaged, or is not .*Copy it again") as refusal:
            dict(read(tmp_path / name))
        assert "\n" not in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTENTS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path, name):
    read, content = CONTENTS[name]
    for damaged in flips(content):
        (tmp_path / name).write_bytes(damaged)
        try:
            dict(read(tmp_path / name))
        except ImportedModelError as error:
            assert "\n" not in str(error)


def test_a_missing_file_is_named_by_the_system(tmp_path):
    for read in (read_safetensors, read_npz, read_json):
        with pytest.raises(FileNotFoundError) as error:
            read(tmp_path / "none")
        assert error.value.filename is not None


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "needs 12 bytes"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "from 4 to 12 of the 8"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}, "needs 8 bytes"),
        ({"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}, r"the shape \[-1, -2\]"),
        ({"dtype": "F32", "shape": [10**30], "data_offsets": [0, 8]}, "bytes"),
        ({"dtype": "F32", "shape": [2]}, "data_offsets"),
        ({"dtype": "I8", "shape": [8], "data_offsets": [0, 8]}, "array a is of type I8: only weights that are floats"),
        (7, "subscriptable"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, entry, why):
    text = json.dumps({"a": entry}).encode()
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(ImportedModelError, match=why):
        read_safetensors(tmp_path / "m")


def test_a_header_without_end_is_refused(tmp_path):
    (tmp_path / "m").write_bytes(b"\xff" * 20)
    with pytest.raises(ImportedModelError, match="its header has"):
        read_safetensors(tmp_path / "m")


def test_python_objects_in_an_npz_are_not_opened(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.array([print, 1], dtype=object))
    with pytest.raises(ImportedModelError, match="allow_pickle"):
        dict(read_npz(tmp_path / "m.npz"))
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "text").write_text("text\n")  # NumPy advises to load it "unsafely"
    for name in ("one.npy", "text"):
        with pytest.raises(ImportedModelError, match=f"{name} is damaged, .*: it is no zip archive. Copy it again"):
            read_npz(tmp_path / name)


def test_an_npz_that_would_fill_the_memory_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(10_000_000))
    with pytest.raises(ImportedModelError, match="it would unpack to 10,000,000 bytes"):
        read_npz(tmp_path / "m.npz")


@pytest.mark.parametrize("text", ["[1]", "{", "\xff", "", "[" * 100_000])
def test_json_that_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ImportedModelError, match="config.json is damaged, or is not an object of JSON"):
        read_json(tmp_path / "config.json")


def header_of(entry, data=b"", length=None):
    text = json.dumps(entry).encode() if not isinstance(entry, bytes) else entry
    return struct.pack("<Q", len(text) if length is None else length) + text + data


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "content, why",
    [
        (b"1234567", "it has fewer than 8 bytes"),
        (header_of({}, length=1_000), "its header has 1,000 bytes, and the file 10"),
        (header_of({}, length=3), "its header has 3 bytes, and the file 10"),
        (header_of([]), "its header is not an object of JSON"),
        (
            header_of({"a": ENTRY | {"shape": [True]}}, bytes(4)),
            "the array a has the shape \\[True\\] from byte 0 to 4",
        ),
        (header_of({"a": ENTRY | {"shape": [-1]}}, bytes(4)), "the array a has the shape"),
        (
            header_of({"a": ENTRY | {"data_offsets": [4, 0]}}, bytes(4)),
            "needs 4 bytes, from 4 to 0 of the 4 that there",
        ),
        (header_of({"a": ENTRY}, bytes(3)), "the array a needs 4 bytes, from 0 to 4 of the 3 that there are"),
        (header_of({"a": ENTRY | {"shape": [2]}}, bytes(8)), "the array a needs 8 bytes, from 0 to 4 of the 8"),
    ],
)
def test_a_header_that_does_not_fit_is_named_with_its_numbers(tmp_path, content, why):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ImportedModelError, match=f"m is damaged, or is not a file of safetensors: .*{why}"):
        read_safetensors(tmp_path / "m")


def test_a_float64_that_is_too_large_is_infinite_without_a_warning(tmp_path):
    (tmp_path / "m").write_bytes(safetensors({"a": np.array([1e300])}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_safetensors(tmp_path / "m")["a"] == np.inf


def test_an_npz_that_unpacks_to_much_more_is_refused_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", a=np.zeros(1_000_000, np.float32))
    with pytest.raises(ImportedModelError, match="it would unpack to 4,000,1.. bytes"):
        read_npz(tmp_path / "m.npz")


def test_an_object_of_json_may_begin_with_a_mark_and_is_an_object(tmp_path):
    (tmp_path / "m").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "m") == {"a": 1}
    (tmp_path / "m").write_bytes(b"[1]")
    with pytest.raises(ImportedModelError, match="m is damaged, or is not an object of JSON: it holds something else."):
        read_json(tmp_path / "m")
