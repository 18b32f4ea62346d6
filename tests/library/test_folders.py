"""What `keras-transformer doctor` says of a run folder, and how it knows one from an export."""

import json
import re
import shutil

import h5py
import pytest

from keras_transformer.doctor import folders
from keras_transformer.doctor.finding import MISSING, NOTE
from keras_transformer.runs.saved_run import load_run
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


def texts_of(path):
    """Findings without the line of records that are whole."""
    findings = [(finding.state, finding.text) for finding in folders.folder(path)]
    return [(state, text) for state, text in findings if not text.startswith("readable: ")]


@pytest.mark.parametrize("name", ["model.weights.h5", "checkpoints/step-00000002.npz"])
def test_one_file_makes_a_run_folder_and_a_preset_is_called_one(tmp_path, name):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / name).write_bytes(b"")
    assert texts_of(tmp_path)[0] == ("ok", f"{tmp_path} is a run folder")
    (tmp_path / "config.json").write_text('{"registered_name": "x"}')
    assert texts_of(tmp_path)[0] == ("ok", f"{tmp_path} is a preset")
    assert texts_of(tmp_path)[1][1].startswith("it has no ")
    assert "assets/tokenizer/tokenizer.model" in texts_of(tmp_path)[1][1]


def test_a_file_with_a_number_for_a_name_makes_no_folder_of_versions(tmp_path):
    (tmp_path / "1").touch()
    assert "is neither a run folder nor an export" in texts_of(tmp_path)[0][1]


@pytest.mark.parametrize(
    "name",
    [
        "model.json",
        "tokenizer.model",
        "tokenizer.model.sha256",
        "model.weights.h5",
        "inference.json",
        "config.toml",
        "history.jsonl",
        "training_text.json",
        "scores.json",
        "calibration.json",
        "shortlist.npz",
        "validation.src.txt",
        "metadata.json",
        "checkpoints/step-00000002.npz",
    ],
)
def test_whatever_is_in_the_place_of_a_file_is_told_with_its_name_and_nothing_is_raised(run, name):
    path = run / name
    path.parent.mkdir(exist_ok=True)
    for content in (b"", b"\0" * 100, b"\xff", b"HDF", None):
        path.unlink(missing_ok=True)
        path.mkdir() if content is None else path.write_bytes(content)
        if content == b"HDF":
            h5py.File(path, "w").close()  # a file that opens, without layers
        findings = [finding for finding in folders.folder(run) if finding.state in (MISSING, NOTE)]
        [told] = [finding for finding in findings if path.name in finding.text]
        assert told.advice and not re.search(r"\n|errno", told.text, re.IGNORECASE), content
