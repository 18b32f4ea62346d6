"""Every function, class and test file that docs/equations.md names exists."""

import importlib
import re

from tests.support.places import ROOT

TABLE = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line[:1] == "|"]
HEAD, BODY = ROWS[0], [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[2:]]
NAMES = sorted({name for row in BODY for name in re.findall(r"`([^`]+)`", row["code"])})
TESTS = sorted({name for row in BODY for name in re.findall(r"`([^`]+)`", row["tests"])})


def test_the_table_has_these_columns_and_a_row_for_every_part_of_the_paper():
    assert HEAD == ["section", "what", "code", "tests", "departure from the paper"]
    assert {"3.1", "3.2.1, eq. 1", "3.2.2", "3.3, eq. 2", "3.4", "3.5", "5.1", "5.3", "5.4", "6.1"} <= {
        row["section"] for row in BODY
    }
    assert all(cell for row in BODY for cell in row.values())


def exists(name):
    package = "" if name.startswith("train.") else "keras_transformer."
    module, _, attribute = f"{package}{name}".rpartition(".")
    return hasattr(importlib.import_module(module), attribute)


def test_every_function_and_class_exists():
    assert NAMES and [name for name in NAMES if not exists(name)] == []


def test_every_test_file_exists_once():
    """Of the model and of its training: other rooms may have files of the same names."""
    files = [path.name for room in ("library", "train") for path in (ROOT / "tests" / room).rglob("test_*.py")]
    assert TESTS and [name for name in TESTS if files.count(name) != 1] == []
