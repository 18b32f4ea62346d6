"""A model on the Hugging Face hub that MarianMT made: imported once, and opened wherever a run folder is."""

import os
import shutil

import numpy as np
import pytest

import keras_transformer as kt
from export.__main__ import app as export_app
from keras_transformer import presets
from keras_transformer.commands.explain import app as explain_app
from keras_transformer.commands.import_model import app as import_app
from keras_transformer.commands.score import app as score_app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.imported.folder import write_run
from tests.support.commands import assert_one_sentence, invoke
from tests.support.hub import Hub, asked, files_in, served
from tests.support.processes import python
from tests.support.runs import SENTENCES
from train.distil import app as distil_app
from train.evaluate import app as evaluate_app

COMMANDS = [translate_app, score_app, explain_app, export_app, evaluate_app, distil_app, import_app]


@pytest.fixture(scope="module")
def marian_mt(random_folder, tmp_path_factory):
    """The files of a MarianMT model, as a repository on the hub holds them."""
    folder = tmp_path_factory.mktemp("marian_mt") / "to"
    exported = invoke(export_app, random_folder, "--to", folder, "--format", "huggingface", "--no-check")
    assert exported.exit_code == 0, exported.output
    return files_in(folder)


def test_a_marian_mt_model_on_the_hub_is_imported_once(marian_mt, pair, tmp_path, monkeypatch):
    with asked(Hub(), tmp_path) as hub:
        hub.add("them/opus-mt-en-de", marian_mt)
        folder = presets.folder_of("hf://them/opus-mt-en-de")
        np.testing.assert_array_equal(kt.load_run(folder)[0].get_weights()[0], pair[0].get_weights()[0])
        monkeypatch.setattr("keras_transformer.imported.folder.import_folder", None)
        assert presets.folder_of("hf://them/opus-mt-en-de") == folder
        model = kt.Transformer.from_preset("hf://them/opus-mt-en-de")
    snapshot = "models--them--opus-mt-en-de", hub.commit("them/opus-mt-en-de", "main")
    assert model.model_config.norm_epsilon == 1e-5
    assert folder == tmp_path.joinpath("HF_ASSETS_CACHE", "keras-transformer", *snapshot, "run")
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


@pytest.fixture
def downloaded(marian_mt, tmp_path):
    """A folder with the files of a MarianMT model, and nothing else."""
    for name, content in marian_mt.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_two_processes_may_import_the_same_model(downloaded, monkeypatch):
    def imported_elsewhere(model, run):
        write_run(model, run)
        shutil.copytree(run, downloaded / "run")

    monkeypatch.setattr("keras_transformer.imported.folder.write_run", imported_elsewhere)
    presets.import_into(downloaded / "run", downloaded)
    kt.load_run(downloaded / "run")


def test_an_import_that_cannot_come_to_its_place_is_an_error(marian_mt, downloaded, monkeypatch):
    def rename(source, target):
        if target == downloaded / "run":
            raise OSError("full")
        return os.replace(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(OSError, match="full"):
        presets.import_into(downloaded / "run", downloaded)
    assert {path.name for path in downloaded.iterdir()} == marian_mt.keys()


def test_a_model_on_the_hub_is_imported_by_command_as_marian_computes_it(marian_mt, tmp_path):
    with asked(Hub(), tmp_path) as hub:
        hub.add("them/opus-mt-en-de", marian_mt)
        done = invoke(import_app, "hf://them/opus-mt-en-de", tmp_path / "run", "--positions", "marian")
    assert done.exit_code == 0, done.output
    assert kt.load_run(tmp_path / "run")[0].model_config.sinusoids == "tensor2tensor"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_why_a_name_on_the_hub_is_no_run(command, tmp_path):
    needed = {
        score_app: ("--source", tmp_path / "a", "--target", tmp_path / "b"),
        explain_app: ("a sentence", "--to", tmp_path / "page.html"),
        export_app: ("--to", tmp_path / "to"),
        import_app: (tmp_path / "run",),
        distil_app: ("--source", tmp_path / "a", "--reference", tmp_path / "b", "--output", tmp_path / "c"),
    }
    with asked(Hub(), tmp_path):
        refused = invoke(command, "hf://them/opus-mt-en-xx", *needed.get(command, ()))
    assert_one_sentence(refused, "has no model them/opus-mt-en-xx, or does not show it to you: check the name")


@pytest.mark.release
def test_the_first_line_of_the_readme(marian_mt, random_folder, tmp_path, eager):
    hub = Hub()
    hub.add("Helsinki-NLP/opus-mt-en-de", marian_mt)
    with served(hub) as address:
        environment = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path)}
        command = "-m", "keras_transformer", "translate", "hf://Helsinki-NLP/opus-mt-en-de", "--beam-size", 1
        process = python(*command, stdin=SENTENCES[0], **environment)
    assert process.returncode == 0, process.stderr
    assert "as Hugging Face computes it" in process.stderr
    model, tokenizer = kt.load_run(random_folder)
    model = with_epsilon(model, 1e-5)
    expected = kt.Translator(model, tokenizer, kt.SearchOptions(beam_size=1)).translate(SENTENCES[:1])
    assert process.stdout == f"{expected[0].text}\n"


def with_epsilon(model, epsilon):
    """The same weights with the epsilon of Hugging Face."""
    other = kt.Transformer(model.model_config.replace(norm_epsilon=epsilon))
    other.set_weights(model.get_weights())
    return other
