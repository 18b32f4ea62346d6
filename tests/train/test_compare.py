"""`keras-transformer compare`: runs side by side, and a user's mistakes."""

import functools
import json

import numpy as np
import pytest
from PIL import Image

import train.compare
from keras_transformer.runs.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.processes import python
from tests.support.runs import write_config
from train.config.run import load_config
from train.report.comparison import read_run

compare_command = functools.partial(invoke, train.compare.app)
SIGNATURES = {"BLEU": "nrefs:1|bs:1000|tok:13a|version:2.6.0", "chrF": "nrefs:1|bs:1000|nc:6|version:2.6.0"}


def score(name, value, margin):
    interval = None if margin is None else [value - margin, value + margin]
    return {"name": name, "form": "raw text", "value": value, "interval": interval, "signature": SIGNATURES[name]}


SCORES = {
    "split": "data.test",
    "sentences": 1_000,
    "scores": [score("BLEU", 39.02, 1.31), score("chrF", 61.5, None)],
    "exact": 12.5,
    "validation_loss": 2.25,
}


def make_run(path, *overrides, scores=None, loss=2.0):
    """A run folder with three steps and two validations, as training leaves it; without `scores` it has not ended."""
    path.mkdir()
    folder, config = RunFolder(path), load_config(write_config(path.parent), overrides)
    folder.config.write_text(config.to_toml(), encoding="utf-8")
    records = [
        {"step": step, "train/loss": loss + 3 - step, "train/tokens_per_second": 1000.0 * step**2} for step in (1, 2, 3)
    ]
    records += [{"step": step, "validation/loss": loss + step, "validation/bleu": 10.0 * step} for step in (1, 3)]
    folder.metrics.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    folder.checkpoints.mkdir()
    for step, seconds in ((2, 60.0), (3, 90.0)):
        np.savez(folder.checkpoints / f"step-{step:08d}.npz", progress=np.array(json.dumps({"seconds": seconds})))
    if scores:
        folder.scores.write_text(json.dumps(scores), encoding="utf-8")
    return path


@pytest.fixture
def pair(tmp_path):
    """A run that has ended and one that has not, which differ in two settings."""
    one = make_run(tmp_path / "one", scores=SCORES)
    return one, make_run(tmp_path / "other", "training.dropout=0.2", "training.patience=4", loss=1.0)


def rows_of(output):
    """The cells of the printed table by their first one."""
    table = output.split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table]
    return {first: others for first, *others in cells}


def test_settings_that_differ_scores_speed_steps_and_minutes_are_one_table(pair):
    result = compare_command(*pair)
    assert result.exit_code == 0, result.output
    assert rows_of(result.stdout) == {
        "training.dropout": ["0.3", "0.2"],
        "training.patience": ["-", "4"],
        "scored on": ["data.test, 1,000 sentences", "not evaluated"],
        "BLEU, raw text": ["39.02 ± 1.31", "not evaluated"],
        "chrF, raw text": ["61.50", "not evaluated"],
        "exact, per cent": ["12.50", "not evaluated"],
        "best validation loss": ["3.000 at step 1", "2.000 at step 1"],
        "best validation BLEU": ["30.000 at step 3", "30.000 at step 3"],
        "target tokens/s, median": ["4,000", "4,000"],
        "steps": ["3", "3"],
        "minutes": ["1.5", "1.5"],
    }
    assert all(f"{name}, raw text: {signature}\n" in result.stdout for name, signature in SIGNATURES.items())


@pytest.mark.parametrize(("step", "is_of_now"), [(3, True), (2, False), (None, True)])
def test_scores_of_before_the_run_went_on_are_not_its_scores(pair, step, is_of_now):
    scores = SCORES | ({"step": step} if step else {})
    (pair[0] / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    assert read_run(pair[0]).scores == (scores if is_of_now else None)
    table = rows_of(compare_command(*pair).stdout)
    assert table["scored on"] == ["data.test, 1,000 sentences" if is_of_now else "not evaluated", "not evaluated"]


def test_runs_of_a_treebank_are_compared_by_f1(pair):
    for run, f1 in zip(pair, (61.0, 62.5), strict=True):
        with open(run / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": 3, "validation/bracketing_f1": f1}) + "\n")
    assert rows_of(compare_command(*pair).stdout)["best validation F1"] == ["61.000 at step 3", "62.500 at step 3"]
    found = json.loads(compare_command(*pair, "--json").stdout)
    assert [run["best_validation"]["bracketing_f1"] for run in found["runs"]] == [[3, 61.0], [3, 62.5]]


def test_the_plot_is_written(pair, tmp_path):
    (tmp_path / "plot.png").symlink_to("target.png")  # whose file is written
    assert compare_command(*pair, "--plot", tmp_path / "plot.png").exit_code == 0
    assert (tmp_path / "plot.png").is_symlink()
    assert Image.open(tmp_path / "plot.png").size[0] > 1000


# mistakes


def test_folders_that_are_no_runs_are_one_sentence(pair, tmp_path):
    assert_one_sentence(compare_command(pair[0], tmp_path / "none"), f"There is no folder {tmp_path / 'none'}")
    assert_one_sentence(compare_command(pair[0], tmp_path), f"{tmp_path} is no run folder", "config.toml")
    assert_one_sentence(compare_command(pair[0], pair[0] / "config.toml"), "There is no folder", "config.toml")


def test_a_plot_in_the_place_of_a_file_of_a_run_is_one_sentence(pair):
    path = pair[1] / "curves.png"
    assert_one_sentence(compare_command(*pair, "--plot", path), f"--plot {path} is a file of the run")


def test_one_run_or_the_same_twice_is_one_sentence(pair):
    assert_one_sentence(compare_command(pair[0]), "two different run folders", pair[0])
    assert_one_sentence(compare_command(pair[0], pair[0]), "two different run folders")
    assert_one_sentence(compare_command(pair[0], pair[0] / ".." / pair[0].name), "two different run folders")


def test_damaged_files_are_one_sentence(pair):
    [first, *_] = SCORES["scores"]
    lacking = [{name: first[name] for name in first if name != key} for key in first if key != "margin"]
    contents = [SCORES | {"scores": scores} for scores in (3, [3], *([score] for score in lacking))]
    contents += [{name: SCORES[name] for name in SCORES if name != key} for key in SCORES if key != "validation_loss"]
    contents += [[], {}, {"step": "last"}]
    contents += [SCORES | {"exact": 10**400}, SCORES | {"scores": [first | {"value": 10**400}]}]
    for content in (*map(json.dumps, contents), "{", "1", "[" * 100_000, "\ud8ff"):
        (pair[0] / "scores.json").write_text(content, encoding="utf-8", errors="surrogatepass")
        assert_one_sentence(compare_command(*pair), pair[0] / "scores.json", "damaged")
    (pair[0] / "config.toml").write_text("steps = ", encoding="utf-8")
    assert_one_sentence(compare_command(*pair), pair[0] / "config.toml", "TOML")


@pytest.mark.parametrize(("name", "part"), [("plot.txt", ".png"), ("none/plot.png", "no folder")])
def test_a_plot_that_cannot_be_written_is_one_sentence(pair, tmp_path, name, part):
    assert_one_sentence(compare_command(*pair, "--plot", tmp_path / name), "--plot", name, part)


@pytest.mark.slow
def test_runs_are_compared_without_tensorflow_and_keras():
    code = "import sys, train.report.comparison_plot; print({'tensorflow', 'keras'} & set(sys.modules))"
    assert python("-c", code).stdout == "set()\n"
