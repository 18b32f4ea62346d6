"""docs/results.md: its tables are those of the scores, and each file of scores says what its report says."""

import json
import re

import pytest

from benchmarks.recipes.results_page import (
    DOCS,
    NO_BREAK,
    SCORES,
    Recipe,
    ResultsError,
    Run,
    filled,
    read_recipes,
    read_run,
)
from keras_transformer.ground.durations import duration

RESULTS = DOCS / "results"
RECIPES = read_recipes(RESULTS)
NAMES = [run.name for recipe in RECIPES for run in recipe.runs]


def run_of(value, seed=1):
    return Run("x/seed1", seed, dict.fromkeys(SCORES, (value, 0.5)), 10, 20, 65.0, "AMD EPYC", "0123456789")


def recipe_of(runs):
    return Recipe("name", "en-de", "what", "configs/x.toml", runs, "a teacher")


def test_the_committed_page_is_that_of_the_committed_scores():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert filled(page, RECIPES) == page, "run python -m benchmarks.recipes.results_page"


def test_a_recipe_has_a_row_per_run_and_their_mean_with_its_deviation():
    runs = [run_of(1.0), run_of(3.0, seed=2)]
    first, second, means = recipe_of(runs).rows_of_runs()
    assert first[:3] == ["**name**", "[1](results/x/seed1.md)", "1.00 ± 0.50".replace(" ", NO_BREAK)]
    assert first[6:] == ["20", *(cell.replace(" ", NO_BREAK) for cell in ("1 min 05 s", "AMD EPYC")), "0123456"]
    assert second[0] == "" and means[:3] == ["", f"mean{NO_BREAK}(sd)", f"**2.00**{NO_BREAK}(1.41)"]
    assert len(recipe_of(runs[:1]).rows_of_runs()) == 1


def test_a_recipe_is_explained_in_one_row():
    row = recipe_of([run_of(1.0)]).row()
    assert row == ["**name**", "en-de", "what", "10", "[x.toml](../configs/x.toml)", "a teacher"]


def test_every_run_that_is_kept_is_in_a_table_once():
    kept = {str(path.relative_to(RESULTS).with_suffix("")) for path in RESULTS.glob("*/*.json")}
    elsewhere = ("ancestors/", "software/")  # in tables of their own
    assert sorted(NAMES) == sorted(name for name in kept if not name.startswith(elsewhere))


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
