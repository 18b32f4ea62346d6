"""An import reads one array at a time: it takes little more memory than its weights, and saves what it always did."""

import json
import sys

import numpy as np
import pytest
from keras.src.backend.common import global_state

from keras_transformer.models.imported.arrays import StoredArrays, read_npz, read_safetensors
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.models.imported.stored import UNINITIALIZED, stored_transformer
from keras_transformer.models.imported.weights import Arrays
from tests.support.m2m import m2m_folder
from tests.support.marian import huggingface_folder, marian_folder
from tests.support.marian_files import npz, safetensors
from tests.support.processes import python

A = np.arange(6, dtype=np.float32).reshape(2, 3)
FOLDERS = {"m2m": m2m_folder, "marian": marian_folder, "huggingface": huggingface_folder}
PEAK = r"""
import pathlib, re, sys
import keras_transformer.models.imported.stored
from keras_transformer.models.imported.folder import import_folder, write_run
def peak():
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
before = peak()
write_run(import_folder(sys.argv[1]), sys.argv[2])
print(peak() - before)
"""


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_run_has_the_weights_that_the_transformer_of_an_import_has(tmp_path, kind):
    model = import_folder(FOLDERS[kind](tmp_path / kind))
    write_run(model, tmp_path / "run")
    expected, found = model.transformer(), model.transformer()
    for weight in found.weights:
        weight.assign(np.zeros(weight.shape))
    found.load_weights(tmp_path / "run" / "model.weights.h5")
    for weight, other in zip(found.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), other.numpy(), err_msg=weight.path)


def test_weights_that_were_only_read_are_not_made_by_the_next_model(tmp_path):
    model, waiting = import_folder(m2m_folder(tmp_path / "m2m")), ["of somebody else"]
    before = global_state.get_global_attribute(UNINITIALIZED)
    try:
        global_state.set_global_attribute(UNINITIALIZED, waiting)
        with stored_transformer(model) as transformer:
            path = transformer.weights[0].path
            np.testing.assert_array_equal(transformer.weights[0].value, model.values[path])
            assert len(global_state.get_global_attribute(UNINITIALIZED)) > 1
        assert global_state.get_global_attribute(UNINITIALIZED) == ["of somebody else"]
        with pytest.raises(ZeroDivisionError), stored_transformer(model):
            raise ZeroDivisionError
        assert global_state.get_global_attribute(UNINITIALIZED) == ["of somebody else"]
    finally:
        global_state.set_global_attribute(UNINITIALIZED, before or [])


def test_an_array_is_read_each_time_that_it_is_asked_for_and_arrays_can_be_joined():
    asked = []
    arrays = StoredArrays({"a": lambda: asked.append(1) or A}) | StoredArrays({"b": lambda: A + 1})
    assert list(arrays) == ["a", "b"] and len(arrays) == 2 and not asked
    assert arrays["a"] is A and arrays["a"] is A and len(asked) == 2
    assert (arrays["b"] == A + 1).all() and "c" not in arrays and arrays.get("c") is None


@pytest.mark.parametrize(("read", "write"), [(read_safetensors, safetensors), (read_npz, npz)])
def test_a_file_that_is_damaged_after_it_was_opened_is_refused_when_an_array_is_read(tmp_path, read, write):
    content = write({"a": A})
    (tmp_path / "m").write_bytes(content)
    arrays = Arrays(read(tmp_path / "m"), "m")
    (tmp_path / "m").write_bytes(content[: len(content) // 2])
    with pytest.raises(ImportedModelError, match="m is damaged, or is not"):
        arrays.take("a", (2, 3))


def test_what_was_taken_is_not_taken_twice_but_can_be_read_again():
    arrays = Arrays({"a": A}, "m")
    assert arrays.take("a", (2, 3)) is A and "a" not in arrays
    assert arrays.array("a", (None, 3)) is A
    with pytest.raises(ImportedModelError, match="no array a"):
        arrays.take("a", (2, 3))


def larger(folder, d_ff):
    """Give the model of a folder feed-forward networks so wide that they are nearly all of it. Returns its bytes."""
    arrays = dict(read_safetensors(folder / "model.safetensors"))
    for name, array in arrays.items():
        if ".fc1." in name:
            arrays[name] = np.resize(array, (d_ff, *array.shape[1:]))
        elif ".fc2.weight" in name:
            arrays[name] = np.resize(array, (len(array), d_ff))
    content = safetensors(arrays)
    (folder / "model.safetensors").write_bytes(content)
    settings = json.loads((folder / "config.json").read_text())
    wide = dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), d_ff)
    (folder / "config.json").write_text(json.dumps(settings | wide))
    return len(content)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_an_import_does_not_hold_its_weights_in_memory(tmp_path):
    folder = m2m_folder(tmp_path / "m2m")
    size = larger(folder, 400_000)  # 8 arrays of 51 MB
    done = python("-c", PEAK, str(folder), str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 0.8 * size
