"""What `keras-transformer doctor` says of an export, whole or damaged."""

import hashlib
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.doctor import exports, folders
from keras_transformer.doctor.finding import MISSING, NOTE, OK
from keras_transformer.models.imported.families import FAMILIES
from keras_transformer.runs.lite_folder import Description
from tests.support.findings import cut, removed, states, the_missing
from tests.support.marian_files import safetensors


@pytest.fixture
def version(tmp_path):
    """A folder with one version: the files of a SavedModel, its variables as TensorFlow writes them."""
    path = tmp_path / "export" / "1"
    (path / "assets").mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"graph")
    variables = {f"weight_{number}": tf.Variable(tf.ones([number + 1, 3])) for number in range(40)}
    tf.train.Checkpoint(**variables).write(str(path / "variables" / "variables"))
    content = {"oldest_tensorflow": "2.12", "equality": [{"different": 0}]}
    (path / "certificate.json").write_text(json.dumps(content))
    return path


def test_a_whole_version_has_nothing_missing(version):
    assert states(folders.folder(version)) == states(folders.folder(version.parent)) == [OK, OK, NOTE]


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("saved_model.pb", lambda path: path.write_bytes(b""), "saved_model.pb is missing or empty"),
        ("variables/variables.index", removed, "variables.index is missing or empty"),
        ("variables/variables.data-00000-of-00001", removed, "variables.data-00000-of-00001 is missing"),
        ("certificate.json", cut, "certificate.json is damaged"),
    ],
)
def test_a_file_of_a_version_that_is_gone_or_damaged_is_named(version, file, damage, said):
    damage(version / file)
    assert said in the_missing(folders.folder(version.parent)).text


def test_a_version_that_needs_a_later_tensorflow_is_found(version):
    content = json.loads((version / "certificate.json").read_text())
    (version / "certificate.json").write_text(json.dumps(content | {"oldest_tensorflow": "99.1"}))
    assert the_missing(folders.folder(version)).advice == "pip install 'tensorflow>=99.1'"


def test_safetensors_are_as_long_as_their_header_says(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert exports.is_complete(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not exports.is_complete(path)


def test_formats_of_others_are_known_by_their_files(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    assert [finding.state for finding in folders.folder(tmp_path)] == [MISSING, MISSING]
    (tmp_path / "model.bin").write_bytes(b"weights")
    assert states(folders.folder(tmp_path)) == [OK]


def test_an_asset_without_content_is_found_and_what_was_killed_is_noted(version):
    (version / "assets" / "tokenizer.model").touch()
    assert "assets/tokenizer.model is missing or empty" in the_missing(folders.folder(version.parent)).text
    (version / "assets" / "tokenizer.model").write_bytes(b"pieces")
    (version.parent / ".unfinished-2-17").mkdir()
    assert states(folders.folder(version.parent)) == [OK, OK, NOTE, NOTE]


def test_a_version_with_a_litert_model_is_whole_if_that_is(version):
    (version / "assets.extra/litert").mkdir(parents=True)
    assert MISSING in states(folders.folder(version))


def test_a_litert_file_must_have_the_checksum_that_its_description_tells(tmp_path):
    preset = pathlib.Path(__file__).parents[2] / "presets/multi30k_en_de/litert"
    for name in ("search.tflite", "tokenizer.model", "litert.json"):
        (tmp_path / name).symlink_to(preset / name)
    description = Description.load(tmp_path / "litert.json")._replace(sha256=None)
    whole = hashlib.sha256((preset / "search.tflite").read_bytes()).hexdigest()
    for sha256, state in ((None, OK), ("0" * 64, MISSING), (whole, OK)):
        (tmp_path / "litert.json").unlink()
        description._replace(sha256=sha256).save(tmp_path / "litert.json")
        [finding] = folders.folder(tmp_path)
        assert finding.state == state and ("is damaged: Its SHA-256" in finding.text) == (state == MISSING)


def test_a_certificate_tells_how_many_translations_differed_and_that_there_was_none(version):
    content = json.loads((version / "certificate.json").read_text())
    content["equality"] = [{"different": 2}, {"different": 1}]
    (version / "certificate.json").write_text(json.dumps(content))
    assert any(finding.text.endswith("2.12 and later; 3 translations differed") for finding in folders.folder(version))
    (version / "assets.extra").mkdir()
    (version / "assets.extra/tf_serving_warmup_requests").write_bytes(b"requests")
    assert states(folders.folder(version)) == [OK, OK]
    (version / "certificate.json").unlink()
    assert states(folders.folder(version)) == [OK, NOTE]


def test_a_marian_model_needs_all_of_its_files_and_whole_weights(tmp_path):
    for kind in ("bert", ["marian"]):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        assert f"of the type {kind!r}" in the_missing(folders.folder(tmp_path)).text
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    for name in ("vocab.json", "source.spm", "target.spm", "pytorch_model.bin"):
        assert MISSING in states(folders.folder(tmp_path))
        (tmp_path / name).write_bytes(b"content")
    assert states(folders.folder(tmp_path)) == [OK, OK]
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    assert "model.safetensors is damaged" in the_missing(folders.folder(tmp_path)).text
    (tmp_path / "model.safetensors").write_bytes(safetensors({"a": np.ones(3, "<f4")}))
    [_, whole] = folders.folder(tmp_path)
    assert whole == (OK, "its weights are complete", "keras-transformer import makes a run folder of it")


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_model_of_each_family_needs_the_files_of_its_tokenizer(tmp_path, model_type):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    family = FAMILIES[model_type]
    for name in ("model.safetensors", *family.needed, *family.either[:1]):
        assert MISSING in states(folders.folder(tmp_path))
        (tmp_path / name).write_bytes(safetensors({"a": np.ones(3, "<f4")}))
    assert states(folders.folder(tmp_path)) == [OK, OK]
    assert next(iter(folders.folder(tmp_path))).text.endswith(f"is a model of {FAMILIES[model_type].name}")


@pytest.mark.parametrize(
    "oldest, installed, text",
    [
        ("2.9", "2.21.0", "version 1 runs in TensorFlow 2.9 and later; 0 translations differed"),
        ("2.21", "2.21", "version 1 runs in TensorFlow 2.21 and later; 0 translations differed"),
        ("2.21", None, "version 1 runs in TensorFlow 2.21 and later; 0 translations differed"),
        ("2.21", "2.9.1", "version 1 needs TensorFlow 2.21; 2.9.1 is installed"),
        ("two", "2.21", "version 1: certificate.json is damaged"),
        (2, "2.21", "version 1: certificate.json is damaged"),
    ],
)
def test_a_version_runs_in_the_tensorflow_of_its_certificate_and_in_later_ones(
    tmp_path, monkeypatch, oldest, installed, text
):
    content = {"oldest_tensorflow": oldest, "equality": [{"different": 0}]}
    (tmp_path / "1").mkdir()
    (tmp_path / "1/certificate.json").write_text(json.dumps(content))
    monkeypatch.setattr(exports, "version_of", lambda name: installed)
    assert [finding.text for finding in exports.certificate(tmp_path / "1")] == [text]


@pytest.mark.parametrize(
    "header, size, is_whole",
    [
        ({"a": {"data_offsets": [0, 8]}, "b": {"data_offsets": [8, 12]}}, 12, True),
        ({"a": {"data_offsets": [0, 8]}}, 9, False),
        ({"__metadata__": {"format": "pt"}, "a": {"data_offsets": [0, 8]}}, 8, True),
        ({}, 0, True),
        ([], 0, False),
        ({"a": {}}, 0, False),
    ],
)
def test_safetensors_have_the_bytes_of_all_their_arrays_and_no_more(tmp_path, header, size, is_whole):
    content = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(len(content).to_bytes(8, "little") + content + bytes(size))
    assert exports.is_complete(tmp_path / "x") == is_whole
