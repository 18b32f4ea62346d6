"""Texts as a served graph returns them."""

import pytest
import tensorflow as tf

from export.graph.served_graph import ServedGraph
from export.graph.text_outputs import joined
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES


def test_a_piece_that_is_white_space_is_not_lost_in_a_joined_text():
    """A joined text has the pieces of a translation, and must have as many as there are probabilities."""
    words = tf.constant([["\t", "a", "\n", "<pad>"], ["<pad>"] * 4, ["b", "\u2581", "\r", "c"]])
    found = joined(words, words != "<pad>")
    assert [text.decode() for text in found.numpy()] == ["\t a \n", "", "b \u2581 \r c"]
    assert joined(words[:, :0], words[:, :0] != "").numpy().tolist() == [b"", b"", b""]


@pytest.mark.slow
def test_a_translation_that_its_limit_ended_is_marked(pair):
    """`translate` marks what the Translator marks; `serving_default` has no limit but its own."""
    lines, options = [*SENTENCES[:6], "", " \t"], SearchOptions(extra_length=6)
    ask = asker(ServedGraph(*pair, options, 40))
    short = SearchOptions(extra_length=6, n_best=4, max_length=3)
    expected = Translator(*pair, short, max_source_tokens=40).translate_n_best(lines)
    found = ask("translate", lines, n_best=4, max_length=3)["is_cut"]
    for line, marks, translations in zip(lines, found.tolist(), expected, strict=True):
        wanted = [translation.is_cut for translation in translations] if line.strip() else []
        assert marks == wanted + [False] * (4 - len(wanted))
    assert found.any() and not found.all()
    expected = Translator(*pair, options, max_source_tokens=40).translate(lines)
    assert ask("serving_default", lines)["is_cut"].tolist() == [translation.is_cut for translation in expected]
