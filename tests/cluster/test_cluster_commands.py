"""`keras-transformer cluster`: no option of a command is forgotten, and each reaches what it is for."""

import pathlib

import pytest
import typer.main

from cluster import __main__ as cluster
from cluster.job import Place, Request
from cluster.works import Clean, Nearest, Score, Translate
from keras_transformer.text.cleaning import DUPLICATES
from tests.support.commands import invoke
from tests.support.searches import OTHER_VALUES

COMMANDS = typer.main.get_command(cluster.app).commands
FLAGS = {"confidence", "markup", "numbers", "duplicates"}
VALUES = {  # of every option, one that is not its default
    "master": "yarn",
    "conf": "spark.a=b",
    "protect": "urls",
    "tag": "<bt>",
    "format": "parquet",
    "column": "a",
    "reference_column": "b",
    "translation_column": "b",
    "batch_size": 3,
    "part_bytes": 3,
    "languages": "en,de",
    "source_script": "LATIN",
    "target_script": "GREEK",
    "length_ratio": 2.5,
    "longest_word": 30,
} | OTHER_VALUES
FILES = {"keep": "dog\n", "glossary": "dog\tHund\n"}
RULE = {"clean": ["--identical"]}  # without one there is nothing to do


def with_value(option, folder: pathlib.Path) -> list:
    """An option with a value that is not its default."""
    if option.name in FILES:
        (folder / option.name).write_text(FILES[option.name], encoding="utf-8")
        return [option.opts[0], folder / option.name]
    return [option.opts[0]] if option.name in FLAGS else [option.opts[0], VALUES[option.name]]


@pytest.fixture
def asked(monkeypatch):
    """A function that returns what a command asks for: export, request, place."""

    def ask(name, *arguments):
        asked = []
        monkeypatch.setattr(cluster, "run", lambda *given: asked.extend(given))
        export = [] if name == "clean" else ["export"]
        result = invoke(
            cluster.app, name, *export, "--from", "in.jsonl", "--to", "out", *RULE.get(name, []), *arguments
        )
        assert result.exit_code == 0, result.output
        return asked

    return ask


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_changes_what_is_asked_for(name, asked, tmp_path):
    without = repr(asked(name))
    options = [option for option in COMMANDS[name].params if option.param_type_name == "option"]
    given = [option for option in options if not {"--from", "--to", "--identical", "--help"} & set(option.opts)]
    same = [option.name for option in given if repr(asked(name, *with_value(option, tmp_path))) == without]
    assert len(given) > 5 and not same


@pytest.mark.parametrize(
    ("name", "options", "work", "columns"),
    [
        ("translate", ["--beam-size", 3, "--confidence"], Translate((("beam_size", 3),), confidence=True), ["text"]),
        ("back-translate", ["--tag", "<bt>"], Translate((), "<bt>"), ["text"]),
        ("distil", ["--column", "a"], Nearest(), ["a", "reference"]),
        ("score", ["--translation-column", "b"], Score(), ["text", "b"]),
        ("score", ["--format", "tsv", "--column", "3"], Score(), ["3", "2"]),
        ("clean", ["--duplicates"], Clean((("identical", True), (DUPLICATES, True))), ["text", "translation"]),
    ],
)
def test_a_command_asks_for_its_work_on_its_columns(name, options, work, columns, asked):
    export, request, place = asked(name, *options, "--master", "local[2]", "--conf", "spark.a=b", "--part-bytes", 9)
    assert export == (None if name == "clean" else pathlib.Path("export"))
    format = "tsv" if "tsv" in options else "jsonl"
    assert repr(request) == repr(Request(work, format, columns, request.batch_size))
    assert place == Place("in.jsonl", "out", "local[2]", ["spark.a=b"], 9)
