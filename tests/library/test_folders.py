"""What `keras-transformer doctor` says of a run folder, and how it knows one from an export."""

import json
import shutil
import zipfile

import pytest

from keras_transformer.doctor import folders, runs
from keras_transformer.doctor.finding import MISSING, NOTE
from keras_transformer.saved_run import load_run
from tests.support.findings import cut, removed, states, the_missing
from tests.support.runs import random_run


@pytest.fixture
def run(random_folder, tmp_path):
    return shutil.copytree(random_folder, tmp_path / "run")


def test_a_whole_run_has_nothing_missing(run):
    findings = list(folders.folder(run))
    transformer, _ = load_run(run)
    assert MISSING not in states(findings)
    assert any(f"{transformer.count_params():,} parameters" in finding.text for finding in findings)


def nan(path):
    import h5py

    with h5py.File(path, "r+") as file:
        file["layers"].visititems(
            lambda name, item: item.write_direct(item[()] * float("nan")) if hasattr(item, "write_direct") else None
        )


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("model.json", removed, "no model.json"),
        ("model.json", cut, "model.json"),
        ("model.weights.h5", removed, "no model.weights.h5"),
        ("model.weights.h5", cut, "model.weights.h5 is damaged"),
        ("model.weights.h5", nan, "NaN or infinite"),
        ("tokenizer.model", removed, "no tokenizer.model"),
        ("tokenizer.model", cut, "tokenizer.model"),
    ],
)
def test_a_file_of_a_run_that_is_gone_or_damaged_is_named(run, file, damage, said):
    damage(run / file)
    assert said in the_missing(folders.folder(run)).text


def test_weights_of_another_vocabulary_than_the_model_are_found(run):
    values = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps(values | {"vocab_size": 331}))
    assert "331" in the_missing(folders.folder(run)).text


def test_weights_of_another_model_are_found(run, tmp_path):
    other = random_run(tmp_path / "other", vocab_size=340)
    shutil.copy(other / "model.weights.h5", run)
    assert "no matrix for 330 pieces" in the_missing(folders.folder(run)).text


def test_a_tokenizer_that_was_exchanged_is_found(run):
    (run / "tokenizer.model.sha256").write_text("0" * 64 + "  tokenizer.model\n")
    assert "SHA-256" in the_missing(folders.folder(run)).text


def test_a_training_that_has_not_finished_says_how_it_does(tmp_path):
    (tmp_path / "config.toml").write_text("[data]\n")
    found = the_missing(folders.folder(tmp_path))
    assert "cannot translate yet" in found.text and "train CONFIG" in found.advice


def test_a_checkpoint_that_was_cut_is_found(run):
    (run / "checkpoints").mkdir()
    (run / "checkpoints/step-00000002.npz").write_bytes(b"PK\x03\x04 and nothing more")
    assert "step-00000002.npz is damaged" in the_missing(folders.folder(run)).text


@pytest.mark.parametrize("name", ["nothing", "file", "empty"])
def test_what_is_neither_a_run_nor_an_export_is_said(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    assert name in the_missing(folders.folder(tmp_path / name)).text


def test_of_several_checkpoints_the_newest_is_looked_at(run):
    (run / "checkpoints").mkdir()
    (run / "checkpoints/step-00000900.npz").write_bytes(b"cut")
    with zipfile.ZipFile(run / "checkpoints/step-00001000.npz", "w") as archive:
        archive.writestr("weights", b"all")
    assert "checkpoints/step-00001000.npz: complete" in [finding.text for finding in folders.folder(run)]


def test_a_configuration_that_is_no_toml_is_found(run):
    (run / "config.toml").write_text("[data\n")
    assert "config.toml is damaged" in the_missing(folders.folder(run)).text
    (run / "config.toml").write_text("\ufeff[data]\n")
    assert [finding.text for finding in folders.folder(run) if finding.state == NOTE][-1] == "it has no checkpoint"


@pytest.mark.parametrize("content", ["[]", "{", "{}", "3"])
def test_a_preset_whose_metadata_are_none_is_a_note(tmp_path, content):
    (tmp_path / "metadata.json").write_text(content)
    assert runs.versions(tmp_path / "metadata.json").state == NOTE
