"""docs/: each page has one subject, says first whom it helps, and fits in one sitting."""

import re

from tests.support.places import ROOT

LONGEST = 260  # lines of a page of the manual; the notebook and generated tables may have more
NOTEBOOK = {"experiments.md", "results.md", "files.md"}
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}


def test_a_page_says_first_whom_it_helps():
    firsts = {name: text.split("\n\n")[1] for name, text in PAGES.items()}
    assert [name for name, first in firsts.items() if not re.search(r"(^|, )[Ff]or whoever ", first)] == []


def test_a_page_of_the_manual_is_read_in_one_sitting():
    assert [name for name, text in PAGES.items() if name not in NOTEBOOK and text.count("\n") > LONGEST] == []


def test_an_entry_of_the_notebook_has_its_date_its_commit_and_a_verdict():
    entries = re.split(r"^## ", PAGES["experiments.md"], flags=re.MULTILINE)[1:]
    dates = []
    for entry in entries:
        first = entry.split("\n\n")[1]
        assert re.match(r"20\d\d-\d\d-\d\d, ", first) and "**" in first, entry.splitlines()[0]
        assert re.search(r"commits? [0-9a-f]{7}|\[report\]", first), entry.splitlines()[0]
        dates.append(first[:10])
    assert len(dates) > 20 and dates == sorted(dates, reverse=True)  # the newest first
