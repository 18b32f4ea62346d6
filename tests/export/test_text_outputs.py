"""Texts as a served graph returns them."""

import tensorflow as tf

from export.graph.text_outputs import joined


def test_a_piece_that_is_white_space_is_not_lost_in_a_joined_text():
    """A joined text has the pieces of a translation, and must have as many as there are probabilities."""
    words = tf.constant([["\t", "a", "\n", "<pad>"], ["<pad>"] * 4, ["b", "\u2581", "\r", "c"]])
    found = joined(words, words != "<pad>")
    assert [text.decode() for text in found.numpy()] == ["\t a \n", "", "b \u2581 \r c"]
    assert joined(words[:, :0], words[:, :0] != "").numpy().tolist() == [b"", b"", b""]
