"""Required phrases inside a graph: the same as in Python."""

import pytest
import tensorflow as tf

from export.graph.phrases import GraphPhraseReader
from export.graph.served_graph import ServedGraph
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.graph_tokenizer import graph_tokenizer
from keras_transformer.text.required import PhraseReader
from keras_transformer.tokens import UNK
from keras_transformer.translator import Translator
from tests.support.exports import asker
from tests.support.marian import pair_tokenizer
from tests.support.runs import SENTENCES

PHRASES = [[], ["the fox", "zwei"], [", the", "fox!", " a \t hen "], [SENTENCES[0]], ["(the", "a"], ["\u732b", "the"]]
PHRASES += [["a", "a ", "the", "a"], ["the\u3000fox", "\u200b"], [" ", "\xa0a\u2028b"]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one model", "pair of models"])
def test_a_graph_reads_phrases_as_python_does(pair, kind):
    tokenizer = pair[1] if kind == "one model" else pair_tokenizer()
    reader = PhraseReader(tokenizer)
    phrases = [of_line for of_line in PHRASES if UNK not in tokenizer.encode_target(" ".join(of_line))]
    graph_reader = GraphPhraseReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    read = tf.function(lambda texts: graph_reader.read(texts, 50), autograph=False)
    found = read(tf.constant(["\n\n".join(of_line) for of_line in phrases])).to_list()
    assert found == [[list(phrase.tokens) for phrase in reader.read(of_line, 50)] for of_line in phrases]
    assert (graph_reader.word_edges.numpy() == reader.word_edges).all()


@pytest.mark.slow
def test_a_served_graph_translates_with_phrases_as_the_translator_does(pair):
    lines, phrases = [*SENTENCES[:3], ""], [["the fox", "sees"], [], ["hen"], []]
    options = SearchOptions(beam_size=4, extra_length=6)
    ask = asker(ServedGraph(*pair, options, max_source_tokens=40))
    found = ask("translate", lines, required=["\n".join(of_line) for of_line in phrases])["translations"][:, 0]
    expected = Translator(*pair, options, max_source_tokens=40).translate(lines, required=phrases)
    assert [text.decode() for text in found] == [translation.text for translation in expected]
    begins = ["the", "a hen", "", ""]
    found = ask("translate", lines, required=["\n".join(each) for each in phrases], target_prefix=begins)[
        "translations"
    ]
    expected = Translator(*pair, options, max_source_tokens=40).translate(lines, prefixes=begins, required=phrases)
    assert [text.decode() for text in found[:, 0]] == [translation.text for translation in expected]
    for phrase, sentence in [
        ("a " * 40, "must have fewer than 40 tokens"),
        ("the \u27e61\u27e7", "has a placeholder of a protected span: leave it out"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
            ask("translate", ["a"], required=phrase)
