"""What the README tells its readers to write, run and look up is there."""

import ast
import importlib
import re
import shlex
import subprocess

import pytest
import typer.main

from keras_transformer import __main__ as program
from tests.support.places import ROOT
from train.config.run import load_config

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for language, block in BLOCKS if not language for line in block.splitlines()]
STARTS = "python -m ", "keras-transformer "
IN_TABLES = re.findall(r"\| `((?:python -m|keras-transformer) [^`]+)` \|", README)
PYTHON_COMMANDS = [line for line in [*COMMANDS, *IN_TABLES] if line.startswith(STARTS)]


def command_of(words):
    """The click command of `keras-transformer NAME` or `python -m MODULE`, and the words after it."""
    if words[0] == "keras-transformer":
        return typer.main.get_command(program.module_of(words[1]).app), words[2:]
    if words[2] == "keras_transformer":
        return command_of(["keras-transformer", *words[3:]])
    is_package = (ROOT / words[2].replace(".", "/")).is_dir()
    return typer.main.get_command(importlib.import_module(words[2] + ".__main__" * is_package).app), words[3:]


def parse(line):
    """Parse the arguments of `line` with the command that it calls, which is not run. Returns the context of click."""
    command, arguments = command_of(shlex.split(re.split(r" [<>|] ", line)[0]))
    return command.make_context("command", arguments, ignore_unknown_options=False)


def test_the_configuration_for_ones_own_files_loads(tmp_path):
    (example,) = [block for language, block in BLOCKS if language == "toml"]
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    config = load_config(path)
    assert config.data.train == [["train.en", "train.de"]]
    assert [config.data.source_language, config.data.target_language] == ["en", "de"]


def test_its_commands_are_found():
    modules = {line.split()[2] for line in PYTHON_COMMANDS}
    assert {"train", "train.evaluate", "keras_transformer", "export", "benchmarks.train_speed"} <= modules


@pytest.mark.parametrize("line", PYTHON_COMMANDS)
def test_a_command_has_the_arguments_that_it_is_given(line):
    context = parse(line)
    assert context.params and context.args == []  # all of them were taken


def test_a_command_that_is_wrong_would_be_noticed():
    with pytest.raises(Exception, match="(?i)no such option"):
        parse("python -m train mine.toml --dry-runn")
    with pytest.raises(KeyError, match="translat"):
        parse("keras-transformer translat runs/mine")
    with pytest.raises(ModuleNotFoundError):
        parse("python -m trainer mine.toml")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make ([\w-]+)", README, re.MULTILINE))))
def test_a_make_target_that_it_names_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_make_clean_leaves_what_its_reader_trained(tmp_path):
    kept = ["runs/mine", "runs/cache", "exports/mine", "data/multi30k"]
    for folder in [*kept, "runs/numbers", "exports/numbers", ".venv", ".race"]:
        (tmp_path / folder).mkdir(parents=True)
    subprocess.run(["make", "-f", ROOT / "Makefile", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == sorted(kept)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "exports", "data"}


def test_every_file_it_links_to_or_names_is_there():
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    named = re.findall(r"(?:configs|docs|benchmarks|examples|train|export)/[\w/]+\.\w+", README)
    assert len(linked) >= 5 and len(named) >= 5
    assert [path for path in linked + named if not (ROOT / path).exists()] == []


def test_its_layout_names_every_folder():
    (layout,) = re.findall(r"## Layout\n\n```\n(.*?)```", README, re.DOTALL)
    described = set(re.findall(r"^(\w+)/", layout, re.MULTILINE))
    folders = {path.parent.name for path in ROOT.glob("[a-z]*/*.*") if path.suffix in (".py", ".toml", ".md", ".yaml")}
    assert described == folders - {"data", "runs", "exports", "build", "dist"}


@pytest.mark.parametrize("code", [block for language, block in BLOCKS if language == "python"])
def test_its_python_imports_what_there_is(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            assert all(hasattr(importlib.import_module(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            assert all(importlib.import_module(alias.name) for alias in node.names)
