"""What a graph refuses it shows as text and in part, so that TensorFlow can raise the refusal in Python."""

import pytest
import tensorflow as tf

from export.graph.forbidden import read_forbidden
from export.graph.languages import GraphLanguages
from export.graph.phrases import GraphPhraseReader, check_not_forbidden
from export.graph.prefixes import GraphPrefixReader
from keras_transformer.ground.errors import message_of_the_graph
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.language_marks import Languages
from tests.support.marian import pair_tokenizer

PAIR = Languages({"en": ""}, {"de": ""})
MARK = "\u27e60\u27e7"  # a placeholder
TEXTS = [b"\xff", b"the \xc3 and \xff\xfe", b"\xe7\x8c" * 5_000, "\u732b".encode() * 5_000, b"\xff\t" + b"x" * 5_000]


@pytest.fixture(scope="module")
def refusals():
    """What refuses a text, by name, and a text that makes it do so."""
    tokenizer = pair_tokenizer()
    encode = graph_tokenizer(tokenizer.model_bytes).encode_target
    languages, prefixes = GraphLanguages(PAIR, tokenizer), GraphPrefixReader(tokenizer, encode)
    phrases, forbidden = GraphPhraseReader(tokenizer, encode), tf.ragged.constant([[[ord("q")]]], tf.int32)

    def contradicts(texts):
        with tf.control_dependencies([check_not_forbidden(tf.RaggedTensor.from_tensor(texts[tf.newaxis]), forbidden)]):
            return tf.identity(texts)

    return {
        "language": (lambda texts: languages.marks(tf.constant(["en"]), texts), ""),
        "prefix": (lambda texts: prefixes.read(texts, 50), "\u732b"),
        "phrase": (lambda texts: phrases.read(texts, 50), "\u732b"),
        "placeholder": (lambda texts: phrases.read(texts, 50), MARK),
        "contradiction": (contradicts, "q "),
        "tab": (read_forbidden, "a\tb"),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("name", ["language", "prefix", "phrase", "placeholder", "contradiction", "tab"])
def test_a_text_that_is_refused_is_shown_in_part_whatever_its_bytes_are(refusals, name, text):
    refuse, beginning = refusals[name]
    with pytest.raises(tf.errors.InvalidArgumentError) as refused:
        tf.function(refuse, autograph=False)(tf.constant([beginning.encode() + text]))
    sentence = message_of_the_graph(refused.value.message)
    assert len(sentence) < 300 and "\n" not in sentence and ("[" in sentence or name == "tab"), sentence
