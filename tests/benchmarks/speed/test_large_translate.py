"""A large model with random weights is one that an import takes, and two engines write as many tokens in turns."""

import re

import numpy as np
import pytest
from safetensors.numpy import load_file

from benchmarks.speed.large_folder import Shape, write_large_folder
from benchmarks.speed.large_translate import in_turns
from keras_transformer.models.imported.folder import import_folder
from tests.support.processes import python

SMALL = Shape(layers=1, d_model=16, d_ff=32, heads=2, pieces=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "m2m"
    write_large_folder(folder, SMALL)
    return folder


def test_its_shape_is_the_one_that_was_asked_for(folder):
    config = import_folder(folder).config
    assert (config.encoder_layers, config.decoder_layers, config.d_model, config.d_ff) == (1, 1, 16, 32)
    arrays = load_file(folder / "model.safetensors")
    assert arrays["model.shared.weight"].shape == (200, 16)
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_turns_alternate_and_the_first_one_is_not_counted():
    calls = []
    first, second = in_turns(lambda: calls.append("ours"), lambda: calls.append("theirs"), rounds=3)
    assert calls == ["ours", "theirs"] * 4 and 0 <= first < 1 and 0 <= second < 1


@pytest.mark.release
def test_the_table_has_a_row_for_one_line_and_for_many(folder, tmp_path):
    pytest.importorskip("ctranslate2")
    languages = ["--source-language=en", "--target-language=de"]
    options = ["--format=litert", "--quantization=int8", "--no-check", "--max-source-tokens=16", *languages]
    assert python("-m", "keras_transformer", "import", folder, tmp_path / "run").returncode == 0
    assert python("-m", "export", tmp_path / "run", "--to", tmp_path / "lite", *options).returncode == 0
    done = python("-m", "benchmarks.speed.large_translate", tmp_path / "run", tmp_path / "lite", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (\d+) \| (\d+) \| [\d.]+ s \| [\d.]+ s \| [\d.]+ \|$", done.stdout, re.MULTILINE)
    assert [count for count, _ in rows] == ["1", "32"] and rows[0][1] == rows[1][1] and int(rows[0][1]) > 1
