"""The benchmark of engines: each is compared with CTranslate2 of its precision and model, by medians of its turns."""

import gzip
import importlib.util
import json

import pytest
from typer.testing import CliRunner

from benchmarks.speed import engines as program
from benchmarks.speed.engines_table import peer_of, table_row
from benchmarks.speed.shortlist import HEAD, row
from benchmarks.speed.students import ENGINES, MODELS, SOURCE, shortened, table
from benchmarks.speed.translate_worker import available
from benchmarks.speed.translators import BFLOAT16
from keras_transformer.ground import machine
from tests.support.runs import SENTENCES, random_run


def point(model, engine, milliseconds, **other):
    seconds = [value / 1e3 for value in milliseconds]
    one = {"model": model, "engine": engine, "cores": 1, "mode": "one", "setting": {"batch_size": 1}}
    return one | {"seconds": seconds, "processor_seconds": seconds, "bleu": 40.0, "same": None} | other


POINTS = [
    point("a", "ours", [9, 8, 100]),
    point("a", "litert_int8", [2, 2, 3]),
    point("a", "ctranslate2_float32", [4, 4.5, 7], processor_seconds=[0.018] * 3),
    point("a", "ctranslate2_int8", [1, 3, 8]),
    point("b", "ours", [5, 5, 5], mode="many", bleu=41.0),
]


def test_a_ratio_is_of_medians_and_with_the_same_precision_and_model():
    assert [peer and peer["engine"] for peer in (peer_of(one, POINTS) for one in POINTS)] == [
        "ctranslate2_float32",
        "ctranslate2_int8",
        "ctranslate2_float32",
        "ctranslate2_int8",
        None,
    ]
    assert "| 9.00 | 9.00 | 2.00, 0.50 | 40.00 |" in table_row(POINTS[0], peer_of(POINTS[0], POINTS))
    assert "| 2.00 | 2.00 | 1.50, 1.50 |" in table_row(POINTS[1], peer_of(POINTS[1], POINTS))


def test_marian_is_left_out_with_a_line_if_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None if package == "pymarian" else package)
    missing = {}
    assert available(["ours", "marian_float32", "ctranslate2_int8"], missing) == ["ours", "ctranslate2_int8"]
    assert missing == {"marian_float32": "needs pymarian, which is not installed: run `pip install pymarian`."}


@pytest.mark.parametrize(("flags", "found"), [("avx2", ["ours"]), ("avx2 amx_bf16", ["ours", *BFLOAT16])])
def test_bfloat16_is_left_out_with_a_line_where_no_processor_multiplies_in_it(monkeypatch, flags, found):
    monkeypatch.setattr(machine, "cpuinfo", lambda: f"flags : {flags}")
    assert available(["ours", *BFLOAT16], missing := {}) == found
    assert missing.keys() == {*BFLOAT16} - {*found}
    assert all("no instructions for bfloat16 products" in reason for reason in missing.values())


def invoke(*arguments):
    return CliRunner().invoke(program.app, list(map(str, arguments)))


@pytest.mark.release
@pytest.mark.skipif(importlib.util.find_spec("ctranslate2") is None, reason="ctranslate2 is not installed")
def test_from_command_to_files(tmp_path):
    runs = [random_run(tmp_path / name) for name in ("teacher/run", "student/run")]
    for language in ("en", "de"):
        text = "".join(f"{line}\n" for line in SENTENCES)
        (tmp_path / f"test_2016_flickr.{language}.gz").write_bytes(gzip.compress(text.encode()))
    options = ["--engines", "ctranslate2_float32,ctranslate2_int8", "--one", 2, "--many", 3, "--rounds", 2]
    folders = ["--run", runs[0], "--student", runs[1], "--data", tmp_path, "--results", tmp_path / "to"]
    result = invoke(*options, *folders)
    assert result.exit_code == 0, result.output
    points = json.loads((tmp_path / "to" / "engines.json").read_text(encoding="utf-8"))["points"]
    assert {(one["model"], one["engine"], one["mode"]) for one in points} == {
        (model, engine, mode)
        for model in map(str, runs)
        for engine in ("ctranslate2_float32", "ctranslate2_int8")
        for mode in ("one", "many")
    }
    assert all(len(one["seconds"]) == 2 and min(one["seconds"]) > 0 for one in points)
    assert (tmp_path / "to" / "engines.md").read_text(encoding="utf-8") in result.output


def test_a_ratio_is_how_many_times_less_processor_time_a_sentence_takes():
    seconds = {("litert", "off"): 0.0120, ("litert", "on"): 0.0048, ("ctranslate2", "off"): 0.0072}
    seconds |= {("ctranslate2", "on"): 0.0036, ("ctranslate2_int8", "off"): 9.0, ("ctranslate2_int8", "on"): 9.0}
    cells = row("litert", "one a call", seconds).split("|")[1:-1]
    assert [cell.strip() for cell in cells] == ["litert", "one a call", "12.00", "4.80", "2.50", "1.50", "0.75"]
    assert len(cells) == HEAD.splitlines()[0].count("|") - 1


def test_a_source_has_as_many_tokens_as_it_says_with_its_end():
    line = " ".join(f"w{number}" for number in range(40))
    assert len(shortened(line).split()) + 1 == SOURCE and line.startswith(shortened(line))


def test_a_share_is_of_the_first_model_without_a_shortlist_in_the_same_precision():
    seconds = {
        (model, shortlist, engine): 0.001 * (8 - 2 * place - (shortlist == "on")) * (4 if engine == "litert" else 1)
        for place, model in enumerate(MODELS)
        for shortlist in ("off", "on")
        for engine in ENGINES
    }
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(seconds).splitlines()[2:]]
    assert [row[:2] for row in rows] == [[model, shortlist] for model in MODELS for shortlist in ("off", "on")]
    assert rows[0][2:] == ["32.00", "1.00", "8.00", "1.00"]
    assert rows[3][2:] == ["20.00", "0.62", "5.00", "0.62"]
