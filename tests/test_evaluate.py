"""`python -m train.evaluate` from end to end: a run's own test set, files of one's own, and a user's mistakes."""

import functools
import shutil
import signal

import pytest

import train.evaluate
from keras_transformer.batching import BATCH_SIZE
from keras_transformer.config import SearchOptions
from keras_transformer.translator import Translation, Translator
from tests.support.commands import assert_one_sentence, help_of, invoke
from tests.support.processes import start_python
from tests.support.runs import random_run, write_config
from train.config import FilesData, load_config
from train.evaluation import bleu

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


class Repeating:
    lines = []

    def translate(self, lines):
        Repeating.lines = list(lines)
        return [Translation(line, 0.0) for line in lines]


@pytest.fixture
def files(tmp_path):
    """--source and --reference of two sentences."""
    (tmp_path / "source").write_text("fünf\nzwölf z.B.\n", encoding="utf-8")
    (tmp_path / "reference").write_text("fünf\nzwölf z.B.\n", encoding="utf-8")
    return ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


def test_the_runs_own_test_set_is_scored_as_in_the_report(finished):
    folder = finished[1]
    result = evaluate_command(folder)
    assert result.exit_code == 0, result.output
    report = (folder / "report.md").read_text(encoding="utf-8")
    lines = result.stdout.splitlines()
    assert len(lines) == 3 and all(f"- {line}\n" in report for line in lines)
    assert lines[2].endswith(" per cent of 12 sentences")


@pytest.mark.parametrize(("options", "signature"), [([], "tok:13a"), (["--tokenised"], "case:lc|eff:no|tok:none")])
def test_given_files_are_scored_line_by_line(folder, tmp_path, options, signature):
    (tmp_path / "source").write_text("five\ntwelve\n\n", encoding="utf-8")
    (tmp_path / "reference").write_text("fünf\nzwölf\n\n", encoding="utf-8")
    output = tmp_path / "translations"
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "reference", "--output", output]
    result = evaluate_command(folder, *files, "--beam-size", 1, *options)
    assert result.exit_code == 0, result.output
    bleu, chrf, exact = result.stdout.splitlines()
    assert bleu.startswith("BLEU ") and signature in bleu and chrf.startswith("chrF ") and "nc:6" in chrf
    assert exact.endswith(" per cent of 3 sentences")
    assert output.read_text(encoding="utf-8").count("\n") == 3 and output.read_text(encoding="utf-8").endswith("\n\n")


# every option arrives


def test_the_search_options_arrive(folder, files, loaded):
    options = ["--beam-size", 7, "--length-penalty", 0.25, "--batch-size", 5, "--precision", "bfloat16"]
    assert evaluate_command(folder, *files, *options).exit_code == 0
    assert evaluate_command(folder, *files).exit_code == 0
    assert loaded == [
        ((folder, SearchOptions(beam_size=7, length_penalty=0.25)), {"batch_size": 5, "precision": "bfloat16"}),
        ((folder, SearchOptions()), {"batch_size": BATCH_SIZE, "precision": "float32"}),
    ]


def test_tokenised_is_by_the_rules_of_the_target_language(folder, files, loaded, monkeypatch):
    languages, tokenise = [], bleu.tokenise

    def recorded(lines, language):
        languages.append(language)
        return tokenise(lines, language)

    monkeypatch.setattr(bleu, "tokenise", recorded)
    assert evaluate_command(folder, *files).exit_code == 0 and languages == []
    assert evaluate_command(folder, *files, "--tokenised").exit_code == 0 and languages == ["de", "de"]


def test_source_reference_and_output_are_the_files_that_they_name(folder, files, loaded, tmp_path):
    (tmp_path / "reference").write_text("fünf\nzehn\n", encoding="utf-8")
    result = evaluate_command(folder, *files, "--output", tmp_path / "output")
    assert Repeating.lines == ["fünf", "zwölf z.B."]
    assert (tmp_path / "output").read_text(encoding="utf-8") == "fünf\nzwölf z.B.\n"
    assert result.stdout.splitlines()[2] == "exact 50.00 per cent of 2 sentences"


def test_a_runs_test_set_needs_no_training_text(tmp_path):
    (tmp_path / "test.tsv").write_text("a\tb\nc\td\n", encoding="utf-8")
    data = {"source": "files", "train": [["none.en", "none.de"]], "validation": [str(tmp_path / "test.tsv")]}
    expected = [("a", "b"), ("c", "d")]
    assert train.evaluate.pairs_of_run(FilesData(**data)) == expected
    data |= {"validation": ["none.tsv"], "test": [str(tmp_path / "test.tsv")]}
    assert train.evaluate.pairs_of_run(FilesData(**data)) == expected


# mistakes


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["{folder}", "--source", "{text}"], ["--source", "--reference"]),
        (["{folder}", "--reference", "{text}"], ["--source", "--reference"]),
        (["{folder}", "--source", "{text}", "--reference", "none.de"], ["none.de", "No such file"]),
        (["{folder}", "--source", "{text}", "--reference", "{empty}"], ["2 lines", "0", "a pair is one line of each"]),
        (["{folder}", "--source", "{empty}", "--reference", "{other}"], ["{empty}", "{other}", "nothing to score"]),
        (["{folder}", "--source", "{text}", "--reference", "{text}"], ["{text}", "--source", "--reference", "both"]),
        (["{folder}", "--beam-size", "0"], ["beam_size is 0"]),
        (["{nothing}"], ["{nothing}", "model.json", "not a run folder"]),
        (["{nothing}/none"], ["no run folder {nothing}/none"]),
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


@pytest.mark.parametrize(("name", "content"), [(name, content) for name in DAMAGE for content in DAMAGE[name]])
def test_a_damaged_file_of_the_run_folder_is_one_sentence(folder, tmp_path, name, content):
    copy = shutil.copytree(folder, tmp_path / "run")
    before = (copy / name).read_bytes()
    (copy / name).write_bytes(before[:2000] + bytes(200) + before[2200:] if content is None else content)
    assert_one_sentence(evaluate_command(copy), copy / name)


@pytest.mark.parametrize(
    ("output", "part"), [("none/x", "there is no folder"), ("", "it is a folder"), ("text/x", "there is no folder")]
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_translated(
    folder, files, loaded, tmp_path, output, part
):
    (tmp_path / "text").touch()
    path = tmp_path / output
    assert_one_sentence(evaluate_command(folder, *files, "--output", path), f"--output {path}", part)
    assert loaded == []


@pytest.mark.slow
def test_help_answers_without_waiting_for_tensorflow():
    text = help_of("train.evaluate")
    assert "--reference" in text and "<bool>" not in text and "imported: set()" in text


# Ctrl-C

SLOW = """
import runpy, signal, time
from keras_transformer.translator import Translator

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
