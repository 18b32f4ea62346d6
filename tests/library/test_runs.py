"""A RUN of the command line: a folder, or what is downloaded from the hub."""

import pathlib

from keras_transformer import parallel, presets
from keras_transformer.commands import runs


def test_a_folder_is_itself_and_a_name_on_the_hub_is_the_run_in_what_is_downloaded(monkeypatch):
    calls = []
    monkeypatch.setattr(runs, "download", lambda name: calls.append(name) or pathlib.Path("cache"))
    monkeypatch.setattr(parallel, "tune_for_translation", lambda: calls.append("tuned"))
    monkeypatch.setattr(presets, "run_in", lambda folder: calls.append(folder) or folder / "run")
    assert runs.opened("runs/numbers") == pathlib.Path("runs/numbers") and not calls
    assert runs.opened("hf://user/model") == pathlib.Path("cache/run")
    assert calls == [
        "hf://user/model",
        "tuned",
        pathlib.Path("cache"),
    ]  # an import computes: the threads are set before
