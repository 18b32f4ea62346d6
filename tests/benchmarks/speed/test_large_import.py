"""What a process costs is its own, a failure is told, and the bytes of a folder are those of its weights."""

import ast
import re

import pytest
import typer

from benchmarks.speed import large_import
from benchmarks.speed.large_import import bytes_of, cost_of, main, row
from tests.support.m2m import m2m_folder
from tests.support.processes import python
from tests.support.t5 import MADLAD, t5_folder

MEMORY = 300_000_000
LARGE = f"b'x' * {MEMORY}; raise SystemExit(3)"


@pytest.mark.slow
def test_the_memory_and_the_status_are_those_of_the_process():
    """In a process as small as the benchmark's own is: Linux counts what a process was before it began a program."""
    done = python("-c", f"from {cost_of.__module__} import cost_of; print(tuple(cost_of(['-c', {LARGE!r}])))")
    seconds, processor_seconds, memory, status = ast.literal_eval(done.stdout)
    assert status == 3 and MEMORY < memory < 1.5 * MEMORY
    assert 0 < processor_seconds and 0 < seconds


def test_a_row_has_the_memory_over_the_weights_and_a_failure():
    cost = large_import.Cost(2.0, 3.0, 2_600_000_000, 0)
    assert row("import", cost, 2_000_000_000, "1.94") == "| import | 2.0 | 3.0 | 2.60 | 1.30 | 1.94 |"
    assert row("import", cost._replace(status=1), 2_000_000_000, "").endswith("| failed: 1 |")


@pytest.mark.parametrize(
    ("names", "expected"), [(["model.safetensors", "pytorch_model.bin"], 3), (["a.npz", "config.json"], 3)]
)
def test_the_weights_are_those_that_an_import_reads(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).write_bytes(bytes(3))
    assert bytes_of(tmp_path) == expected


@pytest.mark.slow
def test_an_import_that_fails_ends_the_table(tmp_path, capfd):
    folder = m2m_folder(tmp_path / "m2m")
    (folder / "vocab.json").write_text("{")
    with pytest.raises(typer.Exit):
        main(folder, place=tmp_path)
    assert "| failed: 1 |" in (printed := capfd.readouterr()).out and "| export" not in printed.out


@pytest.mark.nightly
def test_each_format_has_its_rows(tmp_path, capfd):
    main(t5_folder(tmp_path / "t5", MADLAD), target="de", place=tmp_path, format=["saved_model", "litert"])
    printed = re.findall(
        r"^\| (.+?) \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \| ([\d.]*) \|$", capfd.readouterr().out, re.M
    )
    each = ("export to {}", "open {}", "open {}, and one sentence")
    assert [step for step, _ in printed] == [
        "import",
        *(step.format(kind) for kind in ("saved_model", "litert") for step in each),
    ]
