"""hf://USER/MODEL is downloaded and imported once, only what models have, and what goes wrong is one sentence."""

import pathlib
import sys

import huggingface_hub.file_download
import numpy as np
import pytest
from huggingface_hub import constants

import keras_transformer as kt
from export.__main__ import app as export_app
from keras_transformer.commands.explain import app as explain_app
from keras_transformer.commands.import_model import app as import_app
from keras_transformer.commands.score import app as score_app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.ground.errors import UserError
from keras_transformer.models import hub, presets
from tests.support.commands import assert_one_sentence, invoke
from tests.support.hub import Hub, asked, files_in, served
from tests.support.processes import python
from tests.support.runs import SENTENCES
from train.distil import app as distil_app
from train.evaluate import app as evaluate_app

COMMANDS = [translate_app, score_app, explain_app, export_app, evaluate_app, distil_app, import_app]
HOSTILE = {
    "pytorch_model.bin": b"a pickle",
    "tf_model.h5": b"large",
    "../../outside.json": b"{}",
    "assets/tokenizer/../../../../outside": b"",
    "model.py": b"import os",
    "config.json/../x": b"",
}


@pytest.fixture
def local_hub(tmp_path):
    """A hub on this machine, which huggingface-hub asks in place of the real one, and an empty cache."""
    with asked(Hub(), tmp_path / "cache") as local:
        yield local


@pytest.fixture(scope="module")
def preset_files(random_folder, tmp_path_factory):
    """The files of a preset, by their path in it."""
    folder = tmp_path_factory.mktemp("preset")
    kt.Translator.from_preset(random_folder).save_to_preset(folder, SENTENCES)
    return files_in(folder)


def test_a_preset_is_downloaded_once(local_hub, preset_files, pair):
    local_hub.add("me/numbers", preset_files)
    folder = hub.download("hf://me/numbers")
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == local_hub.downloaded()
    assert (folder / "model.weights.h5").read_bytes() == preset_files["model.weights.h5"]
    assert kt.load_run(folder)[0].model_config == pair[0].model_config
    local_hub.requests.clear()
    assert hub.download("hf://me/numbers") == hub.download(pathlib.Path("hf://me/numbers")) == folder
    assert local_hub.downloaded() == set()


def test_a_revision_is_a_branch_a_tag_or_a_commit(local_hub, preset_files):
    local_hub.add("me/numbers", preset_files)
    local_hub.add("me/numbers", preset_files | {"inference.json": b"{}", "model.weights.h5": b"older"}, "old")
    newest, old = (hub.download(f"hf://me/numbers{revision}") for revision in ("", "@old"))
    assert newest != old and (old / "inference.json").read_bytes() == b"{}"
    assert (old / "model.weights.h5").read_bytes() == b"older"
    assert hub.download(f"hf://me/numbers@{old.name}") == old


def test_nothing_but_the_files_of_a_model_is_downloaded(local_hub, preset_files, tmp_path):
    local_hub.add("me/numbers", preset_files | HOSTILE)
    folder = hub.download("hf://me/numbers")
    assert local_hub.downloaded() == preset_files.keys() - {"metadata.json"}
    assert not list(tmp_path.rglob("outside*")) and not (folder / "pytorch_model.bin").exists()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (None, "it has no config.json"),
        (b'{"model_type": "bert"}', "its config.json has the model_type 'bert'. Models of MarianMT, "),
        (b'{"model_type": ["marian"]}', r"its config.json has the model_type \['marian'\]"),
        (b"{", "its config.json is no JSON object"),
        (b"[]", "its config.json is no JSON object"),
    ],
)
def test_weights_of_another_kind_of_model_are_not_downloaded(config, why, local_hub):
    files = {"model.safetensors": b"a terabyte", "vocab.json": b"{}"}
    local_hub.add("them/bert", files if config is None else files | {"config.json": config})
    with pytest.raises(hub.HubError, match=f"hf://them/bert holds no model that can be opened here: {why}"):
        hub.download("hf://them/bert")
    assert "model.safetensors" not in local_hub.downloaded()


def test_weights_are_unpickled_only_if_there_are_no_others(local_hub):
    files = {"config.json": b'{"model_type": "marian"}', "pytorch_model.bin": b"a pickle"}
    local_hub.add("me/pickled", files)
    assert (hub.download("hf://me/pickled") / "pytorch_model.bin").read_bytes() == b"a pickle"
    local_hub.add("me/both", files | {"model.safetensors": b"weights"})
    assert not (hub.download("hf://me/both") / "pytorch_model.bin").exists()


def test_of_weights_in_several_files_those_of_the_index_are_downloaded(local_hub):
    index = b'{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}'
    files = {"config.json": b'{"model_type": "marian"}', "model.safetensors.index.json": index}
    files |= {"model-1-of-2.safetensors": b"1", "model-2-of-2.safetensors": b"2"}
    local_hub.add("me/large", files | HOSTILE | {"model-3-of-2.safetensors": b"3"})
    folder = hub.download("hf://me/large")
    assert files_in(folder) == files and local_hub.downloaded() == files.keys()
    files["model.safetensors.index.json"] = b'{"weight_map": {"a": "../../outside.json"}}'
    local_hub.add("me/hostile", files | HOSTILE)
    with pytest.raises(UserError, match="no weight_map from arrays to names of files beside it"):
        hub.download("hf://me/hostile")


@pytest.mark.parametrize("name", ["hf://", "hf://me", "hf://me/a/b", "hf://me/a b", "hf://me/a@", "hf://../a/b"])
def test_a_wrong_name_is_one_sentence(name, local_hub):
    with pytest.raises(hub.HubError, match="is not a name on the hub: write hf://USER/MODEL or"):
        hub.download(name)
    assert local_hub.requests == []


@pytest.mark.parametrize("name", ["hf://-/-", "hf://a--b/c..d", "hf://../.."])
def test_a_name_that_the_hub_cannot_have_is_one_sentence(name, local_hub):
    with pytest.raises(hub.HubError, match="could not be downloaded .HFValidationError"):
        hub.download(name)


def test_what_the_hub_refuses_is_one_sentence(local_hub, preset_files):
    local_hub.add("me/numbers", preset_files)
    local_hub.add("me/gated", preset_files)
    local_hub.gated.add("me/gated")
    for name, sentence in {
        "hf://me/nobbers": "has no model me/nobbers, or does not show it to you: check the name",
        "hf://me/gated": "hf://me/gated is gated: accept its terms at http.*/me/gated, and give your token by",
        "hf://me/numbers@v9": "hf://me/numbers@v9 does not exist: me/numbers has no such branch, tag or commit",
    }.items():
        with pytest.raises(hub.HubError, match=sentence):
            hub.download(name)
    local_hub.status = 503
    with pytest.raises(hub.HubError, match="cannot be reached .HfHubHTTPError: .*503.*: try again, or give the folder"):
        hub.download("hf://me/numbers")


def test_without_a_network_the_cache_serves(local_hub, preset_files, monkeypatch):
    local_hub.add("me/numbers", preset_files)
    folder = hub.download("hf://me/numbers")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert hub.download("hf://me/numbers") == folder
    with pytest.raises(hub.HubError, match="hf://me/others is not in the cache .* cannot be reached .ConnectError"):
        hub.download("hf://me/others")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.download("hf://me/numbers") == folder
    with pytest.raises(
        hub.HubError, match="hf://me/others is not in the cache .*, and HF_HUB_OFFLINE is set: unset it"
    ):
        hub.download("hf://me/others")


def test_a_download_that_is_cut_goes_on(local_hub, preset_files, monkeypatch):
    monkeypatch.setattr(huggingface_hub.file_download.time, "sleep", lambda _: None)
    local_hub.add("me/numbers", preset_files)
    local_hub.cuts["model.weights.h5"] = 1000
    with pytest.raises(hub.HubError, match="hf://me/numbers could not be downloaded .*closed connection.*: try again"):
        hub.download("hf://me/numbers")
    local_hub.cuts["model.weights.h5"] = 1
    assert (hub.download("hf://me/numbers") / "model.weights.h5").read_bytes() == preset_files["model.weights.h5"]


def test_without_the_package_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        hub.HubError, match=r"hf://me/numbers needs the package huggingface-hub.*keras-transformer-mt\[hub\]"
    ):
        hub.download("hf://me/numbers")


# models of MarianMT, which are imported


@pytest.fixture(scope="module")
def marian_mt(random_folder, tmp_path_factory):
    """The files of a MarianMT model, as a repository on the hub holds them."""
    folder = tmp_path_factory.mktemp("marian_mt") / "to"
    exported = invoke(export_app, random_folder, "--to", folder, "--format", "huggingface", "--no-check")
    assert exported.exit_code == 0, exported.output
    return files_in(folder)


def test_a_marian_mt_model_on_the_hub_is_imported_once(marian_mt, pair, tmp_path, monkeypatch):
    with asked(Hub(), tmp_path) as local:
        local.add("them/opus-mt-en-de", marian_mt)
        folder = presets.folder_of("hf://them/opus-mt-en-de")
        np.testing.assert_array_equal(kt.load_run(folder)[0].get_weights()[0], pair[0].get_weights()[0])
        monkeypatch.setattr("keras_transformer.models.imported.folder.import_folder", None)
        assert presets.folder_of("hf://them/opus-mt-en-de") == folder
        model = kt.Transformer.from_preset("hf://them/opus-mt-en-de")
    snapshot = "models--them--opus-mt-en-de", local.commit("them/opus-mt-en-de", "main")
    assert model.model_config.norm_epsilon == 1e-5
    assert folder == tmp_path.joinpath("HF_ASSETS_CACHE", "keras-transformer", *snapshot, "run")
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_a_model_on_the_hub_is_imported_by_command_as_marian_computes_it(marian_mt, tmp_path):
    with asked(Hub(), tmp_path) as local:
        local.add("them/opus-mt-en-de", marian_mt)
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
    local = Hub()
    local.add("Helsinki-NLP/opus-mt-en-de", marian_mt)
    with served(local) as address:
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
