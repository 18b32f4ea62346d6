"""Files that a command is asked to write are none of those that it reads."""

import contextlib
import os
import types

import pytest

import train.distil
import train.evaluate
from keras_transformer.commands import files
from keras_transformer.commands.output_files import check_not_read, check_picture, check_replaced, check_writable
from keras_transformer.ground.errors import ConfigError
from keras_transformer.translation.translator import Translator
from tests.support.capital_runs import capital_run, translate
from tests.support.commands import assert_one_sentence, invoke
from tests.support.repeating import Repeating
from train.config.sources.files import FilesData
from train.config.sources.treebank import TreebankData
from train.evaluate import check_files


@pytest.mark.parametrize("kind", ["files", "file of trees", "folder of trees"])
def test_a_file_of_the_configuration_is_not_written_whatever_it_is_called_there(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "trees").mkdir()
    for name in ("t.en", "t.de", "trees/wsj_2301.mrg"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    if kind == "files":
        data, path = FilesData(source="files", train=["a.tsv"], validation=[["~/t.en", "~/t.de"]]), "t.de"
    else:
        named = "~/trees" if kind == "folder of trees" else "~/trees/wsj_2301.mrg"
        data, path = TreebankData(source="treebank", files=[named]), "trees/wsj_2301.mrg"
    with pytest.raises(ConfigError, match=f"--output .*{path} is one of the files that are read"):
        check_not_read("--output", tmp_path / path, data.paths())
    check_not_read("--output", tmp_path / "trees/new", data.paths())


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_is_not_written_through_a_link_to_it(tmp_path, link):
    (tmp_path / "text").write_text("text", encoding="utf-8")
    link(tmp_path / "text", tmp_path / "link")
    with pytest.raises(ConfigError, match="--output .*link is one of the files that are read"):
        check_not_read("--output", tmp_path / "link", [None, tmp_path / "text"])
    check_not_read("--output", tmp_path / "link", [None, tmp_path / "other"])


@pytest.mark.parametrize(
    ("locked", "exists", "refuses_file", "refuses_picture"),
    [
        (None, False, False, False),
        ("x.png", True, True, True),
        (".", False, True, True),
        (".", True, False, True),  # a picture is written under another name, and renamed when it is complete
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path, monkeypatch, locked, exists, refuses_file, refuses_picture
):
    path = tmp_path / "x.png"
    if exists:
        path.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: locked is None or path != tmp_path / locked)
    for check, refuses in ((check_writable, refuses_file), (check_picture, refuses_picture)):
        with pytest.raises(ConfigError, match="--plot .*not writable") if refuses else contextlib.nullcontext():
            check("--plot", path)


@pytest.mark.parametrize("check", [check_writable, check_picture, check_replaced])
@pytest.mark.parametrize("locked", [None, "far"])
def test_of_a_link_the_folder_of_its_file_counts(tmp_path, monkeypatch, check, locked):
    """A file there is made, or replaced when it is complete."""
    link = tmp_path / "x.png"
    link.symlink_to("far/y.png")
    if check is not check_replaced:
        with pytest.raises(ConfigError, match="--plot .*x.png cannot be written: there is no folder .*far. Create it"):
            check("--plot", link)
    (tmp_path / "far").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: locked is None or path.name != locked)
    with pytest.raises(ConfigError, match="--plot .*x.png cannot be") if locked else contextlib.nullcontext():
        check("--plot", link)


def test_an_output_of_hours_is_refused_if_it_cannot_be_replaced(tmp_path, monkeypatch):
    for name in ("source", "reference", "output"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(ConfigError, match="--output .*output cannot be written: the folder .* is not writable"):
        train.distil.check_files([], tmp_path / "source", tmp_path / "reference", tmp_path / "output")


# the options of evaluate


@pytest.mark.parametrize("option", ["output", "plot"])
@pytest.mark.parametrize("read", ["source", "reference", "against", "data.test"])
def test_evaluate_overwrites_nothing_that_it_reads(random_folder, tmp_path, monkeypatch, option, read):
    paths = {name: tmp_path / f"{name}.png" for name in ("source", "reference", "against", "data.test")}
    for path in paths.values():
        path.write_text("fünf\n", encoding="utf-8")
    configured = types.SimpleNamespace(paths=lambda: [paths["data.test"]])
    monkeypatch.setattr("train.scoring.scored_text.data_of_run", lambda *arguments, **named: configured)
    monkeypatch.setattr(Translator, "load", lambda *arguments, **named: Repeating())
    files = [part for name in ("source", "reference", "against") for part in (f"--{name}", paths[name])]
    result = invoke(train.evaluate.app, random_folder, *files, f"--{option}", paths[read])
    assert_one_sentence(result, f"--{option} {paths[read]} is one of the files that are read")
    assert paths[read].read_text(encoding="utf-8") == "fünf\n"


def test_the_translations_and_the_picture_are_two_files(tmp_path):
    path, same = tmp_path / "x.png", tmp_path / ".." / tmp_path.name / "x.png"
    with pytest.raises(ConfigError, match="--output and --plot are both .*x.png"):
        check_files([tmp_path], None, None, None, path, same)


# the files of `keras-transformer translate`


@pytest.fixture
def run(tmp_path, monkeypatch):
    return capital_run(tmp_path, monkeypatch)


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "in.txt", tmp_path / "out.txt"


def test_the_output_does_not_replace_a_device(run, paths):
    source, target = paths
    source.write_text("a\n")
    os.mkfifo(target)
    result = translate(run, "--input", source, "--output", target)
    assert_one_sentence(result, f"{target}: This is a device or a pipe, and would be replaced: name a file")
    assert target.is_fifo()


def test_a_dash_is_the_standard_stream(run, paths):
    result = translate(run, "--input", "-", "--output", "-", stdin=b"a\n")
    assert (result.exit_code, result.stdout, os.listdir(paths[0].parent)) == (0, "A\n", ["run"])
    paths[0].write_text("b\n")
    assert translate(run, "--input", paths[0], "--output", "-", "--format", "text").stdout == "B\n"


def test_a_standard_stream_that_is_not_used_may_be_closed(run, paths, monkeypatch):
    paths[0].write_text("a\n")
    monkeypatch.setattr(files, "standard_input", lambda: pytest.fail("it is read"))
    monkeypatch.setattr(files, "standard_output", lambda: pytest.fail("it is written"))
    assert translate(run, "--input", paths[0], "--output", paths[1]).exit_code == 0
    assert paths[1].read_text() == "A\n"


@pytest.mark.parametrize("name", ["run/model.weights.h5", "run/tokenizer.model", "keep.txt", "link.txt"])
def test_nothing_that_is_read_is_written(run, paths, name):
    keep, output = paths[0].with_name("keep.txt"), paths[0].parent / name
    keep.write_text("word\n")
    os.symlink(keep, paths[0].with_name("link.txt"))
    result = translate(run, "--keep", keep, "--output", output, stdin=b"a\n")
    assert_one_sentence(
        result, f"--output {output} is", "a file of the run" if "run/" in name else "one of the files that are read"
    )
    assert keep.read_text() == "word\n"


def test_the_name_of_the_output_promises_nothing_else(run, paths):
    result = translate(run, "--output", paths[1].with_name("out.gz"), stdin=b"a\n")
    assert_one_sentence(result, "out.gz ends in .gz, but the text is written uncompressed")


def test_the_output_is_not_the_input(run, paths):
    source, _ = paths
    source.write_text("a\n")
    result = translate(run, "--input", source, "--output", source)
    assert (
        result.exit_code == 1 and "--output is the file that is read" in result.stderr and source.read_text() == "a\n"
    )
