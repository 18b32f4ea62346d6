"""The Transformer beside its ancestors: configurations of one size, and the table with its picture."""

import pytest
from PIL import Image

from benchmarks.errors import BenchmarkError
from benchmarks.paper import ancestors
from benchmarks.paper.ancestors import timed
from benchmarks.paper.ancestors_table import draw, over_equal_time, table
from benchmarks.trials.outcome import Trial, read_outcome
from benchmarks.trials.sizes import check_same_size
from tests.support.places import ROOT
from tests.support.trials import outcome
from train.config.run import load_config
from train.cost.cost import parameter_count

CONFIG = "[training]\ndropout = 0.15\nvalidate_every = 25\n"


def with_lengths(found, by_length):
    """The outcome with BLEU by length and chrF."""
    chrf = {"name": "chrF", "form": "raw text", "value": 50.0, "interval": None, "signature": "sig"}
    lengths = [{"words": words, "sentences": 7, "bleu": {"value": value}} for words, value in by_length.items()]
    found.scores["scores"].append(chrf)
    found.scores["by_length"] = lengths
    return found


def test_the_ancestors_are_compared_by_length_and_over_time(tmp_path):
    outcomes = {
        "new": with_lengths(outcome(30.0, 5.0, config=CONFIG), {"up to 10": 40.0, "11 and more": 20.0}),
        "old": with_lengths(outcome(20.0, 9.0, config=CONFIG), {"up to 10": 30.0, "11 and more": None}),
    }
    text = table(outcomes, {"new": "n.toml", "old": "o.toml"}, 0.5, "a machine", "python -m benchmarks.paper.ancestors")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| new") or line.startswith("| old")
    ]
    assert rows[0] == ["new", "`n.toml`", "1,000", "0.15", "60", "3,000", "1.5", "2.0", "30.00 ± 1.00", "50.00"]
    assert "| sentences | 7 | 7 |" in text.splitlines()
    assert rows[2:] == [["new", "40.0", "20.0"], ["old", "30.0", "n/a"]]
    draw(outcomes, 30.0, tmp_path / "ancestors.png")
    with Image.open(tmp_path / "ancestors.png") as picture:
        assert picture.width > 1_000 and len(picture.convert("RGB").getcolors(10**6)) > 3


def test_a_validation_comes_when_its_share_of_the_steps_is_done():
    found = outcome(30.0, 5.0, config=CONFIG)._replace(curve=[[1.0, 10.0], [9.0, 20.0], [9.5, 30.0]])
    assert over_equal_time(found, 30.0) == ([12.5, 25.0, 30.0], [10.0, 20.0, 30.0])  # 25, 50 and 60 of 60 steps


def test_rows_of_several_machines_say_of_which_they_are():
    outcomes = {
        name: with_lengths(outcome(30.0, 5.0, config=CONFIG, machine=f"machine of {name}"), {"all": 1.0})
        for name in ("new", "old")
    }
    text = table(outcomes, {"new": "n.toml", "old": "o.toml"}, 30.0, "a machine", "the command")
    assert "`the command` on machine of new (a) and machine of old (b): as many training steps" in text
    assert "as take 30 minutes of a machine.\n" in text
    assert "Not all rows" not in text
    assert "| 60 | 50 | 1.5 (a) | 2.0 |" in text and "| 60 | 50 | 1.5 (b) | 2.0 |" in text


def test_the_committed_steps_are_of_the_committed_configurations(tmp_path):
    trials = [Trial(name, ROOT / f"configs/paper/{name}.toml") for name in ancestors.LABELS]
    assert len(timed(trials, 30.0, tmp_path, ROOT / "docs/results/ancestors/steps.json")[0]) == 5


def test_the_committed_table_is_made_of_the_committed_rows(tmp_path):
    """The rows are those of the committed configurations, which `read_outcome` checks."""
    trials = [Trial(name, ROOT / f"configs/paper/{name}.toml") for name in ancestors.LABELS]
    kept = ROOT / "docs/results/ancestors"
    trials, machine = timed(trials, 30.0, tmp_path, kept / "steps.json")
    outcomes = {ancestors.LABELS[trial.name]: read_outcome(trial, kept) for trial in trials}
    configs = {ancestors.LABELS[trial.name]: trial.config.relative_to(ROOT) for trial in trials}
    text = table(outcomes, configs, 30.0, machine, "python -m benchmarks.ancestors")
    assert (ROOT / "docs/results/ancestors.md").read_text(encoding="utf-8") == text


def test_the_committed_configurations_of_the_ancestors_have_the_same_text_batches_and_search():
    configs = [load_config(ROOT / f"configs/paper/{name}.toml") for name in ancestors.LABELS]
    counts = [parameter_count(config.transformer_config(config.tokenizer.vocab_size)) for config in configs]
    check_same_size(dict(zip(ancestors.LABELS, counts, strict=True)))  # raises BenchmarkError if they are not
    for same in ("data", "tokenizer", "translation"):
        assert all(getattr(config, same) == getattr(configs[0], same) for config in configs)
    for same in ("tokens_per_batch", "row_lengths", "seed", "average_checkpoints", "checkpoint_every", "bpe_dropout"):
        assert len({getattr(config.training, same) for config in configs}) == 1


def test_models_of_unequal_size_are_not_compared():
    check_same_size({})
    check_same_size({"a": 1_000, "b": 1_050})
    with pytest.raises(BenchmarkError, match=r"a 1,000, b 1,060"):
        check_same_size({"a": 1_000, "b": 1_060})
    with pytest.raises(BenchmarkError, match="2% apart"):
        check_same_size({"a": 1_000, "b": 1_030}, 0.02)
