"""The benchmark of translation: every contestant translates the same model, and ratios are quotients of medians."""

import gzip
import importlib.util
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.speed import translate as program
from benchmarks.speed import translate_work
from benchmarks.speed.translate import EVERYTHING, Effort, app
from benchmarks.speed.translate_table import search_flops
from benchmarks.speed.translators.ours import Ours
from keras_transformer.config import base
from tests.support.models import SMALL
from tests.support.runs import SENTENCES, random_run

needs = {
    name: pytest.mark.skipif(
        importlib.util.find_spec(name) is None, reason=f"{name} is not installed: pip install -r requirements-peers.txt"
    )
    for name in ("ctranslate2", "transformers")
}
TINY = SMALL.replace(vocab_size=300, encoder_layers=1, decoder_layers=1)


@pytest.fixture(scope="module")
def forced(tmp_path_factory):
    """A prepared folder whose model never ends an output by itself, and a line for it."""
    folder = tmp_path_factory.mktemp("work")
    translate_work.write_random_run(folder / "run", TINY)
    translate_work.write_arrays(folder)
    return folder, ["w5 w17 w200", "w9 w9 w100"]


@pytest.fixture(scope="module")
def greedy(forced):
    """Our translations of the lines by greedy search, of 9 tokens each: tracing the search takes seconds."""
    folder, lines = forced
    return Ours(folder).translate(lines, 1, 9, {"batch_size": 2})


@pytest.mark.release
def test_ours_gives_outputs_of_exactly_the_forced_length(forced, greedy):
    folder, lines = forced
    for texts in (greedy, Ours(folder).translate(lines, 4, 9, {"batch_size": 2})):
        assert [len(text.split()) for text in texts] == [8, 8]  # and EOS


@pytest.mark.release
@needs["transformers"]
def test_marian_has_our_weights_and_the_forced_length(forced, greedy):
    from benchmarks.speed.translators.marian import load

    folder, lines = forced
    marian = load(folder)
    found = marian.translate(lines, 1, 9, {"batch_size": 2, "threads": 1})
    assert [text.split()[:8] for text in found] == [text.split() for text in greedy]


@pytest.mark.release
@needs["ctranslate2"]
def test_ctranslate2_has_our_weights_and_the_forced_length(forced, greedy):
    from benchmarks.speed.translators.ctranslate2_model import load
    from export.ctranslate2.convert import write_model
    from keras_transformer.runs.saved_run import load_run

    folder, lines = forced
    (folder / "ctranslate2_float32").mkdir()
    write_model(*load_run(folder / "run"), folder / "ctranslate2_float32")
    found = load(folder, "float32").translate(lines, 1, 9, {"threads": (1, 1), "batch_size": 2})
    assert [text.split()[:8] for text in found] == [text.split() for text in greedy]


def test_the_products_of_a_search_at_base_are_about_370_mflop_per_token():
    config = base.replace(vocab_size=32_000)
    assert search_flops(config, 24, 24, beam_size=4) / 24 == pytest.approx(370e6, rel=0.06)
    assert search_flops(config, 24, 24, beam_size=1) / 24 < 125e6


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.release
@needs["ctranslate2"]
def test_a_run_from_command_to_files(tmp_path, monkeypatch):
    run = random_run(tmp_path / "run")
    for language in ("en", "de"):
        text = "".join(f"{line}\n" for line in SENTENCES)
        (tmp_path / f"test_2016_flickr.{language}.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(program, "QUICK", Effort(4, {"multi30k": EVERYTHING}, 2, ()))
    names = "ctranslate2_float32"
    result = invoke("--quick", "--contestants", names, "--run", run, "--data", tmp_path, "--results", tmp_path / "to")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "to" / "translate_speed.json").read_text(encoding="utf-8"))
    speeds = found["sentences_per_second"]
    assert len(speeds) == 2 * 3 and min(speeds.values()) > 0  # beams, modes
    assert found["missing"] == {} and min(found["product_flops"]["multi30k"].values()) > 1e9
    assert {len(one["seconds"]) for one in found["first"].values()} == {2}
    assert np.all([one["peak"] > 1e7 for one in found["first"].values()])
    assert (tmp_path / "to" / "translate_speed.md").read_text(encoding="utf-8") in result.output
