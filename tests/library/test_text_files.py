"""`keras-transformer translate --paragraphs, --format, --input, --output`: texts and files through the command."""

import io
import json
import os
import re
import resource

import pytest

from keras_transformer.commands import files, translate_input
from keras_transformer.runs.inference import Inference
from tests.support.capital_runs import capital_run, translate
from tests.support.commands import assert_one_sentence
from tests.support.documents import capitals


@pytest.fixture
def run(tmp_path, monkeypatch):
    return capital_run(tmp_path, monkeypatch)


def test_paragraphs_keep_their_spaces_line_breaks_and_empty_lines(run):
    text = "\ufeffa dog.  a cat.\r\n\r\n  - and\n\n\nend"
    result = translate(run, "--paragraphs", stdin=text.encode())
    assert (result.exit_code, result.stdout_bytes.decode()) == (0, capitals(text))
    assert run.seen == ["a dog.", "a cat.", "and", "end"]
    assert translate(run, "--format", "text", stdin=text.encode()).stdout_bytes == result.stdout_bytes


def test_fields_have_names(run):
    result = translate(run, "--format", "jsonl", "--field", "a", "--field", "b", stdin=b'{"b":"x","c":"y","a":"z"}\n')
    assert result.stdout == '{"b":"X","c":"y","a":"Z"}\n'
    assert translate(run, "--format", "tsv", "--field", "2", stdin=b"a\tb\n").stdout == "a\tB\n"


def test_a_broken_line_ends_the_command_after_those_before_it(run):
    result = translate(run, "--format", "jsonl", "--field", "t", stdin=b'{"t":"a"}\n{"t"\n{"t":"b"}\n')
    assert (result.exit_code, result.stdout) == (1, '{"t":"A"}\n')
    assert re.fullmatch("Error: the input, line 2 is not JSON: .*\n", result.stderr)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--paragraphs", "--format", "srt"], "--paragraphs is --format text, and contradicts --format srt"),
        (["--format", "html", "--field", "a"], "--field is for --format jsonl and tsv: leave it out"),
        (["--state", "new"], "--state and --all are for --format xliff and po and ts: leave them out, or give one"),
        (["--format", "html", "--all"], "--state and --all are for --format xliff and po"),
        (
            ["--format", "html", "--target-language", "de"],
            "--target-language is for --format xliff and json and android and ts and po and strings and properties and "
            "jsonl and tsv: leave it out",
        ),
        (["--format", "xliff", "--target-language", "German"], "The language is 'German': give its code"),
        (["--format", "jsonl"], "--format jsonl needs the fields that are translated"),
        (
            ["--paragraphs", "--n-best", "2"],
            "--n-best, --scores, --confidence, --target-prefixes, --require and --required are for lines",
        ),
        (["--paragraphs", "--scores"], "are for lines"),
        (["--format", "srt", "--target-prefix", "a"], "--target-prefix is for lines and for --format text"),
        (["--input", "nowhere.txt"], "nowhere.txt: No such file or directory"),
        (["--output", "nowhere/out.txt"], "There is no folder nowhere for --output nowhere/out.txt: make it first"),
        (["--output", "/"], "/: This is a folder: name a file"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(run, arguments, sentence):
    result = translate(run, *arguments)
    assert result.exit_code == 1 and re.fullmatch(f"Error: .*{sentence}.*\n", result.stderr), result.stderr


def test_an_unknown_format_is_a_wrong_command_line(run):
    result = translate(run, "--format", "pdf")
    assert result.exit_code == 2 and "'pdf' is not one of" in result.stderr


def test_the_options_of_xliff_reach_it(run, caplog):
    unit = '<unit id="1"><segment state="final"><source>a</source><target>b</target></segment></unit>'
    file = f'<xliff version="2.0" srcLang="en"><file id="1">{unit}</file></xliff>'
    result = translate(run, "--format", "xliff", "--state", "final", "--target-language", "de", stdin=file.encode())
    assert result.stdout == file.replace('"en"', '"en" trgLang="de"').replace(">b<", ">A<")
    result = translate(run, "--format", "xliff", stdin=file.encode())
    assert result.stdout == file and "0 units translated, 1 left: 1 with a target in state final" in caplog.text


# A file that is killed


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCHES_OF_A_FILE", 1)
    return tmp_path / "in.txt", tmp_path / "out.txt"


@pytest.mark.parametrize("form", ["lines", "text"])
@pytest.mark.parametrize("fails_at", ["dog 0.", "dog 7.", "dog 19."])
def test_a_killed_command_goes_on_where_it_was(run, paths, form, fails_at):
    source, target = paths
    source.write_text("".join(f"dog {n}.\n\n" for n in range(20)))
    command = ["--format", form, "--input", source, "--output", target, "--batch-size", "2"]
    run.fails_at = fails_at
    assert translate(run, *command).exit_code != 0 and not target.exists()
    first, run.fails_at = run.seen, None
    result = translate(run, *command)
    assert (result.exit_code, target.read_text()) == (0, source.read_text().upper()), result.stderr
    assert [line for line in first + run.seen if line] == [f"dog {n}." for n in range(20)]
    assert sorted(os.listdir(target.parent)) == ["in.txt", "out.txt", "run"]


@pytest.mark.parametrize("fails_at", [None, "dog 0.", "dog 7."])
def test_a_prefix_begins_the_first_sentence_of_a_file_and_no_other_after_a_kill(run, paths, fails_at):
    source, target = paths
    source.write_text("\n***\n\n" + "".join(f"dog {n}.\n\n" for n in range(20)))
    command = ["--paragraphs", "--target-prefix", ">", "--input", source, "--output", target, "--batch-size", "2"]
    run.fails_at = fails_at
    if fails_at:
        assert translate(run, *command).exit_code != 0
    run.fails_at = None
    result = translate(run, *command)
    expected = source.read_text().upper().replace("DOG 0.", ">DOG 0.")
    assert (result.exit_code, target.read_text()) == (0, expected), result.stderr


def test_after_a_correction_it_goes_on_at_the_line(run, paths):
    source, target = paths
    source.write_text('{"t": "a"}\n{"t": "b"}\n{"t"\n{"t": "c"}\n')
    command = ["--format", "jsonl", "--field", "t", "--input", source, "--output", target]
    result = translate(run, *command)
    assert result.exit_code == 1 and "line 3 is not JSON" in result.stderr
    assert "out.txt.unfinished has the translations of all before it: the same command goes on there" in result.stderr
    source.write_text(source.read_text().replace('{"t"\n', '{"t": "x"}\n'))
    assert translate(run, *command).exit_code == 0
    assert run.seen == ["x", "c"] and target.read_text() == '{"t": "A"}\n{"t": "B"}\n{"t": "X"}\n{"t": "C"}\n'


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("input", "has the translations of another input"),
        ("shorter", "has the translations of another input"),
        ("option", "has what another model, search or format wrote"),
        ("weights", "has what another model, search or format wrote"),
    ],
)
def test_what_is_written_is_not_joined_to_other_work(run, paths, change, sentence):
    source, target = paths
    source.write_text("one.\n" * 5 + "two.\n")
    command, run.fails_at = ["--input", source, "--output", target, "--batch-size", "1"], "two."
    translate(run, *command)
    unfinished = target.with_name("out.txt.unfinished")
    kept, run.fails_at = unfinished.read_bytes(), None
    assert kept
    if change == "input":
        source.write_text("other.\n" * 9)
    if change == "shorter":
        source.write_text("one.\n")
    if change == "weights":
        (source.parent / "run" / "model.weights.h5").write_bytes(b"others")
    result = translate(run, *command, *(["--beam-size", "2"] if change == "option" else []))
    assert result.exit_code == 1 and sentence in result.stderr and unfinished.read_bytes() == kept
    unfinished.unlink()
    assert translate(run, *command).exit_code == 0 and target.read_text() == source.read_text().upper()


@pytest.mark.parametrize("outputs", ["text", "trees"])
def test_every_option_that_changes_the_output_is_recorded(run, paths, monkeypatch, outputs):
    """So that no file is joined from the outputs of two of them."""
    source, words = paths[0], paths[0].with_name("words")
    source.touch()
    words.write_text("word\n")
    Inference(outputs).save(paths[0].parent / "run" / "inference.json")
    works = []
    monkeypatch.setattr(translate_input, "translate_files", lambda road, files, size, work: works.append(work()))
    changes = (
        [["--draw"], ["--constrained"]]
        if outputs == "trees"
        else [
            ["--target-prefix", "x"],
            ["--confidence"],
            ["--protect", "urls"],
            ["--keep", words],
            ["--forbid", words],
            ["--shortlist", "on"],
            ["--format", "text"],
            ["--format", "text", "--language", "de"],
            ["--format", "tsv", "--field", "1"],
            ["--format", "tsv", "--field", "2"],
        ]
    )
    changes += [["--scores"], ["--beam-size", 3], ["--n-best", 2], ["--precision", "bfloat16"]]
    changes += [["--max-source-tokens", 9], ["--length-penalty", 2], [], ["--batch-size", 2]]
    for change in changes:
        assert translate(run, "--input", source, "--output", paths[1], *change).exit_code == 0
    assert works[-1] == works[-2] and len({json.dumps(work) for work in works}) == len(changes) - 1


@pytest.mark.parametrize("damage", [b"", b"{", b'{"parts": 2}'])
def test_a_damaged_journal_begins_anew(run, paths, damage):
    source, target = paths
    source.write_text("one.\n" * 5 + "two.\n")
    command, run.fails_at = ["--input", source, "--output", target, "--batch-size", "1"], "two."
    translate(run, *command)
    journal, run.fails_at = target.with_name("out.txt.journal"), None
    assert json.loads(journal.read_text())["parts"]
    journal.write_bytes(damage)
    assert translate(run, *command).exit_code == 0 and target.read_text() == source.read_text().upper()


def test_html_that_does_not_close_is_translated_and_reported(run, paths):
    source, target = paths
    source.write_text("<p>a dog\n<div>b")
    result = translate(run, "--format", "html", "--input", source, "--output", target)
    assert (result.exit_code, target.read_text()) == (1, "<p>A DOG\n<div>B")
    assert "in.txt, line 2: <div> is not closed. The output has all translations" in result.stderr


def test_an_output_without_room_is_one_sentence_after_which_the_command_goes_on(run, paths):
    source, target = paths
    source.write_text("".join(f"{n}{'x' * 4000}\n" for n in range(4)))
    command = ["--input", source, "--output", target, "--batch-size", "1"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        result = translate(run, *command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_one_sentence(result, f"{target}.unfinished cannot be written: File too large", "The same command goes on")
    assert translate(run, *command).exit_code == 0 and target.read_text() == source.read_text().upper()
    assert 0 < len(run.seen) < 4


def test_progress_tells_how_much_is_done_and_how_long_the_rest_takes(run, paths, monkeypatch, caplog):
    source, target = paths
    source.write_text("a dog.\n" * 10)
    monkeypatch.setattr(files, "PAUSE", 0)
    translate(run, "--input", source, "--output", target, "--batch-size", "4")
    assert re.search(r"out.txt: 5\d\.\d %, about \d+ sentences/s, \d+ s left", caplog.text)


def test_what_was_done_before_counts_in_the_share_and_not_in_the_speed(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    (tmp_path / "in.txt").write_bytes(b"x" * 1000)
    clock = iter([100.0, 100.0, 105.0, 110.0, 111.0])
    monkeypatch.setattr(files.time, "monotonic", lambda: next(clock))
    with open(tmp_path / "in.txt", "rb") as stream:
        progress = files.Progress("out.txt", stream)
        progress.skip("\xe9" * 200)
        for _ in range(3):
            progress.note(["x" * 100], 20.0)
    assert caplog.messages == ["out.txt: 60.0 %, about 4 sentences/s, 20 s left"]  # 200 of 400 bytes in 10 s
    caplog.clear()
    clock = iter([0.0, 0.0, 20.0])
    pipe = files.Progress("out.txt", io.BytesIO(b"no file"))
    pipe.note(["y" * 2000], 10.0)
    assert caplog.messages == ["out.txt: 2,000 bytes of input, about 0 sentences/s"]
