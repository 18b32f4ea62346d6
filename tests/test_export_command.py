"""`python -m export`: numbered versions, a check that can fail, and one sentence for every mistake."""

import shutil

import pytest

from export import check, command, exported, translate_command
from export.versions import ExportError, find_version, publish, unfinished_version
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exports import OPTIONS, write_version
from tests.support.processes import python
from tests.support.runs import SENTENCES, random_run

SEARCH = ["--extra-length", str(OPTIONS.extra_length)]


def run_export(*arguments):
    return invoke(command.app, *arguments, *SEARCH)


def run_translate(folder, *options, text=b""):
    return invoke(translate_command.app, folder, *options, stdin=text)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def encoded(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def served(run, tmp_path_factory):
    """A folder with one version of `run`, and the Translator of the same."""
    folder = tmp_path_factory.mktemp("served")
    return folder, write_version(run, folder / "1")


# --- the export -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_versions_are_numbered_and_checked_on_the_runs_own_sentences(run, tmp_path):
    folder = tmp_path / "made" / "for it"
    first = run_export(run, "--to", folder)
    lines = len(SENTENCES)
    assert first.stdout == f"compared {lines} lines: {lines} the same, 0 ties, 0 different\n{folder / '1'}\n"
    assert first.exit_code == 0
    second = run_export(run, "--to", folder, "--no-check")
    assert second.stdout == f"{folder / '2'}\n"
    assert names_in(folder) == ["1", "2"]
    assert names_in(folder / "1") == names_in(folder / "2")


def test_an_export_that_differs_is_not_published(run, served, tmp_path, monkeypatch):
    lines = SENTENCES[-2:]
    right = served[1].translate(lines)[0]
    answers = [exported.Translation(right.text, right.score), exported.Translation("something else", -0.5)]
    monkeypatch.setattr(exported.ExportedTranslator, "translate", lambda self, lines: answers)
    (tmp_path / "two.txt").write_bytes(encoded(lines))
    result = run_export(run, "--to", tmp_path / "exports", "--check", tmp_path / "two.txt")
    assert result.exit_code == 1
    assert result.stdout == "compared 2 lines: 1 the same, 0 ties, 1 different\n"
    assert f"line 2, {lines[1]!r}: 'something else' with score -0.500000 from the export" in result.stderr
    assert names_in(tmp_path) == ["two.txt"]


def test_an_export_that_needs_xla_is_not_published(run, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "xla_in", lambda graph: {"XlaDynamicUpdateSlice"})
    result = run_export(run, "--to", tmp_path / "exports", "--no-check")
    assert_one_sentence(result, "XlaDynamicUpdateSlice")
    assert names_in(tmp_path) == []


def test_without_sentences_to_check_on_there_is_no_export(run, tmp_path):
    bare = shutil.copytree(run, tmp_path / "bare", ignore=lambda *_: ["validation.src.txt"])
    assert_one_sentence(run_export(bare, "--to", tmp_path / "exports"), "validation.src.txt", "--check", "--no-check")
    assert not (tmp_path / "exports").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"one\ntwo\nth\xe4t\n", ["Line 3", "0xe4"]), (b"\n \n", ["no sentence"]), (None, ["There is no file"])],
)
def test_sentences_to_check_on_must_be_text(run, tmp_path, content, words):
    if content is not None:
        (tmp_path / "check.txt").write_bytes(content)
    result = run_export(run, "--to", tmp_path / "exports", "--check", tmp_path / "check.txt")
    assert_one_sentence(result, tmp_path / "check.txt", *words)
    assert not (tmp_path / "exports").exists()


def test_what_is_no_run_folder_is_not_exported(run, tmp_path):
    assert_one_sentence(run_export(tmp_path / "none", "--to", tmp_path / "exports"), tmp_path / "none")
    unfinished = shutil.copytree(run, tmp_path / "unfinished", ignore=lambda *_: ["model.weights.h5"])
    assert_one_sentence(run_export(unfinished, "--to", tmp_path / "exports"), "model.weights.h5")
    assert names_in(tmp_path) == ["unfinished"]


def test_versions_are_not_written_into_a_file(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert_one_sentence(run_export(run, "--to", tmp_path / "file"), tmp_path / "file", "not a folder")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--beam-size", "0"], "beam_size"),
        (["--length-penalty", "-1"], "length_penalty"),
        (["--max-source-tokens", "1"], "max_source_tokens"),
        (["--check", "x", "--no-check"], "contradict"),
    ],
)
def test_options_that_make_no_sense_are_named(run, tmp_path, options, word):
    assert_one_sentence(run_export(run, "--to", tmp_path / "exports", *options), word)
    assert names_in(tmp_path) == []


# --- versions ---------------------------------------------------------------------------------------------------


def test_a_version_is_seen_only_when_it_is_complete(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "notes").mkdir()
    with unfinished_version(tmp_path) as unfinished:
        (unfinished / "saved_model.pb").touch()
        assert not unfinished.name.isdigit()
        with pytest.raises(ExportError, match="no exported version"):
            find_version(tmp_path)
        assert publish(unfinished) == tmp_path / "8"
    assert find_version(tmp_path) == find_version(tmp_path / "8") == tmp_path / "8"
    assert names_in(tmp_path) == ["7", "8", "notes"]


def test_two_exports_at_once_take_two_numbers(tmp_path, monkeypatch):
    with unfinished_version(tmp_path) as one, unfinished_version(tmp_path) as other:
        (one / "saved_model.pb").touch()
        assert publish(one) == tmp_path / "1"
        monkeypatch.setattr("export.versions.versions", lambda folder: [])  # as it was when the other one looked
        assert publish(other) == tmp_path / "2"


def test_ten_is_newer_than_nine(tmp_path):
    for number in (9, 10):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "saved_model.pb").touch()
    assert find_version(tmp_path).name == "10"


def test_an_interrupted_export_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), unfinished_version(tmp_path / "a" / "b") as unfinished:
        (unfinished / "half").touch()
        raise KeyboardInterrupt
    assert names_in(tmp_path) == []


# --- translating with an export alone ---------------------------------------------------------------------------


def test_line_in_line_out(served):
    folder, translator = served
    expected = translator.translate(SENTENCES)
    text = encoded([*SENTENCES, ""])
    assert run_translate(folder, text=text).stdout_bytes == encoded([*(t.text for t in expected), ""])
    with_scores = run_translate(folder / "1", "--scores", "--batch-size", "2", text=text).stdout
    assert [line.split("\t")[1] for line in with_scores.splitlines()] == [*(t.text for t in expected), ""]
    scores = [float(line.split("\t")[0]) for line in with_scores.splitlines()]
    assert scores == pytest.approx([*(t.score for t in expected), 0.0], abs=2e-4)


def test_line_ends_and_byte_order_marks_are_not_text(served):
    plain = run_translate(served[0], text=b"der K\xc3\xbcche\nkochen\n").stdout
    assert run_translate(served[0], text=b"\xef\xbb\xbfder K\xc3\xbcche\r\nkochen").stdout == plain
    assert run_translate(served[0], text=b"").stdout == ""


def test_text_that_is_not_utf_8_is_named_by_its_line(served):
    assert_one_sentence(run_translate(served[0], text=b"a\nK\xfcche\n"), "Line 2", "byte 2", "0xfc")


def test_a_line_break_inside_a_translation_does_not_break_the_line(served, monkeypatch):
    answers = [exported.Translation("one\r\ntwo", -1.0)]
    monkeypatch.setattr(exported.ExportedTranslator, "translate", lambda self, lines: answers)
    assert run_translate(served[0], "--scores", text=b"line\n").stdout == "-1.0000\tone two\n"


def test_folders_without_an_export_are_refused(tmp_path):
    assert_one_sentence(run_translate(tmp_path), tmp_path, "no exported version")
    assert_one_sentence(run_translate(tmp_path / "none"), "does not exist")
    (tmp_path / "file").touch()
    assert_one_sentence(run_translate(tmp_path / "file"), "is a file")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"no protocol buffer")
    assert_one_sentence(run_translate(tmp_path), tmp_path / "1", "cannot be loaded")


WITNESS = """
import sys
import tensorflow, tensorflow_text
theirs = set(sys.modules)  # TensorFlow itself imports parts of Keras
sys.argv = ["export", "translate", sys.argv[1]]
from export.__main__ import main
try:
    main()
except SystemExit as end:
    ours = {name for name in set(sys.modules) - theirs if name.split(".")[0] in ("keras", "keras_transformer")}
    for name in ("", ".console", ".errors", ".files"):  # reading lines, reporting mistakes: no model code
        ours.discard(f"keras_transformer{name}")
    sys.exit(f"imported {sorted(ours)}" if ours else end.code)
"""

HELP = """
import sys
from export.__main__ import main
try:
    main()
except SystemExit as end:
    sys.exit("imported TensorFlow" if "tensorflow" in sys.modules or "keras" in sys.modules else end.code)
"""


@pytest.mark.slow
def test_translating_with_an_export_imports_neither_keras_nor_the_model(served):
    process = python("-c", WITNESS, str(served[0]), stdin=encoded(SENTENCES[:2]))
    assert process.returncode == 0, process.stderr
    assert process.stdout == encoded(translation.text for translation in served[1].translate(SENTENCES[:2]))


@pytest.mark.slow
def test_help_names_both_commands_and_does_not_wait_for_tensorflow():
    process = python("-c", HELP, "--help")
    assert process.returncode == 0, process.stderr
    assert "--max-source-tokens" in process.stdout and "python -m export translate FOLDER" in process.stdout
    process = python("-c", HELP, "translate", "--help")
    assert process.returncode == 0, process.stderr
    assert "--scores" in process.stdout


@pytest.mark.slow
def test_mistakes_end_the_process_with_an_error():
    process = python("-m", "export", "no such run", "--to", "no such folder", "--no-check")
    assert process.returncode == 1
    assert process.stdout == ""
    assert "Error: There is no run folder no such run." in process.stderr
    assert "Traceback" not in process.stderr
