"""`keras-transformer evaluate` from end to end: a run's own test set, files of one's own, and a user's mistakes."""

import functools
import json
import shutil
import signal

import pytest

import train.evaluate
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.processes import start_python
from tests.support.repeating import Repeating
from tests.support.runs import random_run, write_config
from train.config.run import load_config

evaluate_command = functools.partial(invoke, train.evaluate.app)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run folder with random weights, whose configuration has a test set of 12 pairs from en to de."""
    folder = random_run(tmp_path_factory.mktemp("evaluate") / "run")
    (folder / "config.toml").write_text(load_config(write_config(folder.parent)).to_toml(), encoding="utf-8")
    return folder


@pytest.fixture
def loaded(monkeypatch):
    """A list of what Translator.load is called with; the Translator that it gives repeats its lines."""
    calls = []

    def load(*arguments, **named):
        calls.append((arguments, named))
        return Repeating()

    monkeypatch.setattr(Translator, "load", load)
    return calls


@pytest.fixture
def files(tmp_path):
    """--source and --reference of two sentences."""
    (tmp_path / "source").write_text("fünf\nzwölf z.B.\n", encoding="utf-8")
    (tmp_path / "reference").write_text("fünf\nzwölf z.B.\n", encoding="utf-8")
    return ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


@pytest.fixture
def long_files(tmp_path):
    """--source and --reference of two sentences of four words."""
    for name in ("source", "reference"):
        (tmp_path / name).write_text("eins zwei drei vier\nfünf sechs sieben acht\n", encoding="utf-8")
    return ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


def test_the_runs_own_test_set_is_scored_as_in_the_report(finished):
    folder = finished[1]
    result = evaluate_command(folder)
    assert result.exit_code == 0, result.output
    report = (folder / "report.md").read_text(encoding="utf-8")
    first, *lines = result.stdout.splitlines()[:7]
    assert first.startswith("data.test_pairs, beam 4, ") and all(f"- {line}\n" in report for line in lines)
    assert lines[5].startswith("exact ") and lines[5].endswith(" per cent of 12 sentences")


@pytest.mark.slow
def test_given_files_are_scored_line_by_line(folder, tmp_path):
    (tmp_path / "source").write_text("five\ntwelve\n\n", encoding="utf-8")
    (tmp_path / "reference").write_text("fünf\nzwölf\n\n", encoding="utf-8")
    output = tmp_path / "translations"
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "reference", "--output", output]
    result = evaluate_command(folder, *files, "--beam-size", 1)
    assert result.exit_code == 0, result.output
    first, *bleu, chrf, ter, exact = result.stdout.splitlines()[:7]
    search = "length penalty 0.6, extra length 50, length normalization gnmt, coverage penalty 0.0"
    search += ", shortlist off, keep letterless 1, no repeat ngram 0, repetition penalty 1.0"
    assert first == f"{files[1]} and {files[3]}, beam 1, {search}, precision float32:"
    assert [line.startswith("BLEU n/a ") for line in bleu] == [True] * 3 and "no reference has four tokens" in bleu[0]
    assert "nc:6" in chrf and "tercom" in ter and exact.endswith(" per cent of 2 sentences")
    assert output.read_text(encoding="utf-8").count("\n") == 3 and output.read_text(encoding="utf-8").endswith("\n\n")


def test_all_forms_are_printed_with_signatures_and_tables(folder, long_files, loaded):
    lines = evaluate_command(folder, *long_files).stdout.splitlines()[1:]
    signatures = ["tok:13a", "case:lc|eff:no|tok:13a", "case:lc|eff:no|tok:none", "nc:6", "tok:tercom"]
    assert all(" ± " in line and signature in line for line, signature in zip(lines, signatures, strict=False))
    assert "By words of the source sentence, BLEU of raw text:" in lines
    assert "By occurrences of the reference's words in the training text (300 pairs):" in lines
    assert sum(line.startswith("  up to 5 ") for line in lines) == 1


def test_json_is_one_object_with_all_of_it(folder, long_files, loaded):
    options = "--json --beam-size 3 --metric-command".split()
    result = evaluate_command(folder, *long_files, *options, "sh -c 'wc -l <$1' -")
    found = json.loads(result.stdout)
    assert (found["run"], found["text"]) == (str(folder), f"{long_files[1]} and {long_files[3]}")
    assert (found["beam_size"], found["precision"], found["sentences"]) == (3, "float32", 2)
    assert [row["name"] for row in found["scores"]] == ["BLEU", "BLEU", "BLEU", "chrF", "TER"]
    assert found["scores"][0]["value"] > 0 and found["against"] is None and found["by_programs"][0]["value"] == 2


@pytest.mark.slow
def test_a_plot_is_drawn_and_if_it_cannot_be_the_scores_are_there(folder, files, loaded, tmp_path, monkeypatch):
    assert "\nBLEU " in evaluate_command(folder, *files, "--plot", tmp_path / "plot.svg").stdout
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<?xml")
    monkeypatch.setattr(train.evaluate, "draw_scorecard", lambda *_: 1 / 0)
    assert "\nBLEU " in evaluate_command(folder, *files, "--plot", tmp_path / "plot.svg").stdout


# against others


@pytest.mark.slow
def test_against_a_file_its_lines_are_compared(folder, long_files, loaded, tmp_path):
    (tmp_path / "theirs").write_text("eins zwei drei vier\nnichts\n", encoding="utf-8")
    options = ["--against", tmp_path / "theirs", "--paired-test", "randomization", "--json"]
    against = json.loads(evaluate_command(folder, *long_files, *options).stdout)["against"]
    assert (against["name"], against["paired_test"]) == (str(tmp_path / "theirs"), "randomization")
    bleu = against["differences"][0]
    assert bleu["ours"] > bleu["theirs"] > 0 and bleu["p_value"] == 1 and "ar:10000" in bleu["signature"]
    (line,) = against["lines"]
    assert (line["line"], line["ours"], line["theirs"]) == (2, "fünf sechs sieben acht", "nichts")


def test_against_a_run_its_translations_are_compared(folder, long_files, loaded, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    options = "--paired-test", "bootstrap", "--beam-size", 2, "--batch-size", 5
    result = evaluate_command(folder, *long_files, "--against", other, *options)
    assert [call[0][0] for call in loaded] == [(folder,), (other,)] and loaded[0][1:] == loaded[1][1:]
    assert loaded[0][0][1] == loaded[1][0][1] == SearchOptions(beam_size=2)
    assert f"Against {other}, with a paired bootstrap test (bs:1000|seed:12345):" in result.stdout
    assert result.stdout.splitlines()[-1] == "No two translations differ in sentence chrF."  # both repeat their lines


# every option arrives


def test_source_reference_and_output_are_the_files_that_they_name(folder, files, loaded, tmp_path):
    (tmp_path / "reference").write_text("fünf\nzehn\n", encoding="utf-8")
    result = evaluate_command(folder, *files, "--output", tmp_path / "output")
    assert Repeating.lines == ["fünf", "zwölf z.B."]
    assert (tmp_path / "output").read_text(encoding="utf-8") == "fünf\nzwölf z.B.\n"
    assert result.stdout.splitlines()[6] == "exact 50.00 per cent of 2 sentences"


def test_a_run_without_a_configuration_scores_given_files(files, loaded, tmp_path):
    """A run of examples/fit.py has none."""
    result = evaluate_command(tmp_path / "run", *files)
    assert result.exit_code == 0, result.output
    assert "exact 100.00 per cent of 2 sentences" in result.stdout and "the run has no config.toml" in result.stdout
    assert_one_sentence(evaluate_command(tmp_path / "run"), tmp_path / "run", "config.toml", "--source and --reference")


# mistakes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["{folder}", "--source", "{text}"], ["--source", "--reference"]),
        (["{folder}", "--reference", "{text}"], ["--source", "--reference"]),
        (["{folder}", "--source", "{text}", "--reference", "none.de"], ["none.de", "No such file"]),
        (["{folder}", "--source", "{text}", "--reference", "{empty}"], ["2 lines", "0", "a pair is one line of each"]),
        (["{folder}", "--source", "{empty}", "--reference", "{other}"], ["{empty}", "{other}", "are empty"]),
        (["{folder}", "--source", "{text}", "--reference", "{text}"], ["{text}", "--source", "--reference", "both"]),
        (["{folder}", "--source", "{text}", "--reference", "{other}", "--output", "{other}"], ["{other} is one of"]),
        (["{folder}", "--output", "{folder}/config.toml"], ["--output {folder}/config.toml is a file of the run"]),
        (["{folder}", "--plot", "{folder}/curves.png"], ["--plot {folder}/curves.png is a file of the run"]),
        (["{folder}", "--against", "{text}", "--output", "{text}"], ["--output {text} is one of the files"]),
        (["{folder}", "--output", "{nothing}/x.gz"], ["--output {nothing}/x.gz ends in .gz"]),
        (["{nothing}"], ["{nothing}", "model.json", "not a run folder"]),
        (["{nothing}/none"], ["no run folder {nothing}/none"]),
        (["{folder}", "--paired-test", "t"], ["--paired-test is 't'", "bootstrap or randomization"]),
        (["{folder}", "--against", "{text}"], ["--against {text} has 2 lines", "has 12"]),
        (["{folder}", "--against", "{nothing}"], ["{nothing}", "model.json", "not a run folder"]),
        (["{folder}", "--against", "{nothing}/none"], ["{nothing}/none", "No such file"]),
        (["{folder}", "--plot", "{nothing}/x.png", "--output", "{nothing}/x.png"], ["--output and --plot are both"]),
        (["{folder}", "--plot", "{nothing}/x.jpg"], ["--plot {nothing}/x.jpg", ".png, .svg, .pdf"]),
    ],
)
def test_a_mistake_is_one_sentence(folder, tmp_path, arguments, parts):
    names = {name: tmp_path / name for name in ("text", "empty", "other", "nothing")} | {"folder": folder}
    names["text"].write_text("five\nsix\n", encoding="utf-8")
    names["empty"].touch()
    names["other"].touch()
    names["nothing"].mkdir()
    result = evaluate_command(*(argument.format(**names) for argument in arguments))
    assert_one_sentence(result, *(part.format(**names) for part in parts))


DAMAGE = {
    "model.weights.h5": [b"", b"no HDF5", None],
    "config.toml": [b"[data", b"\xff"],
    "model.json": [b"", b"{", b"\xff"],
    "tokenizer.model": [b"", b"\xff"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "content"), [(name, content) for name in DAMAGE for content in DAMAGE[name]])
def test_a_damaged_file_of_the_run_folder_is_one_sentence(folder, tmp_path, name, content):
    copy = shutil.copytree(folder, tmp_path / "run")
    before = (copy / name).read_bytes()
    (copy / name).write_bytes(before[:2000] + bytes(200) + before[2200:] if content is None else content)
    assert_one_sentence(evaluate_command(copy), copy / name)


# Ctrl-C

SLOW = """
import runpy, signal, time
from keras_transformer.translation.translator import Translator

def translate(self, lines):
    print("translating", flush=True)
    time.sleep(60)

Translator.translate = translate
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
runpy.run_module("train.evaluate", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_translation_at_once_without_a_traceback(folder, files):
    with start_python("-c", SLOW, folder, *files) as process:
        assert process.stdout.readline() == "translating\n"
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=50)[1]
    assert process.returncode == -signal.SIGINT and "Traceback" not in errors  # 130 in a shell
