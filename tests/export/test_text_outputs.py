"""Texts as a served graph returns them."""

import pytest
import tensorflow as tf

from export.graph.served_graph import ServedGraph
from export.graph.text_outputs import alignments, fill_up, joined, without_duplicates, written
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES


def test_a_piece_that_is_white_space_is_not_lost_in_a_joined_text():
    """A joined text has the pieces of a translation, and must have as many as there are probabilities."""
    words = tf.constant([["\t", "a", "\n", "<pad>"], ["<pad>"] * 4, ["b", "\u2581", "\r", "c"]])
    found = joined(words, words != "<pad>")
    assert [text.decode() for text in found.numpy()] == ["\t a \n", "", "b \u2581 \r c"]
    assert joined(words[:, :0], words[:, :0] != "").numpy().tolist() == [b"", b"", b""]


@pytest.mark.nightly
def test_a_translation_that_its_limit_ended_is_marked(eager, pair):
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


def test_numbers_have_four_places_and_missing_columns_a_value():
    assert written(tf.constant([-0.12344, -1.0])).numpy().tolist() == [b"-0.1234", b"-1.0000"]
    assert fill_up(tf.constant([["a"], ["b"]]), 2, "-").numpy().tolist() == [[b"a", b"-", b"-"], [b"b", b"-", b"-"]]


def test_what_has_no_word_is_aligned_with_none():
    weights = tf.ones([2, 2, 2])
    source, target = tf.constant([["a", "</s>"], ["</s>", "<pad>"]]), tf.constant([["x", "</s>"], ["x", "</s>"]])
    assert alignments(weights, source, target).numpy().tolist() == [b"0-0", b""]


def test_the_order_of_what_is_no_duplicate_stays_however_many_there_are():
    count = 40
    ids, scores = tf.reshape(tf.range(count), [1, count, 1]), -tf.range(1.0, count + 1)[tf.newaxis]
    texts = [str(number // 2 if number % 2 == 0 else "same") for number in range(count)]
    found_ids, found_scores, found, kept = without_duplicates(ids, scores, tf.constant([texts]), tf.constant([texts]))
    expected = [*range(0, count, 2)]
    expected = sorted([*expected, 1]) + [number for number in range(3, count, 2)]
    assert found_ids.numpy().ravel().tolist() == expected and (kept.numpy() == found.numpy()).all()
    assert (found_scores.numpy()[0, 21:] == NEVER).all() and found_scores.numpy()[0, :21].min() > NEVER
