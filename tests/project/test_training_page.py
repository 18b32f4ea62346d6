"""docs/training.md and docs/corpora.md: what they show and name is what the code reads and does."""

import re

import pytest

from tests.support.places import ROOT
from train.config.run import KEYS, SECTIONS, RunConfig, load_config
from train.record.changes import FIXED

NUMBERS = 'run_folder = "runs/x"\n[data]\nsource = "numbers"\n'
TRAINING_MD = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
BOTH = TRAINING_MD + (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", BOTH, re.DOTALL))
def test_what_the_page_shows_is_a_configuration(block, tmp_path):
    path = tmp_path / "run.toml"
    head = 'run_folder = "runs/x"\n' if "[data]\n" in block else NUMBERS
    path.write_text(head + block, encoding="utf-8")
    assert load_config(path).run_folder


def test_the_page_names_keys_that_exist():
    named = set(re.findall(r"`(?:training|tokenizer|data)(?:\.\w+)+", BOTH))
    assert len(named) > 10 and named <= {f"`{key}" for key in KEYS}


def test_the_page_says_which_keys_may_change_within_a_run_and_after_it():
    section = TRAINING_MD.partition("## Going on with other settings")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and "`" in line]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    keys = {row[0]: set(re.findall(r"`(\w+(?:\.\w+)?)`", row[0])) for row in rows}
    (never,) = (row[0] for row in rows if row[1].startswith("refused: the checkpoints"))
    assert keys[never] | set(re.findall(r"`\[(\w+)\]`", never)) == {name.rstrip(".") for name in FIXED}
    after = {name for row in rows if row[2].startswith(("selects", "as above")) for name in keys[row[0]]}
    sections = [("", RunConfig)] + [(f"{name}.", kind) for name, kinds in SECTIONS.items() for kind in kinds]
    marked = {f"{name}{key}" for name, section in sections for key in (*section.PATHS, *section.AFTER_TRAINING)}
    assert after == marked - {"training.start_from"}
