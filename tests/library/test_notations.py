"""JSON and TOML of files that may be damaged: whatever is wrong with them is a ValueError."""

import re
import tomllib

import pytest

from keras_transformer.ground.notations import json_of, toml_of
from tests.support.places import ROOT

DEEP, LONG = "[" * 100_000, "1" * 5000


@pytest.mark.parametrize("text", ["", "{", DEEP, '{"a":' * 100_000, LONG, b"\xff"])
def test_text_that_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        json_of(text)


@pytest.mark.parametrize("text", ["a", "a =", f"a = {DEEP}", f"a = {LONG}", "a = 1\na = 2"])
def test_text_that_is_no_toml_is_an_error_of_toml(text):
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_of(text)


def test_other_text_is_what_python_reads():
    assert json_of('{"a": [1, NaN]}', parse_constant=len) == {"a": [1, 3]}
    assert toml_of("a = [1]") == {"a": [1]}


def test_no_other_module_reads_them_by_itself():
    own_ways = {"json_codec.py", "records.py", "json_texts.py"}  # which expect a RecursionError
    own_file = ROOT / "keras_transformer/ground/version.py"  # which reads pyproject.toml
    for package in ("keras_transformer", "train", "export", "cluster"):
        for file in {*(ROOT / package).rglob("*.py")} - {own_file}:
            reads = re.search(r"\b(json|tomllib)\.loads\(", file.read_text(encoding="utf-8"))
            assert not reads or file.name in own_ways | {"notations.py"}, file
