"""Table 3, scaled: rows in the paper's proportions, and the table."""

import pytest

from benchmarks.paper import table3
from benchmarks.paper.table3_rows import ROWS, SEEDS, overrides_of, paper_config
from benchmarks.paper.table3_table import agreement, table
from benchmarks.result_files import RESULTS
from benchmarks.trials.outcome import Trial, read_outcome
from keras_transformer.config import TABLE_3, base
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.trials import outcome
from train.config.run import load_config

CONFIG = ROOT / "configs/paper/table3.toml"


def model_with(overrides, path=CONFIG, *more):
    config = load_config(path, [*overrides, *more])
    return config.transformer_config(config.tokenizer.vocab_size)


def test_every_row_of_the_presets_and_base_and_big_are_rows_of_the_table():
    assert {row.name for row in ROWS} == {"base", "big", *TABLE_3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_scaled_to_the_papers_own_base_is_the_papers_row(row):
    paper = ['model.preset="base"', *(f"model.{key}={getattr(base, key)}" for key in ("d_model", "d_ff", "num_heads"))]
    paper += ["model.encoder_layers=6", "model.decoder_layers=6"]
    found = model_with(paper, CONFIG, *overrides_of(row, base))
    theirs = paper_config(row).replace(vocab_size=found.vocab_size)
    shapes = ("d_model", "d_ff", "num_heads", "encoder_layers", "d_k", "d_v", "positions", "dropout", "label_smoothing")
    assert [getattr(found, name) for name in shapes] == [getattr(theirs, name) for name in shapes]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_scaled_row_changes_what_the_papers_row_changes_by_the_same_factor(row):
    own, theirs = model_with([]), paper_config(row)
    found = model_with(overrides_of(row, own))
    for name in ("d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout", "label_smoothing", "encoder_layers"):
        factor = getattr(theirs, name) / getattr(base, name)
        assert getattr(found, name) == pytest.approx(getattr(own, name) * factor)
    assert found.positions == theirs.positions


def test_there_is_a_trial_per_row_and_base_is_the_configuration_itself():
    base_trial, *others = table3.trials_of(CONFIG, load_config(CONFIG))
    assert base_trial == Trial("base", CONFIG) and len(others) == len(TABLE_3) + 1 + len(SEEDS)
    assert [load_config(CONFIG, trial.overrides).training.seed for trial in others[-2:]] == [2, 3]
    for trial in others:
        assert load_config(trial.config, trial.overrides) != load_config(CONFIG)


def test_a_model_that_is_no_transformer_is_one_sentence(tmp_path):
    path = ROOT / "configs/paper/recurrent_dot.toml"
    result = invoke(table3.app, path, "--folder", tmp_path / "runs", "--results", tmp_path)
    assert_one_sentence(result, path, "'recurrent'", 'model.kind = "transformer"')


def test_the_table_names_how_a_row_differs_and_leaves_out_what_was_not_trained():
    found = {"base": outcome(30.0, 5.0), "C_d_ff_1024": outcome(29.0, 5.5)._replace(commits=["feed"])}
    lines = table(load_config(CONFIG), found, "python -m benchmarks.paper.table3").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in lines if line.startswith("| ")}
    assert "2 of 20 rows" in lines[2]
    assert "Not all rows were trained by the same code: base by c0ffee; C_d_ff_1024 by feed." in lines
    assert rows["base"][1:6] == ["3", "128", "512", "8", "16"]
    assert rows["(C) d_ff"][1:6] == ["", "", "256", "", ""] and rows["(C) d_ff"][8:10] == ["5.50", "29.00 ± 1.00"]
    assert rows["(C) d_ff"][11] == "90"
    assert rows["(C) d_ff"][12:14] == ["5.12", "25.4"]
    assert rows["C_d_ff_1024"][1:4] == ["-", "-", "-"] and rows["C_d_ff_1024"][4].startswith("-")
    assert "(A) h" not in rows


def test_the_committed_table_is_made_of_the_committed_rows():
    """The rows are those of the committed configuration, which `read_outcome` checks."""
    base, kept = load_config(CONFIG), RESULTS / "table3"
    found = {trial.name: read_outcome(trial, kept) for trial in table3.trials_of(CONFIG, base)}
    outcomes = {name: outcome for name, outcome in found.items() if outcome}
    text = table(base, outcomes, "python -m benchmarks.table3 configs/paper/table3.toml")
    assert (RESULTS / "table3.md").read_text(encoding="utf-8") == text


def test_perplexity_has_its_interval_if_the_row_has_one():
    new = outcome(29.0, 5.5)
    new.scores["validation_perplexity_interval"] = [5.2, 5.9]
    lines = table(load_config(CONFIG), {"base": outcome(30.0, 5.0), "C_d_ff_1024": new}, "the command").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in lines if line.startswith("| ")}
    assert (rows["base"][8], rows["(C) d_ff"][8]) == ("5.00", "5.50 ± 0.35")


def test_a_difference_that_a_seed_makes_is_no_agreement_and_the_rows_are_counted():
    found = {
        "base": outcome(30.0, 5.0),
        "base_seed_2": outcome(29.8, 4.95),
        "base_seed_3": outcome(30.3, 5.0),
        "A_1_head": outcome(29.4, 5.1),  # as in the paper
        "C_2_layers": outcome(29.5, 5.05),  # both are worse by no more than another seed makes them
        "C_d_model_1024": outcome(29.0, 4.9),  # BLEU is worse, and better in the paper
        "A_16_heads": outcome(30.6, 5.0),  # in the paper it has another perplexity and the same BLEU
    }
    lines = agreement(found)
    assert "3 trainings of base" in lines[0] and "up to 0.05 PPL and 0.50 BLEU apart" in lines[0]
    assert signs_in(lines) == {
        "A_1_head": ["-", "-", "-", "-"],
        "A_16_heads": ["=", "+", "+", "="],
        "C_2_layers": ["=", "-", "=", "-"],
        "C_d_model_1024": ["+", "+", "-", "+"],
    }
    assert lines[-2] == (
        "Of 4 rows, by PPL 2 go the paper's way, 0 do not, and 2 are within the noise; "
        "by BLEU 1 go the paper's way, 2 do not, and 1 are within the noise."
    )
    alone = {name: each for name, each in found.items() if name not in SEEDS}
    assert "has not been measured" in agreement(alone)[0]
    assert signs_in(agreement(alone))["C_2_layers"] == ["-", "-", "-", "-"]
    assert agreement({"base": found["base"]}) == agreement({"A_1_head": found["A_1_head"]}) == []


def signs_in(lines):
    return {line.split(" | ")[0].removeprefix("| "): line.rstrip(" |").split(" | ")[1:] for line in lines[4:-3]}


def test_base_with_another_seed_is_a_line_below_base_and_no_row_of_the_paper():
    found = {"base": outcome(30.0, 5.0), "base_seed_3": outcome(30.3, 5.1), "big": outcome(31.0, 4.5)}
    lines = table(load_config(CONFIG), found, "the command").splitlines()
    assert "2 of 20 rows" in lines[2]
    rows = [line.split(" | ") for line in lines if line.startswith(("| base", "| big"))][:3]
    assert [row[0] for row in rows] == ["| base", "| base, seed 3", "| big"]
    assert rows[1][1:10] == [*[""] * 7, "5.10", "30.30 ± 1.00"]
