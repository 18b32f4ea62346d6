"""Markdown: prose changes where it stands; code, addresses, HTML blocks and front matter stay byte for byte."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text.formats.endings import format_of_name
from keras_transformer.text.formats.markdown import NOTATION
from keras_transformer.text.formats.markdown_parser import parser
from tests.support.documents import capitals, texts_of, through

FILE = """---
title: front matter
---

# A *big* heading #

Prose with `code span`, [a link](https://a.b/c "a title"), ![a picture](p.png) and <https://auto.link>,
that is wrapped \\* here &amp; has **strong
words** in it. See https://bare.link/x, too [^1].

- [ ] first item
  goes on
* second [ref][one]

> quoted text
> goes on

| name | `key` |
|:-----|------:|
| cell | x *y* |
| \\| a \\| `b\\|c` | [[d\\|e]] f \\| |

    indented code

```python
fenced = "code"
```

<div>
html block
</div>

Setext heading
==============

hard  
break, ![](empty.png) ![][one]

1. one

[one]: https://a.b "definition"

[^1]: A footnote.
"""
KEPT = ["title: front matter", "`code span`", '(https://a.b/c "a title")', "(p.png)", "<https://auto.link>", "\\* here"]
KEPT += [
    "https://bare.link/x",
    "[^1]",
    "[ref][one]",
    "|:-----|------:|",
    "indented code",
    'fenced = "code"',
    "html block",
]
KEPT += ['[one]: https://a.b "definition"', "| `key` |", "==============", "[ ] ", "#\n"]


def shape(text):
    """What markdown-it reads, without words: blocks, marks, addresses and code in their order."""
    tokens = parser().parse(text)
    inner = [
        sorted((c.type, str(c.attrs.get("href")), c.markup) for c in t.children or () if c.type[:4] != "text")
        for t in tokens
    ]
    return [(t.type, t.tag, t.map, t.content * (t.type != "inline")) for t in tokens], inner


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_engine_that_changes_nothing_gives_the_file_back(ending, mark):
    file = mark + FILE.replace("\n", ending)
    assert through("markdown", file, str) == file


def test_prose_changes_and_all_else_stays():
    output = through("markdown", FILE, capitals)
    kept = FILE.replace("[^1]: A", "[^1]: A")
    assert output.lower() == kept.replace(" &amp; ", " & ").replace("\\* here", "\\* here").lower()
    for part in KEPT[:5] + KEPT[6:8] + KEPT[9:]:
        assert part in output, part
    for part in ("# A *BIG* HEADING #", "[A LINK]", "![A PICTURE]", "**STRONG\nWORDS**", "- [ ] FIRST ITEM\n  GOES ON"):
        assert part in output
    for part in (
        "[REF][one]",
        "> QUOTED TEXT\n> GOES ON",
        "| NAME |",
        "| CELL | X *Y* |\n| \\| A \\| `b\\|c` | [[d\\|e]] F \\| |",
        "HARD  \nBREAK, ![](empty.png) ![][one]",
        "[^1]: A FOOTNOTE.",
    ):
        assert part in output
    assert shape(output) == shape(FILE)


def test_a_model_reads_prose_without_markup():
    texts = texts_of("markdown", FILE)
    assert "A big heading" in texts and "first item goes on" in texts and "quoted text goes on" in texts
    assert {"hard", "break,", "a picture", "cell", "x y", "Setext heading", "A footnote."} <= set(texts)
    assert not any(word in text for text in texts for word in ("code", "key", "https", "[", "`", "front", "html", "**"))


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("a dog", "1 * 2 * 3 [x] `y` a_b _c_", "1 \\* 2 \\* 3 \\[x\\] \\`y\\` a_b \\_c\\_"),
        ("a dog", "# no heading", "\\# no heading"),
        ("a dog", "1. no list", "1\\. no list"),
        ("a dog", "- no list", "\\- no list"),
        ("a dog", "> no quote", "\\> no quote"),
        ("a dog", "<b> &amp; R&D", "\\<b> \\&amp; R&D"),
        ("# a dog", "C #", "# C \\#"),
        ("| a |\n|---|\n| b |", "x|y", "| x\\|y |\n|---|\n| x\\|y |"),
        ("a [dog](u)", "ein Hund", "ein [Hund](u)"),
        ("**dog**s", "\u72ac\u3002\u732b", None),
    ],
)
def test_a_translation_becomes_no_markup(text, translation, expected):
    output = through("markdown", text, lambda line: translation)
    assert expected is None or output == expected
    assert [kind[:2] for kind in shape(output)[0]] == [kind[:2] for kind in shape(text)[0]]


GENERATORS = [  # what generators of sites read, and which of it is text
    (
        '!!! note "A *good* dog"\n\n    It runs\n    far.\n\n    ??? tip\n\n        So.\n',
        ["A good dog", "It runs far.", "So."],
    ),
    ('=== "Cats"\n\n    - one\n\n            code\n', ["Cats", "one"]),
    (":::tip A title\nIt runs.\n:::\n\n::: {.wide}\n    code\n:::\n", ["A title", "It runs."]),
    (
        ":::note[A title]\n\nIt runs.\n:::\n\n/// tip | A cat\nIt sits.\n///\n",
        ["A title", "It runs.", "A cat", "It sits."],
    ),
    ("Dog\n:   It runs\n    far\n: It sits.\n\n    So.\n", ["Dog", "It runs far", "It sits.", "So."]),
    (
        "[^1]: A dog\n[^two]:\n    A cat\n\n    runs.\n*[CSS]: Style sheets\n",
        ["A dog", "A cat", "runs.", "Style sheets"],
    ),
    ("# A dog {#dog .wide}\n\n{: .x }\n\nIt runs{ .y }.\n", ["A dog", "It runs."]),
    ('{% if x %}\nIt runs.\n{% end %}\n\n{{< note a="b" >}}\n\n--8<-- "file"\n\n[TOC]\n', ["It runs."]),
    ("A [dog][other.page], [`x`] and [`y`][z].\n", ["A dog, and ."]),
    ("[[page|name]] by @user for $x_1$ or $5 and $10\n", ["by for or $5 and $10"]),
    ("> !!! note\n>     It runs.\n\n- !!! tip\n\n      It sits.\n", ["It runs.", "It sits."]),
    ("- a dog\n\truns **very\n\tfar**\n", ["a dog runs very far"]),
]


@pytest.mark.parametrize(("file", "texts"), GENERATORS)
def test_what_generators_of_sites_read_stays_around_its_texts(file, texts):
    assert texts_of("markdown", file) == texts and through("markdown", file, str) == file
    output, words = through("markdown", file, capitals), re.findall(r"[a-z]+", " ".join(texts).lower())
    changed = [
        old for old, new in zip(re.findall(r"\w+|\W", file), re.findall(r"\w+|\W", output), strict=True) if old != new
    ]
    assert set(map(str.lower, changed)) <= set(words) and output.lower() == file.lower()
    assert not {word for word in words if len(word) > 1} - {word.lower() for word in re.findall(r"[A-Z]{2,}", output)}


def test_python_markdown_reads_the_same_blocks_and_names():
    markdown = pytest.importorskip("markdown")
    names = ["admonition", "attr_list", "def_list", "footnotes", "abbr", "tables"]
    for file, _ in GENERATORS:
        before, after = (
            markdown.markdown(text, extensions=names) for text in (file, through("markdown", file, capitals))
        )
        tags = [re.findall("<[^>]*>", re.sub(r'(?i) title="[^"]*"', "", html)) for html in (before, after)]
        assert tags[0] == tags[1] and before.lower() == after.lower()


@pytest.mark.parametrize(
    "file",
    [
        "## 1. dog",
        "a  \n2. dog",
        "|c|\n|-|\n|- dog|\n|1. dog|\n|<ul><li>dog</li></ul>|",
        "# <!-- c --> 1. dog",
        "# a # #",
        "dog\n===",
        "a\n     * dog",
    ],
)
def test_what_looks_like_a_block_where_none_begins_is_text(file):
    output = through("markdown", file, capitals).replace("\\", "")
    assert output.lower() == file and "dog" not in output


SIGNS = [
    "*",
    "_",
    "`",
    "[",
    "]",
    "(u)",
    "<b>",
    "\\",
    "#",
    "> ",
    "- ",
    "1. ",
    "|",
    "~~",
    "&amp;",
    "!",
    "a",
    "dog",
    " ",
    "\n",
    "\n\n",
    "    ",
    "\n\t",
    "\n: ",
    '\n!!! note "',
    "\n:::dog ",
    "\n[^1]: ",
    "{#a}",
    "$",
    ":",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(SIGNS), max_size=25).map("".join))
def test_any_text_comes_back_and_keeps_its_blocks_in_capitals(text):
    assert through("markdown", text, str) == text
    assert [kind[:2] for kind in shape(through("markdown", text, capitals))[0]] == [kind[:2] for kind in shape(text)[0]]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*SIGNS[:15], "dog"]), max_size=12).map("".join).map(str.strip))
def test_what_is_written_is_read_as_the_words_that_it_is(text):
    raw = NOTATION.written(text)
    [token] = parser().parseInline(raw)
    assert {child.type for child in token.children} <= {"text", "text_special", "softbreak"}
    assert "".join(child.content for child in token.children) == text


def test_a_name_tells_it():
    assert format_of_name("README.md") == format_of_name("a.markdown") == "markdown"
    assert not re.search("[A-Z]", through("markdown", "`a`\n\n<!-- b -->\n\n[c]: d\n", capitals))
