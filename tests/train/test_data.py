"""A source of data is two files, which nothing else lists: its section and its reader."""

import pkgutil

import pytest

from tests.support.processes import python
from train.config import sources as sections
from train.config.run import SOURCES
from train.data import sources as readers

SECTION = """
from typing import Literal

from train.config.data import DataSection


class ToyData(DataSection):
    PATHS = ("folder",)
    AFTER_TRAINING = (*DataSection.AFTER_TRAINING, "colour")

    source: Literal["toy"]
    source_language: str = "a"
    target_language: str = "b"
    folder: str
    colour: str = "red"

    @property
    def description(self):
        return f"a toy in {self.folder}"
"""
READER = """
from train.data.corpus import Corpus, Split


def read_corpus(data):
    split = Split("data.folder", [("one", "eins")].__iter__, dict)
    return Corpus(split, split, None, data.source_language, data.target_language)
"""
PROGRAM = """
import sys

import train.config.sources
import train.data.sources

folder = sys.argv[1]
train.config.sources.__path__.append(f"{folder}/sections")
train.data.sources.__path__.append(f"{folder}/readers")

from train.config.run import KEYS, load_config
from train.data.prepare import load_corpus, load_test_split

config = load_config(f"{folder}/run.toml", ["data.folder=attic"])
assert "data.colour" in KEYS and "data.folder" in config.keys_in("PATHS")
assert {"data.colour", "data.licence"} <= config.keys_in("AFTER_TRAINING")
assert list(load_corpus(config.data).train) == list(load_test_split(config.data)) == [("one", "eins")]
print(config.data.description, config.data.languages)
"""


def test_every_source_has_a_section_and_a_reader_of_its_name():
    names = [{module.name for module in pkgutil.iter_modules(package.__path__)} for package in (sections, readers)]
    assert names[0] == names[1] == {section.model_fields["source"].annotation.__args__[0] for section in SOURCES}


NAMES = {"source_language", "target_language"}
KEYS = {  # of each source: which name files, and which may change once a run is done
    "files": ({"train", "validation", "test"}, {*NAMES, "documents"}),
    "gettext": ({"train", "validation", "test"}, set()),
    "numbers": (set(), set()),
    "tfds": ({"data_dir"}, {"validation_split", "test_split"}),
    "treebank": ({"files"}, {*NAMES, "validation_sections", "test_sections"}),
}


def test_keys_that_name_files_may_differ_and_others_may_change_once_a_run_is_done():
    found = {section.model_fields["source"].annotation.__args__[0]: section for section in SOURCES}
    assert found.keys() == KEYS.keys()
    for name, (paths, afterwards) in KEYS.items():
        assert (set(found[name].PATHS), set(found[name].AFTER_TRAINING)) == (paths, {"licence", *afterwards})


@pytest.mark.slow
def test_a_new_source_is_two_files(tmp_path):
    for folder, text in (("sections", SECTION), ("readers", READER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "toy.py").write_text(text, encoding="utf-8")
    (tmp_path / "run.toml").write_text('run_folder = "run"\n[data]\nsource = "toy"\n', encoding="utf-8")
    process = python("-c", PROGRAM, tmp_path)
    assert (process.returncode, process.stdout) == (0, "a toy in attic a to b\n"), process.stderr
