"""Marian's vocabularies and options are read without losing what YAML takes for something else."""

import json

import pytest

from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.marian_yaml import read_options, read_vocabulary, value_of

WRITTEN = {  # as Marian writes a piece -> the piece
    "</s>": "</s>",
    "<unk>": "<unk>",
    "on": "on",
    "0": "0",
    "1.5": "1.5",
    "null": "null",
    "~": "~",
    "yes": "yes",
    '"-"': "-",
    '":"': ":",
    '"a: b"': "a: b",
    '"\\""': '"',
    '"\\\\"': "\\",
    '"\\x85"': "\x85",
    '"\\u2028"': "\u2028",
    '"\\U0001F600"': "\U0001f600",
    '"\\ud83d\\ude01"': "\U0001f601",
    "''''": "'",
    "'it''s'": "it's",
    '"#"': "#",
    "▁": "▁",
    "▁on": "▁on",
    "a'": "a'",
    '▁"': '▁"',
    "\u2029": "\u2029",
    ">>deu<<": ">>deu<<",
    '"\\t"': "\t",
}


def lines_of(written):
    return "".join(f"{piece}: {number}\n" for number, piece in enumerate(written))


def test_no_piece_of_a_vocabulary_is_lost(tmp_path):
    path = tmp_path / "vocab.yml"
    path.write_text(lines_of(WRITTEN), encoding="utf-8")
    assert read_vocabulary(path) == list(WRITTEN.values())
    path.write_text("---\n" + lines_of(WRITTEN).replace("\n", "\r\n"), encoding="utf-8", newline="")
    assert read_vocabulary(path) == list(WRITTEN.values())


def test_the_same_in_json_and_in_any_order(tmp_path):
    pieces = list(WRITTEN.values())
    entries = {piece: number for number, piece in reversed(list(enumerate(pieces)))}
    for name in ("vocab.json", "vocab.yml"):
        (tmp_path / name).write_text(json.dumps(entries), encoding="utf-8")
        assert read_vocabulary(tmp_path / name) == pieces


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 0\nb\n", "its line 2 is 'b'"),
        ("a: 0\nb: x\n", "its line 2"),
        ("a: 0\nb: -1\n", "its line 2"),
        ("a: 0\nb: 2\n", "2 pieces, and none with the id 1"),
        ("a: 0\nb: 0\n", "'b' or its id 0 is there twice"),
        ("a: 0\na: 1\n", "'a' or its id 1 is there twice"),
        ('"\\q": 0\n', r"no escape \\q"),
        ('"\\ud83d": 0\n', "utf-16|surrogate"),
        ("", "0 pieces"),
        ('{"a": 0, "a": 1}', "there twice"),
        ('{"a": true}', "the id True"),
        ('{"a": -1, "b": 0}', "the id -1"),
        ('{"a": 0', "delimiter"),
    ],
)
def test_a_damaged_vocabulary_is_refused(tmp_path, text, why):
    (tmp_path / "vocab.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ImportedModelError, match=f"vocab.yml is damaged, or is not a vocabulary: .*({why})"):
        read_vocabulary(tmp_path / "vocab.yml")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "vocab.yml").write_bytes(b"\xff: 0\n")
    with pytest.raises(ImportedModelError, match="utf-8"):
        read_vocabulary(tmp_path / "vocab.yml")


def test_options_have_the_types_that_marian_means():
    text = (
        "type: transformer\nenc-depth: 6\nlabel-smoothing: 1e-1\ntied-embeddings-all: true\nskip: false\n"
        'transformer-preprocess: ""\ntransformer-postprocess: dan\ninput-types:\n  []\ndim-vocabs:\n  - 151\n  - 152\n'
        "vocabs: [a.yml, 'b c.yml']\nseparator-symbol: \"[eos]\"\nnothing: ~\nempty:\nversion: v1.9 +0200\n\0\0\0"
    )
    assert read_options(text.encode(), "m.npz") == {
        "type": "transformer",
        "enc-depth": 6,
        "label-smoothing": 0.1,
        "tied-embeddings-all": True,
        "skip": False,
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "input-types": [],
        "dim-vocabs": [151, 152],
        "vocabs": ["a.yml", "b c.yml"],
        "separator-symbol": "[eos]",
        "nothing": None,
        "empty": None,
        "version": "v1.9 +0200",
    }


@pytest.mark.parametrize("content", [b"\xff", b"no option\n", b"  - 1\n"])
def test_what_is_no_list_of_options_is_refused(content):
    with pytest.raises(ImportedModelError, match="decoder.yml is damaged, or is not a list of Marian's options"):
        read_options(content, "decoder.yml")


@pytest.mark.parametrize(
    ("content", "pieces"),
    [
        ("\ufeff---\na: 0\n'b': 1\n", ["a", "b"]),
        ('\ufeff\n {"b": 1, "a": 0}', ["a", "b"]),
        ("' ': 0\n\" a\": 1\n': 2\n\": 3\n  a:b: 4\n", [" ", " a", "'", '"', "a:b"]),
    ],
)
def test_a_vocabulary_may_begin_with_a_mark_and_have_quotes_and_colons(tmp_path, content, pieces):
    (tmp_path / "vocab.yml").write_text(content, encoding="utf-8")
    assert read_vocabulary(tmp_path / "vocab.yml") == pieces


@pytest.mark.parametrize("line", ["b: \u00b2", "b: \u0661", "---", "b: 1.0"])
def test_an_id_is_a_number_in_ascii_and_a_document_begins_once(tmp_path, line):
    (tmp_path / "vocab.yml").write_text(f"a: 0\n{line}\n", encoding="utf-8")
    with pytest.raises(ImportedModelError, match=f"its line 2 is '{line}', expected a piece, a colon and an id"):
        read_vocabulary(tmp_path / "vocab.yml")


def test_between_options_may_be_comments_and_a_list_in_brackets_may_end_in_a_comma():
    assert read_options(b"# by marian\na: [1, 2.5, x,]\nb:\n# more\n- 1\n", "m") == {"a": [1, 2.5, "x"], "b": [1]}
    with pytest.raises(ImportedModelError, match="its line 2 is 'no option'"):
        read_options(b"a: 1\nno option\n", "m")
    assert [type(value_of(text)) for text in ("1", "1.0", "1e3", "x", "null")] == [int, float, float, str, type(None)]
