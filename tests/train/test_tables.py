"""A table of texts: aligned for a terminal, and in Markdown."""

from train.scoring.tables import Table

TABLE = Table("Title", ("words", "n"), [("up to 5", "1,000"), ("6", "2")])


def test_columns_are_aligned_numbers_to_the_right():
    assert TABLE.lines() == ["Title:", "  words        n", "  up to 5  1,000", "  6            2"]


def test_markdown_has_the_same_cells():
    assert TABLE.markdown().splitlines() == [
        "Title:",
        "",
        "| words | n |",
        "| --- | ---: |",
        "| up to 5 | 1,000 |",
        "| 6 | 2 |",
    ]
