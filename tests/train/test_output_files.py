"""Files that a command is asked to write are none of those that it reads."""

import pytest

from keras_transformer.config import ConfigError
from train.config.sources.files import FilesData
from train.config.sources.treebank import TreebankData
from train.scoring.output_files import check_not_read


@pytest.mark.parametrize("kind", ["files", "file of trees", "folder of trees"])
def test_a_file_of_the_configuration_is_not_written_whatever_it_is_called_there(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "trees").mkdir()
    for name in ("t.en", "t.de", "trees/wsj_2301.mrg"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    if kind == "files":
        data, path = FilesData(source="files", train=["a.tsv"], validation=[["~/t.en", "~/t.de"]]), "t.de"
    else:
        named = "~/trees" if kind == "folder of trees" else "~/trees/wsj_2301.mrg"
        data, path = TreebankData(source="treebank", files=[named]), "trees/wsj_2301.mrg"
    with pytest.raises(ConfigError, match=f"--output .*{path} is one of the files that are read"):
        check_not_read("--output", tmp_path / path, data.paths())
    check_not_read("--output", tmp_path / "trees/new", data.paths())
