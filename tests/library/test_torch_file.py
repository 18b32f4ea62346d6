"""pytorch_model.bin is read without PyTorch, and nothing that a hostile one names is ever called."""

import zipfile

import numpy as np
import pytest

from keras_transformer.imported.errors import ImportedModelError
from keras_transformer.imported.torch_file import read_torch
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
            read_torch(tmp_path / "m.bin")


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path, write):
    for damaged in flips(write(ARRAYS), 400):
        (tmp_path / "m.bin").write_bytes(damaged)
        try:
            read_torch(tmp_path / "m.bin")
        except ImportedModelError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"weights", MAGIC[:-1], b"PK\x03\x05" + bytes(30)])
def test_what_begins_otherwise_is_refused(tmp_path, content):
    (tmp_path / "m.bin").write_bytes(content)
    with pytest.raises(ImportedModelError, match="not a file of PyTorch's weights: it begins otherwise"):
        read_torch(tmp_path / "m.bin")


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
            read_torch(tmp_path / "m.bin")
        assert [path.name for path in tmp_path.iterdir()] == ["m.bin"]


def test_a_pickle_cannot_change_what_it_may_call(tmp_path):
    function = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}" + text_opcode("function") + text_opcode("x") + b"sb."
    (tmp_path / "m.bin").write_bytes(torch_archive({}, function))
    with pytest.raises(ImportedModelError, match="damaged"):
        read_torch(tmp_path / "m.bin")
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
        read_torch(tmp_path / "m.bin")


def test_what_is_no_state_dict_is_refused(tmp_path):
    for pickle, why in ((b"\x80\x02K\x07.", "no arrays by name"), (b"\x80\x02}X\x01\0\0\0aK\x07s.", "'a' is no array")):
        (tmp_path / "m.bin").write_bytes(torch_archive({}, pickle))
        with pytest.raises(ImportedModelError, match=why):
            read_torch(tmp_path / "m.bin")


def test_a_compressed_archive_is_refused(tmp_path):
    (tmp_path / "m.bin").write_bytes(torch_archive(ARRAYS, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(ImportedModelError, match="is compressed"):
        read_torch(tmp_path / "m.bin")


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
