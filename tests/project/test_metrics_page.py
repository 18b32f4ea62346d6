"""docs/metrics.md: every name that training writes is explained, and its lines send a run to another tracker."""

import contextlib
import re
import sys
import types

import pytest

from tests.support.places import ROOT
from tests.support.runs import metrics_of

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
FIELDS = set(re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.+?`) \|", PAGE, re.MULTILINE))))


def is_explained(name):
    """Whether the page has the name; <words> in a name of the page stand for anything."""
    return any(re.fullmatch(re.sub(r"<[^>]+>", ".+", field), name) for field in FIELDS)


@pytest.mark.nightly
def test_every_name_in_the_file_is_explained_and_every_name_explained_is_there(finished):
    names = {name for line in metrics_of(finished[1]) for name in line}
    assert [name for name in sorted(names) if not is_explained(name)] == []
    missing = {field for field in FIELDS if "<" not in field and field not in names}
    of_trees = "bracketing_f1", "bracketing_precision", "bracketing_recall", "exact_trees", "well_formed"
    of_other_runs = {f"{writer}/{name}" for writer in ("validation", "final") for name in of_trees}
    assert missing <= of_other_runs | {"final/bleu", "train/overflow_share"}  # numbers are one word; it is in float32


def test_the_lines_send_a_run_to_another_tracker(tmp_path, monkeypatch):
    logged = []
    tracker = types.SimpleNamespace(
        start_run=contextlib.nullcontext, log_metrics=lambda numbers, step: logged.append((step, numbers))
    )
    monkeypatch.setitem(sys.modules, "mlflow", tracker)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "metrics.jsonl").write_text(
        '{"step": 1, "time": 5.0, "train/loss": 2.5}\n'
        '{"step": 1, "time": 6.0, "validation/loss": 3, "validation/bleu": null, "validation/samples": "| ä |"}\n',
        encoding="utf-8",
    )
    (code,) = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
    exec(code, {})
    assert logged == [(1, {"train/loss": 2.5}), (1, {"validation/loss": 3})]
