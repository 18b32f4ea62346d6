"""The table of LoRA's memory and time has a row for each kind of training, and runs none that would not fit."""

import re

import pytest

from benchmarks.speed.large_folder import Shape, write_large_folder
from benchmarks.speed.large_lora import KINDS, row
from keras_transformer.config import TransformerConfig
from tests.support.processes import python


def test_a_training_that_would_take_too_much_is_not_run():
    wide = TransformerConfig(vocab_size=1_000_000)
    cells = [cell.strip() for cell in row("nowhere", wide, "all weights", (8, 32, 4), most=1.0).split("|")[1:-1]]
    assert cells[0] == "all weights" and cells[3] == "not run: more than 1"
    assert float(cells[2]) > 4 * 4 * 512e6 / 2**30  # weights, gradients and two moments


@pytest.mark.nightly
def test_the_table_has_a_row_for_each_kind(tmp_path):
    write_large_folder(tmp_path / "m2m", Shape(layers=1, d_model=16, d_ff=32, heads=2, pieces=200))
    assert python("-m", "keras_transformer", "import", tmp_path / "m2m", tmp_path / "run").returncode == 0
    options = ["--rows", "2", "--length", "8", "--steps", "2"]
    done = python("-m", "benchmarks.speed.large_lora", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = re.findall(r"^\| (.+?) \| [\d,]+ \([\d.]+%\) \| [\d.]+ \| [\d.]+ \| [\d.]+ \|$", done.stdout, re.MULTILINE)
    assert rows == list(KINDS)
