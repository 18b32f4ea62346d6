"""What benchmarks write beside their numbers, and where."""

import json
import pathlib

import pytest

from benchmarks.result_files import RESULTS, command_line, row_names, whole_command_line, write_result
from benchmarks.speed import serve_table, train_table, translate_table


def test_a_command_is_written_so_that_a_shell_reads_it_again(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/somewhere/table3.py", "--only", "base", "--folder", "my runs"])
    assert command_line("paper.table3") == "python -m benchmarks.paper.table3 --only base --folder 'my runs'"


@pytest.mark.parametrize("only", [["--only", "base"], ["--only=base,big"], []])
def test_the_command_of_a_table_has_all_rows_whichever_were_trained_last(monkeypatch, only):
    monkeypatch.setattr("sys.argv", ["/somewhere/table3.py", "a.toml", *only, "--folder", "my runs"])
    assert whole_command_line("paper.table3") == "python -m benchmarks.paper.table3 a.toml --folder 'my runs'"


def test_a_result_may_go_into_a_folder_that_is_not_there_yet(tmp_path):
    write_result(tmp_path / "new" / "results" / "table3.md", "| a |\n")
    assert (tmp_path / "new" / "results" / "table3.md").read_text() == "| a |\n"


def test_a_result_behind_a_link_is_replaced_there(tmp_path):
    (tmp_path / "link.md").symlink_to("page.md")
    write_result(tmp_path / "link.md", "| a |\n")
    assert (tmp_path / "link.md").is_symlink() and (tmp_path / "page.md").read_text() == "| a |\n"


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/a", "runs/b"], ["a", "b"]),
        (["runs/a", "presets/a"], ["runs/a", "presets/a"]),
        (["runs/a", "presets/a", "runs/b"], ["runs/a", "presets/a", "runs/b"]),
        ([], []),
    ],
)
def test_two_runs_of_one_name_are_two_rows_of_a_table(folders, names):
    assert row_names([pathlib.Path(folder) for folder in folders]) == names


@pytest.mark.parametrize(
    ("name", "page_of"),
    [
        ("serve_load", serve_table.as_markdown),
        ("serve_load_amx", serve_table.as_markdown),
        ("train_speed", train_table.as_markdown),
        ("avx2/serve_load", serve_table.as_markdown),
        ("avx2/train_speed", train_table.as_markdown),
        ("bfloat16/train_speed", train_table.as_markdown),
        ("translate_speed", translate_table.as_markdown),
    ],
)
def test_the_tables_of_a_committed_page_are_made_of_the_committed_numbers(name, page_of):
    """Notes on how it was measured stay as they were at that time."""
    numbers = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    pages = page_of(numbers), (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    fresh, committed = ([line for line in page.splitlines() if line.startswith(("#", "|"))] for page in pages)
    assert fresh == committed and len(fresh) > 5
