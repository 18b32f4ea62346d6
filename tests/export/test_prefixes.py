"""Prefixes inside a graph: the same as in Python."""

import contextlib

import pytest
import tensorflow as tf

from export.graph.prefixes import GraphPrefixReader, padded_endings
from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import PAD, UNK
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.prefixes import NO_ENDING, PrefixReader
from keras_transformer.pieces.sources import NO_PIECES
from tests.support.marian import pair_tokenizer
from tests.support.text_rules import PREFIXES


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["one model", "pair of models"])
def test_a_graph_reads_prefixes_as_python_does(pair, kind):
    tokenizer = pair[1] if kind == "one model" else pair_tokenizer()
    reader = PrefixReader(tokenizer)
    graph_reader = GraphPrefixReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    read = tf.function(lambda texts: graph_reader.read(texts, 50), autograph=False)
    texts = [text for text in PREFIXES if UNK not in tokenizer.encode_target(text)]
    tokens, endings, is_cut = read(tf.constant(texts))
    assert not is_cut.numpy().any()
    for text, of_graph, endings_of_graph in zip(texts, tokens.to_list(), endings.to_list(), strict=True):
        expected = reader.read(text, 50)
        assert of_graph == expected.tokens
        assert sorted({tuple(ending) for ending in endings_of_graph}) == expected.endings
    tokens, endings, is_cut = graph_reader.read(tf.constant(["zwei " * 9, "zwei"]), 6)
    assert is_cut.numpy().tolist() == [True, False]
    assert tokens.to_list()[0] == tokenizer.encode_target("zwei " * 9)[:5] and endings.to_list()[0] == [[]]


def test_what_has_no_piece_is_refused_by_name_and_never_left_out():
    """As PrefixReader refuses it. A tokenizer with byte pieces has a piece for every text."""
    tokenizer = pair_tokenizer()
    reader = PrefixReader(tokenizer)
    graph_reader = GraphPrefixReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    for text in ("猫", "zwei 猫", "v"):
        with pytest.raises(InputError, match=f"{text}.*{NO_PIECES}"):
            reader.read(text, 50)
        with pytest.raises(tf.errors.InvalidArgumentError, match=NO_PIECES):
            graph_reader.read(tf.constant(["zwei", text]), 50)


def test_a_prefix_is_marked_as_cut_where_python_refuses_it(monkeypatch):
    tokenizer, most = pair_tokenizer(), 4
    graph_reader = GraphPrefixReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    none = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])
    monkeypatch.setattr(graph_reader, "read_one", lambda text, most: (0, none))  # what is forced takes a second
    texts = ["zwei", "zwei zweiund", "zwei zwei", "zwei zwei zwei"]
    assert [len(tokenizer.encode_target(text)) - most for text in texts] == [-2, -1, 0, 2]
    _, _, is_cut = graph_reader.read(tf.constant(texts), most)
    for text, of_graph in zip(texts, is_cut.numpy(), strict=True):
        with pytest.raises(InputError, match="at most 3 are possible") if of_graph else contextlib.nullcontext():
            PrefixReader(tokenizer).read(text, most)


def test_endings_are_padded_and_those_that_do_not_exist_are_marked():
    endings = tf.ragged.constant([[[5, 6], [7]], [[]]], inner_shape=None, dtype=tf.int32)
    assert padded_endings(endings).numpy().tolist() == [[[5, 6], [7, PAD]], [[PAD, PAD], [NO_ENDING, NO_ENDING]]]


def test_what_is_forced_and_the_pieces_that_may_follow_it_are_those_of_python():
    tokenizer = pair_tokenizer()
    reader = PrefixReader(tokenizer)
    graph_reader = GraphPrefixReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    for text in ("zwei h", "zwei ", "zwe", ""):
        size, endings = graph_reader.read_one(tf.constant(text), 50)
        expected = reader.read(text, 50)
        assert size.numpy() == len(expected.tokens)
        assert sorted({tuple(ending) for ending in endings.to_list()}) == expected.endings
    size, endings = graph_reader.read_one(tf.constant("zwei zwei zwei zwei"), 4)  # which leaves room for EOS
    assert (size.numpy(), endings.to_list()) == (3, [[]])
