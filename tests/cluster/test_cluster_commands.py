"""`keras-transformer cluster`: no option of a command is forgotten, and each reaches what it is for."""

import inspect
import pathlib

import pytest
import typer.main

from cluster import __main__ as cluster
from keras_transformer.commands.options import takes_served_options
from tests.support.commands import invoke
from tests.support.searches import OTHER_VALUES

COMMANDS = typer.main.get_command(cluster.app).commands
FLAGS = {"confidence", "markup", "numbers", "duplicates"}
VALUES = {  # of every option, one that is not its default
    "master": "yarn",
    "settings": "spark.a=b",
    "protect": "urls",
    "require": "Hund",
    "target_prefix": "Ein",
    "source_language": "en",
    "target_language": "de",
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
FILES = {"keep": "dog\n", "glossary": "dog\tHund\n", "forbid": "Hund\n"}
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


def test_an_option_that_is_typed_is_an_input_although_it_is_0():
    @takes_served_options("length_penalty", "beam_size")
    def command(search):
        return search

    assert command(length_penalty=0.0, beam_size=None) == {"length_penalty": 0.0}


def test_how_many_translations_there_are_is_for_the_command_to_say():
    @takes_served_options(without=["n_best"])
    def command(search):
        return search

    names = [name for name in inspect.signature(command).parameters]
    assert "beam_size" in names and "n_best" not in names and "search" not in names
    assert command(**dict.fromkeys(names, 1)) == dict.fromkeys(names, 1)
