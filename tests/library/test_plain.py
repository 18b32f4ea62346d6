"""Text, beside the laws of every format (test_formats.py)."""

from keras_transformer.text.formats import plain
from tests.support.documents import texts_of


def test_a_paragraph_has_so_many_lines_at_most(monkeypatch):
    monkeypatch.setattr(plain, "LONGEST", 2)
    parts = list(plain.text_parts([b"a\n", b"b\n", b"c\n", b" \n", b"d"], "file", ()))
    assert [part if isinstance(part, str) else [part.passage.raw] for part in parts] == [
        ["a\nb\n"],
        ["c\n"],
        " \n",
        ["d"],
    ]
    assert texts_of("text", "") == []
