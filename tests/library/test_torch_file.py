"""pytorch_model.bin is read without PyTorch, and nothing that a hostile one names is ever called."""

import io
import zipfile

import numpy as np
import pytest

from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.torch_file import (
    Storage,
    StorageType,
    View,
    WeightsUnpickler,
    array_of,
    read_torch,
)
from tests.support.damage import cuts, flips
from tests.support.marian_files import MAGIC, pickled, text_opcode, torch_archive, torch_before_1_6

ARRAYS = {
    "a.weight": np.arange(12, dtype="<f4").reshape(3, 4) / 7,
    "transposed": np.arange(6, dtype="<f4").reshape(2, 3).T,
    "half": np.array([[1.5, -2, 65504]], "<f2"),
    "double": np.array(0.1, "<f8"),
}
WRITERS = {"archive": torch_archive, "before_1_6": torch_before_1_6}


def as_written(array):
    """The array whose numbers lie in memory as `tobytes` writes them."""
    return np.ascontiguousarray(array)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_both_formats_are_read(tmp_path, write):
    arrays = {name: as_written(array) for name, array in ARRAYS.items()}
    (tmp_path / "m.bin").write_bytes(write(arrays))
    read = read_torch(tmp_path / "m.bin")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == np.float32
        np.testing.assert_array_equal(read[name], array.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_that_ends_early_is_refused(tmp_path, write):
    for part in cuts(write({"a": ARRAYS["a.weight"]})):
        (tmp_path / "m.bin").write_bytes(part)
        with pytest.raises(ImportedModelError, match="m.bin is damaged, or is not a file of PyTorch's weights"):
            dict(read_torch(tmp_path / "m.bin"))


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path, write):
    for damaged in flips(write(ARRAYS), 400):
        (tmp_path / "m.bin").write_bytes(damaged)
        try:
            dict(read_torch(tmp_path / "m.bin"))
        except ImportedModelError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"weights", MAGIC[:-1], b"PK\x03\x05" + bytes(30)])
def test_what_begins_otherwise_is_refused(tmp_path, content):
    (tmp_path / "m.bin").write_bytes(content)
    with pytest.raises(ImportedModelError, match="not a file of PyTorch's weights: it begins otherwise"):
        dict(read_torch(tmp_path / "m.bin"))


def called(module, name, argument):
    """A pickle that calls a function."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"(" + text_opcode(argument) + b"tR."


HOSTILE = {
    ("os", "system"): "touch {}",
    ("posix", "system"): "touch {}",
    ("builtins", "eval"): "open('{}', 'w')",
    ("builtins", "open"): "{}",
    ("torch.hub", "load"): "{}",
    ("collections", "OrderedDict.fromkeys"): "{}",
    ("torch._utils", "_rebuild_tensor_v2.__globals__"): "{}",
}


@pytest.mark.parametrize(("module", "name"), HOSTILE)
@pytest.mark.parametrize("is_archive", [True, False])
def test_what_is_no_part_of_weights_is_not_called(tmp_path, module, name, is_archive):
    pickle = called(module, name, HOSTILE[module, name].format(tmp_path / "touched"))
    by_protocol_4 = b"\x80\x04" + text_opcode(module) + text_opcode(name) + b"\x93."
    for content in (pickle, by_protocol_4):
        (tmp_path / "m.bin").write_bytes(torch_archive({}, content) if is_archive else MAGIC + content)
        with pytest.raises(ImportedModelError, match=f"It names {module}.{name}, which is no part of weights"):
            dict(read_torch(tmp_path / "m.bin"))
        assert [path.name for path in tmp_path.iterdir()] == ["m.bin"]


def test_a_pickle_cannot_change_what_it_may_call(tmp_path):
    function = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}" + text_opcode("function") + text_opcode("x") + b"sb."
    (tmp_path / "m.bin").write_bytes(torch_archive({}, function))
    with pytest.raises(ImportedModelError, match="damaged"):
        dict(read_torch(tmp_path / "m.bin"))
    (tmp_path / "m.bin").write_bytes(torch_archive(ARRAYS))
    assert len(read_torch(tmp_path / "m.bin")) == len(ARRAYS)


@pytest.mark.parametrize(
    ("shapes", "why"),
    [
        ({"shape": [13], "strides": [1]}, "reaches to its float 13, and there are 12"),
        ({"shape": [2**30, 2**30], "strides": [0, 0]}, "the array a reaches"),
        ({"shape": [3], "strides": [-1]}, "not of whole numbers"),
        ({"shape": [3], "strides": [1, 1]}, "zip"),
    ],
)
def test_an_array_beyond_its_numbers_is_refused(tmp_path, shapes, why):
    arrays = {"a": ARRAYS["a.weight"]}
    (tmp_path / "m.bin").write_bytes(torch_archive(arrays, pickled(arrays, **shapes)))
    with pytest.raises(ImportedModelError, match=why):
        dict(read_torch(tmp_path / "m.bin"))


def test_what_is_no_state_dict_is_refused(tmp_path):
    for pickle, why in ((b"\x80\x02K\x07.", "no arrays by name"), (b"\x80\x02}X\x01\0\0\0aK\x07s.", "'a' is no array")):
        (tmp_path / "m.bin").write_bytes(torch_archive({}, pickle))
        with pytest.raises(ImportedModelError, match=why):
            dict(read_torch(tmp_path / "m.bin"))


def test_a_compressed_archive_is_refused(tmp_path):
    (tmp_path / "m.bin").write_bytes(torch_archive(ARRAYS, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(ImportedModelError, match="its part archive/data.pkl is compressed"):
        dict(read_torch(tmp_path / "m.bin"))


@pytest.mark.release
@pytest.mark.parametrize("is_archive", [True, False])
def test_pytorch_itself_writes_what_is_read(tmp_path, is_archive):
    torch = pytest.importorskip("torch", reason="`make peers` installs PyTorch")
    matrix = torch.randn(5, 3)
    weights = {"a": matrix, "b": matrix.T, "c": matrix[1:, :2], "d": matrix.half(), "e": matrix.bfloat16()}
    weights["f"] = torch.nn.Parameter(matrix.double())
    torch.save(weights, tmp_path / "m.bin", _use_new_zipfile_serialization=is_archive)
    read = read_torch(tmp_path / "m.bin")
    for name, tensor in weights.items():
        np.testing.assert_array_equal(read[name], tensor.detach().float().numpy())


def view(offset, shape, strides):
    return View(Storage("0", "<f4"), offset, shape, strides)


def floats(storage):
    return np.arange(6, dtype="<f4").tobytes()


def test_an_array_is_a_view_of_its_storage_up_to_the_last_float_and_a_copy_of_it():
    array = array_of(view(1, (2, 2), (3, 1)), "a", floats)
    assert array.tolist() == [[1, 2], [4, 5]]
    array[0, 0] = 9
    assert array_of(view(0, (), ()), "a", floats) == 0 and array_of(view(5, (1,), (1,)), "a", floats).tolist() == [5]


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (view(2, (2, 2), (3, 1)), "a", "the array a reaches to its float 7, and there are 6"),
        (view(6, (1,), (1,)), "a", "the array a reaches to its float 7, and there are 6"),
        (view(0, (3, 3), (0, 1)), "a", "the array a reaches to its float 3, and there are 6"),
        (view(-1, (1,), (1,)), "a", "the array a has a place or a shape that is not of whole numbers"),
        (view(0, (1.0,), (1,)), "a", "the array a has a place or a shape that is not of whole numbers"),
        (view(0, (1,), (1,)), 5, "it has an array without a name"),
        (view(0, (1,), (1,))._replace(storage="0"), "a", "what it has under 'a' is no array"),
        ((1, 2), "a", "what it has under 'a' is no array"),
    ],
)
def test_what_is_no_view_of_its_storage_is_refused(content, name, why):
    with pytest.raises(ValueError, match=why):
        array_of(content, name, floats)


@pytest.mark.parametrize("order", [b"big", b"middle", b""])
def test_numbers_in_another_order_are_refused(tmp_path, order):
    content = torch_archive(ARRAYS)
    with zipfile.ZipFile(tmp_path / "new.bin", "w") as new, zipfile.ZipFile(io.BytesIO(content)) as old:
        for member in old.infolist():
            if not member.filename.endswith("byteorder"):
                new.writestr(member.filename, old.read(member.filename))
        new.writestr("archive/byteorder", order)
    with pytest.raises(ImportedModelError, match="its numbers are in big endian"):
        dict(read_torch(tmp_path / "new.bin"))


@pytest.mark.parametrize("parts", [("storage", "<f4", "0"), ("storage", StorageType("<f4"), 0)])
def test_a_storage_has_a_type_and_a_key(parts):
    with pytest.raises(ValueError, match="it describes a storage otherwise than PyTorch"):
        WeightsUnpickler(io.BytesIO()).persistent_load((*parts, "cpu", 6))
