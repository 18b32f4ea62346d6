"""Outputs of files: standard output, and a file that is not joined from the outputs of two works."""

import io
import json
import os

import pytest

from keras_transformer.commands import files
from keras_transformer.commands.resumed_output import ResumedOutput, StandardOutput
from keras_transformer.ground.errors import ConfigError
from tests.support.capital_runs import capital_run, translate
from tests.support.commands import assert_one_sentence


@pytest.fixture
def run(tmp_path, monkeypatch):
    return capital_run(tmp_path, monkeypatch)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCHES_OF_A_FILE", 1)
    return tmp_path / "in.txt", tmp_path / "out.txt"


def test_what_is_written_is_seen_at_once():
    """A reader at the other end of a pipe waits for no buffer to fill."""
    seen = io.BytesIO()
    buffered = io.BufferedWriter(seen)
    output = StandardOutput(buffered)
    output.write(["part"], ["ä", "b"])
    assert seen.getvalue() == "äb".encode() and output.done == 1


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_kept_and_the_file_behind_it_is_replaced_after_a_stop_too(run, paths, exists):
    source, link = paths
    target = source.with_name("far") / "target.txt"
    target.parent.mkdir()
    link.symlink_to("far/target.txt")
    if exists:
        target.write_text("old\n")
    source.write_text("one.\n" * 4 + "two.\n")
    run.fails_at = "two."
    command = ["--input", source, "--output", link, "--batch-size", "1"]
    translate(run, *command)
    assert target.with_name("target.txt.unfinished").read_text() == "ONE.\n" * 4
    assert target.exists() == exists and (not exists or target.read_text() == "old\n")
    run.fails_at, run.seen = None, []
    assert translate(run, *command).exit_code == 0 and run.seen == ["two."]
    assert link.is_symlink() and target.read_text() == "ONE.\n" * 4 + "TWO.\n"
    assert os.listdir(target.parent) == ["target.txt"] and {*os.listdir(source.parent)} == {
        "in.txt",
        "out.txt",
        "far",
        "run",
    }


@pytest.mark.parametrize("leads_to", ["nowhere/target.txt", "out.txt", "/dev/null"])
def test_a_link_that_leads_to_no_file_is_one_sentence(run, paths, leads_to):
    source, link = paths
    link.symlink_to(leads_to)
    source.write_text("one.\n")
    assert_one_sentence(translate(run, "--input", source, "--output", link), link)
    assert not hasattr(run, "seen") and link.is_symlink()


@pytest.mark.parametrize("option", ["--target-prefixes", "--required"])
@pytest.mark.parametrize("change", ["begin", "end", "without"])
def test_a_file_beside_the_input_may_be_corrected_only_after_what_is_written(run, paths, option, change):
    source, target = paths
    beside = source.with_name("beside.txt")
    source.write_text("one.\n" * 5 + "two.\n")
    beside.write_text("x\n" * 6)
    command = ["--input", source, "--output", target, "--batch-size", "1"]
    run.fails_at, run.check_prefix = "two.", lambda prefix: None
    translate(run, *command, option, beside)
    assert target.with_name("out.txt.unfinished").read_bytes()
    run.fails_at = None
    beside.write_text("y\n" + "x\n" * 5 if change == "begin" else "x\n" * 5 + "y\n")
    result = translate(run, *command, *([] if change == "without" else [option, beside]))
    if change == "end":
        assert result.exit_code == 0 and target.read_text() == source.read_text().upper()
    else:
        assert_one_sentence(result, f"{target}.unfinished has the translations of another input")


@pytest.fixture
def begun(tmp_path):
    """A file of which two parts are written, by a process that was then killed."""
    output = ResumedOutput(tmp_path / "out", {"beam_size": 4})
    output.write(["a", "b"], ["A", "B\n"])
    output.close()
    return tmp_path / "out"


def resumed(path, **work):
    output = ResumedOutput(path, work or {"beam_size": 4})
    output.close()
    return output


def test_a_work_goes_on_after_its_parts_and_nothing_behind_them_stays(begun):
    unfinished = begun.with_name("out.unfinished")
    unfinished.write_bytes(unfinished.read_bytes() + b"half a pa")
    output = ResumedOutput(begun, {"beam_size": 4})
    assert [output.has("a"), output.has("b"), output.has("c")] == [True, True, False] and output.done == 2
    output.write(["c"], ["C"])
    output.finish()
    output.close()
    assert begun.read_text() == "AB\nC" and sorted(begun.parent.iterdir()) == [begun]


@pytest.mark.parametrize("damage", ["no journal", "[]", "{", '{"parts": 2}', "no output", "shorter"])
def test_what_a_journal_does_not_tell_or_its_output_lacks_is_written_anew(damage, begun, caplog):
    unfinished, journal = (begun.with_name(f"out.{end}") for end in ("unfinished", "journal"))
    if damage in ("no output", "shorter"):
        unfinished.write_bytes(b"" if damage == "no output" else b"A")
    else:
        journal.unlink() if damage == "no journal" else journal.write_text(damage)
    output = resumed(begun)
    assert output.has("a") is False and unfinished.read_bytes() == b""
    assert ("starting from the beginning" in caplog.text) is (damage == "shorter")


def test_another_work_and_another_input_are_refused_and_lose_nothing(begun):
    with pytest.raises(ConfigError, match="another model, search or format"):
        resumed(begun, beam_size=5)
    for first, second in (("a", "c"), ("ab", "")):
        output = resumed(begun)
        assert output.has(first)
        with pytest.raises(ConfigError, match="another input"):
            output.has(second)
    output = resumed(begun)
    assert output.has("a")
    with pytest.raises(ConfigError, match="another input"):  # which ends before
        output.check_end()
    assert begun.with_name("out.unfinished").read_text() == "AB\n"
    resumed(begun)  # nobody has the files


def test_what_a_journal_says_is_on_the_disk_before_it_says_so(tmp_path, monkeypatch):
    """A loss of power then loses no more than the last part."""
    path, seen = tmp_path / "out", []
    unfinished, journal = (path.with_name(f"out.{end}") for end in ("unfinished", "journal"))
    fsync = os.fsync

    def note(descriptor):
        seen.append((unfinished.read_bytes(), json.loads(journal.read_text())["bytes"] if journal.exists() else 0))
        fsync(descriptor)

    output = ResumedOutput(path, {})
    monkeypatch.setattr(os, "fsync", note)
    for part, text in (("a", "A"), ("b", "ä"), ("c", "")):
        seen.clear()
        before = unfinished.read_bytes()
        output.write([part], [text])
        assert seen[0] == (before + text.encode(), len(before))
        assert json.loads(journal.read_text())["bytes"] == len(unfinished.read_bytes())
    output.close()
