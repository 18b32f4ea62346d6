"""docs/results.md: its tables are those of the scores, and each file of scores says what its report says."""

import json
import re

import pytest

from benchmarks.recipes.results_page import DOCS, SCORES, Recipe, ResultsError, Run, filled, read_recipes, read_run
from train.loop.progress import duration

RESULTS = DOCS / "results"
RECIPES = read_recipes(RESULTS)
NAMES = [run.name for recipe in RECIPES for run in recipe.runs]


def run_of(value, seed=1):
    return Run("x/seed1", seed, dict.fromkeys(SCORES, (value, 0.5)), 10, 20, 65.0, "AMD EPYC", "0123456789")


def test_the_committed_page_is_that_of_the_committed_scores():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert filled(page, RECIPES) == page, "run python -m benchmarks.recipes.results_page"


def test_a_recipe_has_a_row_per_run_and_their_mean_with_its_deviation():
    recipe = Recipe("name", "en-de", "configs/x.toml", "recipes", [run_of(1.0), run_of(3.0, seed=2)], "a teacher")
    first, second, means = recipe.rows()
    assert first[:3] == [
        "**en-de** [name](../configs/x.toml); before it: a teacher",
        "[seed 1](results/x/seed1.md)",
        "1.00 ± 0.50",
    ]
    assert first[6:] == ["10", "20", "1 min 05 s", "AMD EPYC", "0123456"]
    assert second[0] == "" and means[:3] == ["", "mean of 2 (sd)", "**2.00** (1.41)"]
    assert len(Recipe("name", "en-de", "x.toml", "recipes", [run_of(1.0)]).rows()) == 1


def test_every_run_that_is_kept_is_in_a_table_once():
    kept = {str(path.relative_to(RESULTS).with_suffix("")) for path in RESULTS.glob("*/*.json")}
    assert sorted(NAMES) == sorted(name for name in kept if not name.startswith("ancestors/"))
    assert {recipe.table for recipe in RECIPES} == {"recipes", "not_adopted"}


@pytest.mark.parametrize("name", NAMES)
def test_the_scores_of_a_run_are_those_of_its_report(name):
    report, run = (RESULTS / f"{name}.md").read_text(encoding="utf-8"), read_run(name, RESULTS)
    for (measure, form), (value, margin) in run.scores.items():
        assert re.search(rf"^- {measure} +{value:.2f} ± {margin:.2f} +{form}  ", report, re.MULTILINE)
    for row in (
        rf"updates \| {run.updates:,}, ",
        rf"parameters \| {run.parameters:,} ",
        rf"time \| {duration(run.seconds)}, ",
    ):
        assert re.search(rf"^\| {row}", report, re.MULTILINE)
    assert f"git checkout {run.commit}" in report and f"\nseed = {run.seed}\n" in report


def test_a_run_without_scores_and_scores_that_lack_something_are_named(tmp_path):
    with pytest.raises(ResultsError, match="none.json"):
        read_run("none", tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"scores": []}), encoding="utf-8")
    with pytest.raises(ResultsError, match="training"):
        read_run("run", tmp_path)
