"""The pages in Korean: their commands, code, numbers and names are those of the English ones."""

import collections
import json
import re

import pytest

from tests.support.places import ROOT

PAGES = [
    ("README.md", "README.ko.md"),
    ("docs/first_translation.md", "docs/ko/first_translation.md"),
    ("docs/equations.md", "docs/ko/equations.md"),
]
NOTEBOOKS = "examples/paper.ipynb", "examples/paper.ko.ipynb"
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
LINK = re.compile(r'(?:\]\(|(?:href|src)=")([^)"]*)[)"]')
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
HANGUL = re.compile(r"[가-힣]")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def numbers_in(text):
    """Each number of a text as often as it is there, without code, formulas and links."""
    for pattern in (FENCED, FORMULA, re.compile(r"`[^`]*`"), LINK):
        text = pattern.sub(" ", text)
    return collections.Counter(NUMBER.findall(text))


def names_in(text):
    return collections.Counter(re.findall(r"`([^`\n]+)`", FENCED.sub("", text).replace("\n", " ")))


def levels_in(text):
    """The level of each heading, in order: a section that only one language has is seen, and one that moved within."""
    return re.findall(r"^#+(?= )", FENCED.sub("", text), re.MULTILINE)


@pytest.mark.parametrize(("english", "korean"), PAGES)
def test_a_page_in_korean_has_the_code_the_numbers_and_the_names_of_the_english_one(english, korean):
    english, korean = text_of(english), text_of(korean)
    assert FENCED.findall(korean) == FENCED.findall(english)
    assert numbers_in(korean) == numbers_in(english)
    assert names_in(korean) == names_in(english)
    assert levels_in(korean) == levels_in(english) and len(HANGUL.findall(korean)) > 300


@pytest.mark.parametrize("language", ["README.md", "README.ko.md"])
def test_the_page_in_each_language_links_to_the_other(language):
    other = "README.ko.md" if language == "README.md" else "README.md"
    assert f"]({other})" in text_of(language)


def test_the_page_in_korean_links_to_what_the_english_one_does():
    own = {"README.md", "README.ko.md", "examples/paper.ko.ipynb"}

    def targets(name):
        return {link.replace("docs/ko/", "docs/") for link in LINK.findall(text_of(name))} - own

    assert targets("README.ko.md") == targets("README.md")


def test_the_notebook_in_korean_computes_and_prints_what_the_english_one_does():
    english, korean = (json.loads(text_of(name))["cells"] for name in NOTEBOOKS)
    assert [cell["cell_type"] for cell in korean] == [cell["cell_type"] for cell in english]
    for theirs, ours in zip(english, korean, strict=True):
        if ours["cell_type"] == "code":
            assert (ours["source"], ours["outputs"]) == (theirs["source"], theirs["outputs"])
        else:
            text, expected = "".join(ours["source"]), "".join(theirs["source"])
            assert FORMULA.findall(text) == FORMULA.findall(expected)
            assert numbers_in(text) == numbers_in(expected)
            assert HANGUL.search(text)
