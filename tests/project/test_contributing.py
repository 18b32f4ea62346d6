"""CONTRIBUTING.md names files, folders and commits that exist."""

import re

from tests.support.places import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COMMITS = re.findall(r"^`([0-9a-f]{7})` (.*)$", PAGE, re.MULTILINE)
PLACES = ("", "keras_transformer", "train", "export", "tests/library")  # to which a path may be relative


def test_every_way_of_adding_names_a_commit():
    assert len(COMMITS) == PAGE.count("\n### ") == 9


def test_the_files_that_it_names_exist():
    names = [
        name for name in re.findall(r"`([\w/.-]+(?:\.(?:py|md|toml)|/))`", PAGE) if not re.search("NAME|SYSTEM", name)
    ]
    assert len(names) > 30
    assert [name for name in names if not any((ROOT / place / name).exists() for place in PLACES)] == []
