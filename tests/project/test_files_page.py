"""docs/files.md has a line of every file of the source, which its docstring says."""

from tests.files_page import FOLDERS, PAGE, first_line, page
from tests.support.places import ROOT


def test_the_page_is_that_of_the_files():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.files_page"


def test_every_file_says_in_a_line_what_it_is():
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path.read_text(encoding="utf-8")]
    assert len(paths) > 300 and [path for path in paths if len(first_line(path)) < 15] == []
