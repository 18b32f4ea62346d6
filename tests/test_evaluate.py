"""`python -m train.evaluate` from end to end: a run's own test set, files of one's own, and a user's mistakes."""

import functools

import pytest

import train.evaluate
from keras_transformer.translator import Translator
from tests.support.runs import assert_one_sentence, help_of, invoke

evaluate_command = functools.partial(invoke, train.evaluate.app)


@pytest.fixture
def without_xla(monkeypatch):
    """Short texts are translated sooner than a search is compiled."""
    load = functools.partial(Translator.load, xla=False)
    monkeypatch.setattr(Translator, "load", load)


def test_evaluate_scores_the_runs_own_test_set_as_the_report_does(finished, without_xla):
    folder = finished[1]
    result = evaluate_command(folder)
    assert result.exit_code == 0, result.output
    report = (folder / "report.md").read_text(encoding="utf-8")
    lines = result.stdout.splitlines()
    assert len(lines) == 3 and all(f"- {line}\n" in report for line in lines)
    assert lines[2].endswith(" per cent of 12 sentences")


@pytest.mark.parametrize(("options", "signature"), [([], "tok:13a"), (["--tokenised"], "case:lc|eff:no|tok:none")])
def test_evaluate_scores_files_of_ones_own(finished, without_xla, tmp_path, options, signature):
    (tmp_path / "source").write_text("five\ntwelve\n\n", encoding="utf-8")
    (tmp_path / "reference").write_text("fünf\nzwölf\n\n", encoding="utf-8")
    output = tmp_path / "translations"
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "reference", "--output", output]
    result = evaluate_command(finished[1], *files, "--beam-size", 1, *options)
    assert result.exit_code == 0, result.output
    bleu, chrf, exact = result.stdout.splitlines()
    assert bleu.startswith("BLEU ") and signature in bleu and chrf.startswith("chrF ") and "nc:6" in chrf
    assert exact.endswith(" per cent of 3 sentences")
    assert output.read_text(encoding="utf-8").count("\n") == 3 and output.read_text(encoding="utf-8").endswith("\n\n")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["{folder}", "--source", "{text}"], ["--source and --reference belong together"]),
        (["{folder}", "--reference", "{text}"], ["--source and --reference belong together"]),
        (["{folder}", "--source", "{text}", "--reference", "none.de"], ["none.de", "No such file"]),
        (["{folder}", "--source", "{text}", "--reference", "{empty}"], ["2 lines", "0", "a pair is one line of each"]),
        (["{folder}", "--source", "{empty}", "--reference", "{empty}"], ["there is nothing to score"]),
        (["{folder}", "--beam-size", "0"], ["beam_size is 0"]),
        (
            ["{folder}", "--source", "{text}", "--reference", "{text}", "--output", "/dev/null/x"],
            ["--output /dev/null/x"],
        ),
        (["{nothing}"], ["{nothing}", "model.json", "not a run folder"]),
        (["{nothing}/none"], ["There is no run folder {nothing}/none"]),
    ],
)
def test_a_mistake_in_evaluation_is_one_sentence(finished, without_xla, tmp_path, arguments, parts):
    names = {name: tmp_path / name for name in ("text", "empty", "nothing")} | {"folder": finished[1]}
    names["text"].write_text("five\nsix\n", encoding="utf-8")
    names["empty"].write_text("", encoding="utf-8")
    names["nothing"].mkdir()
    result = evaluate_command(*(argument.format(**names) for argument in arguments))
    assert_one_sentence(result, *(part.format(**names) for part in parts))


def test_help_answers_without_waiting_for_tensorflow():
    text = help_of("train.evaluate")
    assert "--reference" in text and "imported: set()" in text
