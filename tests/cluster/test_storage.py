"""Files of Spark: which are the input, and that each is written, read and renamed in one step."""

import os
import re

import pytest

from cluster.errors import ClusterError
from cluster.storage import Storage, StoredFile
from tests.support.local_hadoop import local_context


@pytest.fixture
def context():
    return local_context()


@pytest.fixture
def storage(context):
    return Storage(context)


@pytest.fixture
def corpus(tmp_path):
    """A folder of text, with what is none in it, and a folder beside it."""
    for name, text in {
        "in/b.txt": "bb\n",
        "in/a.txt": "a\n",
        "in/empty.txt": "",
        "in/_SUCCESS": "x",
        "in/.a.txt.crc": "x",
        "in/deeper/c.txt": "c\n",
        "more/d.txt": "d\n",
        "none/empty.txt": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (7, 7.5))
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("in", ["in/a.txt", "in/b.txt"]),
        ("in/b.txt", ["in/b.txt"]),
        ("in/*.txt", ["in/a.txt", "in/b.txt"]),
        ("*", ["in/a.txt", "in/b.txt", "more/d.txt"]),
        ("in/*", ["in/a.txt", "in/b.txt", "in/deeper/c.txt"]),
    ],
)
def test_the_input_are_the_files_with_content_by_name(pattern, names, storage, corpus):
    expected = [StoredFile(f"file:{corpus}/{name}", (corpus / name).stat().st_size, 7500) for name in names]
    assert storage.input_files(f"{corpus}/{pattern}") == expected


@pytest.mark.parametrize(("pattern", "reason"), [("no*", "which holds no text"), ("x*", "no such file or folder")])
def test_without_text_there_is_no_input(pattern, reason, storage, corpus):
    with pytest.raises(ClusterError, match=f"--from is {re.escape(f'{corpus}/{pattern}')}.*{reason}"):
        storage.input_files(f"{corpus}/{pattern}")


def test_names_and_kinds(storage, corpus):
    assert storage.names(f"{corpus}/in") == [".a.txt.crc", "_SUCCESS", "a.txt", "b.txt", "deeper", "empty.txt"]
    assert storage.names(f"{corpus}/nowhere") == []
    for name, exists, is_folder in (("in", True, True), ("in/a.txt", True, False), ("nowhere", False, False)):
        assert (storage.exists(f"{corpus}/{name}"), storage.is_folder(f"{corpus}/{name}")) == (exists, is_folder)


def test_a_file_is_written_beside_its_name_and_then_renamed_and_read_as_it_was(storage, context, tmp_path):
    path = f"{tmp_path}/new/plan.json"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "plan.json.part").write_text("what a killed command left")
    for text in ('{"a": "old"}', '{"a": "ü"}'):
        storage.write(path, text)
    assert storage.read_json(path) == {"a": "ü"} and os.listdir(tmp_path / "new") == ["plan.json"]
    assert context.settings["renamed"] == [("plan.json.part", "plan.json")] * 2
    with pytest.raises(ValueError):
        storage.write(path, "{")
        storage.read_json(path)
    assert len(context.settings["streams"]) == 5 and all(stream.closed for stream in context.settings["streams"])


def test_what_cannot_be_renamed_is_named_and_what_is_not_there_need_not_be_removed(storage, tmp_path):
    (tmp_path / "a").write_text("a")
    storage.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    assert (tmp_path / "b").read_text() == "a"
    with pytest.raises(ClusterError, match=f"{tmp_path}/a cannot be renamed to {tmp_path}/c"):
        storage.rename(f"{tmp_path}/a", f"{tmp_path}/c")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    for name in ("folder", "b", "nowhere"):
        storage.remove(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []
