"""A large model with random weights is one that an import takes, and two engines write as many tokens in turns."""

import re

import numpy as np
import pytest
from safetensors.numpy import load_file

from benchmarks.speed.large_folder import MADLAD, Shape, write_large_folder, write_large_madlad
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


def test_the_shape_of_madlad_has_a_tag_and_logits_of_its_own(tmp_path):
    write_large_madlad(
        tmp_path / "madlad", MADLAD._replace(layers=1, d_model=16, d_ff=32, heads=2, pieces=200, key_dim=12)
    )
    model = import_folder(tmp_path / "madlad")
    config = model.config
    assert (config.encoder_layers, config.d_model, config.d_ff, config.d_k, config.activation) == (
        1,
        16,
        32,
        12,
        "geglu_tanh",
    )
    assert model.languages.target == {"de": "\u2581 <2de>"} and not config.tied_logits
    assert model.tokenizer.decode(model.tokenizer.encode("a b")) == "a b"
    assert MADLAD == (3, 1024, 8192, 16, 256_000, 128)


def test_turns_alternate_and_the_first_one_is_not_counted():
    calls = []
    first, second = in_turns(lambda: calls.append("ours"), lambda: calls.append("theirs"), rounds=3)
    assert calls == ["ours", "theirs"] * 4 and 0 <= first < 1 and 0 <= second < 1


@pytest.mark.release
def test_the_table_has_rows_for_one_line_and_for_many_without_a_shortlist_and_with_one(folder, tmp_path):
    pytest.importorskip("ctranslate2")
    assert python("-m", "keras_transformer", "import", folder, tmp_path / "run").returncode == 0
    options = ["--beam", "2", "--rounds", "1"]
    done = python("-m", "benchmarks.speed.large_translate", tmp_path / "run", tmp_path / "work", *options)
    assert done.returncode == 0, done.stderr
    found = r"^\| 2 \| (off|on) \| (\d+) \| (\d+) \| [\d.]+ s \| [\d.]+ s \| [\d.]+ \|$"
    rows = re.findall(found, done.stdout, re.MULTILINE)
    assert [row[:2] for row in rows] == [("off", "1"), ("off", "32"), ("on", "1"), ("on", "32")]
    assert all(int(tokens) > 1 for *_, tokens in rows)


@pytest.mark.release
def test_a_model_that_is_told_its_target_alone_has_rows_too(tmp_path):
    pytest.importorskip("ctranslate2")
    write_large_madlad(
        tmp_path / "madlad", MADLAD._replace(layers=1, d_model=16, d_ff=32, heads=2, pieces=200, key_dim=8)
    )
    assert python("-m", "keras_transformer", "import", tmp_path / "madlad", tmp_path / "run").returncode == 0
    options = ["--source", "", "--beam", "1", "--shortlist", "off", "--rounds", "1"]
    done = python("-m", "benchmarks.speed.large_translate", tmp_path / "run", tmp_path / "work", *options)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\| 1 \| off \| (\d+) \|", done.stdout, re.MULTILINE) == ["1", "32"]
