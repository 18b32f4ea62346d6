"""hf://USER/MODEL is downloaded once, only what models here have, and what goes wrong is one sentence."""

import pathlib
import sys

import huggingface_hub.file_download
import pytest
from huggingface_hub import constants

import keras_transformer as kt
from keras_transformer import hub
from tests.support.hub import Hub, asked, files_in
from tests.support.runs import SENTENCES

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
    assert local_hub.downloaded() == preset_files.keys() - {"tokenizer.json", "metadata.json"}
    assert not list(tmp_path.rglob("outside*")) and not (folder / "pytorch_model.bin").exists()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (None, "it has no config.json"),
        (b'{"model_type": "bert"}', "its config.json has the model_type 'bert'. MarianMT models can be"),
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
