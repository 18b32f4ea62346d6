"""docs/text.md: its examples give what stands below them, and its options exist."""

import doctest
import re

import pytest

from keras_transformer.commands.translate import app
from keras_transformer.text.glossary import FLAGS
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.translation.translator import Translator
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "text.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_its_examples_give_what_stands_below_them(pair):
    """With random weights: the laws hold for every model."""
    example = doctest.DocTestParser().get_doctest(PAGE, {"translator": Translator(*pair)}, "text.md", "docs/text.md", 0)
    assert len(example.examples) >= 10
    results = doctest.DocTestRunner(verbose=False).run(example)
    assert results.failed == 0


def rows_after(head):
    return re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.partition(head)[2].partition("\n\n")[0], flags=re.MULTILINE)


def test_every_kind_is_there_with_spans_of_that_kind():
    rows = dict(rows_after("| kind | what it is |"))
    assert tuple(rows) == KINDS
    for kind, examples in rows.items():
        for example in re.findall(r"`([^`]+)`", examples):
            assert [span.target for span in Protection((kind,)).spans(f"see {example} here")] == [example]


def test_every_syntax_of_placeholders_is_protected_whole():
    table = PAGE.partition("| syntaxes of placeholders | |")[2].partition("\n\n")[0]
    prose = {":smile", "_", "camelCase", "UPPER", "tags"}
    examples = [each.replace("\\|", "|") for each in re.findall(r"`([^`]+)`", table) if each not in prose]
    assert len(examples) > 40
    for example in examples:
        assert [span.target for span in Protection("placeholders").spans(f"see {example} here")] == [example]


def test_every_flag_is_there():
    assert tuple(dict(rows_after("| flag | meaning |"))) == FLAGS


def test_the_commands_have_its_options():
    [command] = app.registered_commands
    names = set(command.callback.__signature__.parameters)
    assert {option.replace("-", "_") for option in re.findall(r"--([a-z][a-z-]*)", PAGE)} <= names
