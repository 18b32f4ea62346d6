"""What benchmarks write beside their numbers, and where."""

import pytest

from benchmarks.result_files import command_line, whole_command_line, write_result


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
