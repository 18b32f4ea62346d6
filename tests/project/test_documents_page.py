"""docs/documents.md: its examples give what stands below them, its options and formats exist."""

import doctest
import re

import pytest

from keras_transformer.commands.translate import app
from keras_transformer.text.formats import FORMATS
from keras_transformer.translation.translator import Translator
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_examples_give_what_stands_below_them(pair):
    """With random weights: the laws hold for every model."""
    name = "docs/documents.md"
    example = doctest.DocTestParser().get_doctest(PAGE, {"translator": Translator(*pair)}, name, name, 0)
    assert len(example.examples) == 8
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_every_format_is_there():
    table = PAGE.partition("| `--format` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, flags=re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted([*FORMATS, "lines"])


def test_the_command_has_its_options():
    [command] = app.registered_commands
    others = {"field", "state", "all"}  # whose parameters are called fields, states and everything
    names = set(command.callback.__signature__.parameters) | others
    assert {option.replace("-", "_") for option in re.findall(r"--([a-z][a-z-]*)", PAGE)} <= names
