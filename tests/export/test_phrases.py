"""Required phrases inside a graph: the same as in Python."""

import pytest
import tensorflow as tf

from export.graph.forbidden import read_forbidden
from export.graph.phrases import (
    FROM_SOURCE,
    GraphPhraseReader,
    LineRules,
    capitalised,
    check_not_forbidden,
    is_first,
    is_letterless,
    loss_allowed,
    texts_of,
    with_phrases_of_source,
)
from export.graph.served_graph import ServedGraph
from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import PAD, UNK
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.normalization import has_letter, is_blank
from keras_transformer.pieces.prefixes import NO_ENDING
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import OPTIONS, SearchOptions
from keras_transformer.text import occurrences, required
from keras_transformer.text.asks import phrases_of
from keras_transformer.text.required import MOST_TOKENS, PhraseReader
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.marian import pair_tokenizer
from tests.support.runs import SENTENCES
from tests.support.sentencepiece_models import OUR_IDS, trained_model
from tests.support.text_rules import LETTERLESS, NUMBERS, REQUIRED


def tokenizer_with_signs():
    """A Tokenizer some of whose pieces are a letter and the sign behind it, as models from elsewhere may have."""
    how = {"model_type": "bpe", "vocab_size": 60, "split_by_unicode_script": False, "hard_vocab_limit": False}
    texts = [*SENTENCES, "a, a! b c", "a, d a! e"] * 5
    return Tokenizer.of_bytes(trained_model(texts, **how, character_coverage=1.0, **OUR_IDS))


def ways_of(phrase):
    return [list(way) for way in phrase.ways()]


def test_a_phrase_that_would_be_one_piece_with_the_letter_before_it_is_read_alone():
    tokenizer = tokenizer_with_signs()
    assert len(tokenizer.encode("a,")) == len(tokenizer.encode("a"))
    reader = PhraseReader(tokenizer)
    graph_reader = GraphPhraseReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target)
    for text in (", a", "! the", "a", "the"):
        [phrase] = reader.read([text], 50)
        assert tokenizer.decode(phrase.tokens).strip() == text
        assert graph_reader.read(tf.constant([text]), 50).to_list() == [[ways_of(phrase)]]


def test_phrases_have_fewer_tokens_than_the_most(pair):
    reader, texts = PhraseReader(pair[1]), ["the fox", "a hen"]
    graph_reader = GraphPhraseReader(pair[1], graph_tokenizer(pair[1].model_bytes).encode_target)
    phrases = reader.read(texts, 99)
    count = sum(phrase.most_tokens for phrase in phrases)
    assert reader.read(texts, count + 1) == phrases
    graph_reader.read(tf.constant(["\n".join(texts)]), count + 1)
    a_long_one = "a " * MOST_TOKENS
    assert reader.read([a_long_one], 999)[0].most_tokens == MOST_TOKENS
    for refused, number, most in ((texts, count, count), ([a_long_one, "a"], MOST_TOKENS + 1, 999)):
        with pytest.raises(
            InputError, match=f"have {number} tokens; at most {number - 1} are possible for a line: give"
        ):
            reader.read(refused, most)
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"must have fewer than {number} tokens: give fewer"):
            graph_reader.read(tf.constant(["\n".join(refused)]), most)


def test_a_graph_writes_the_capital_letter_of_a_phrase_that_python_writes(pair):
    letters = [chr(code) for code in range(33, 0x530) if not 0xD800 <= code < 0xE000]
    texts = [f"{letter}x" for letter in letters] + ["", "a", "\U00010428x"]
    assert [text.decode() for text in capitalised(tf.constant(texts)).numpy()] == list(
        map(occurrences.capitalised, texts)
    )
    phrases = ["a", "the fox", "A", "(the", "1 a", "h"]
    graph_reader = GraphPhraseReader(pair[1], graph_tokenizer(pair[1].model_bytes).encode_target)
    read = PhraseReader(pair[1]).read(phrases, 50)
    assert graph_reader.read(tf.constant(["\n".join(phrases)]), 50).to_list() == [list(map(ways_of, read))]
    assert [pair[1].decode(ways_of(phrase)[2][1:]) for phrase in read[:2]] == ["A", "The fox"]
    assert read[2].capital_tokens == ()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["one model", "pair of models"])
def test_a_graph_reads_phrases_as_python_does(pair, kind):
    tokenizer = pair[1] if kind == "one model" else pair_tokenizer()
    reader = PhraseReader(tokenizer)
    phrases = [of_line for of_line in REQUIRED if UNK not in tokenizer.encode_target(" ".join(of_line))]
    graph = graph_tokenizer(tokenizer.model_bytes)
    graph_reader = GraphPhraseReader(tokenizer, graph.encode_target)
    read = tf.function(lambda texts: graph_reader.read(texts, 50), autograph=False)
    found = read(tf.constant(["\n\n".join(of_line) for of_line in phrases])).to_list()
    in_python = [reader.read(phrases_of(of_line), 50) for of_line in phrases]
    assert found == [list(map(ways_of, of_line)) for of_line in in_python]
    allowed = loss_allowed(texts_of(read(tf.constant(["\n".join(each) for each in phrases])), graph.decode)).numpy()
    assert allowed.tolist() == [required.loss_allowed(phrase.text for phrase in of_line) for of_line in in_python]
    assert (graph_reader.word_edges.numpy() == reader.word_edges).all()


def test_a_graph_and_python_read_the_same_options_from_a_source():
    reading = [option.name for option in OPTIONS.values() if option.reads_text and not option.in_run]
    assert list(FROM_SOURCE) == list(required.FROM_SOURCE) == reading


def test_a_graph_keeps_the_lines_without_a_letter_that_python_keeps():
    texts, are_kept = zip(*LETTERLESS, strict=True)
    assert is_letterless(tf.constant(texts)).numpy().tolist() == list(are_kept)
    assert [not has_letter(text) and not is_blank(text) for text in texts] == list(are_kept)
    assert not is_letterless(tf.constant([b"\xff"])).numpy()[0] and has_letter("\udcff")  # what is no text is refused


def test_a_graph_adds_the_numbers_of_a_text_that_python_finds():
    texts, phrases = zip(*NUMBERS, strict=True)
    for asked in (0, 1):
        options = {"require_numbers": tf.fill([len(texts)], asked), "limits": 9}
        found = with_phrases_of_source(tf.fill([len(texts)], "a dog"), tf.constant(texts), options)
        assert options == {"limits": 9}
        lines = [list(dict.fromkeys(filter(None, text.decode().split("\n")))) for text in found.numpy()]
        assert lines == [["a dog", *(numbers if asked else [])] for numbers in phrases]


@pytest.mark.nightly
def test_a_served_graph_translates_with_phrases_as_the_translator_does(eager, pair):
    lines, phrases = [*SENTENCES[:3], ""], [["the fox", "sees"], [], ["hen"], []]
    options = SearchOptions(beam_size=4, extra_length=6)
    ask = asker(ServedGraph(*pair, options, max_source_tokens=40))
    translator = Translator(*pair, options, max_source_tokens=40)
    for prefixes in (None, ["the", "a hen", "", ""]):
        given = {} if prefixes is None else {"target_prefix": prefixes}
        found = ask("translate", lines, required=["\n".join(of_line) for of_line in phrases], **given)
        expected = translator.translate(lines, prefixes=prefixes, required=phrases)
        assert [text.decode() for text in found["translations"][:, 0]] == [each.text for each in expected]
        assert found["is_forced"][:, 0].tolist() == [each.is_forced for each in expected]
    for phrase, sentence in [
        ("a " * 40, "must have fewer than 40 tokens"),
        ("the \u27e61\u27e7", "has a placeholder of a protected span: leave it out"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
            ask("translate", ["a"], required=phrase)


def test_a_phrase_that_the_model_has_no_pieces_for_is_refused_whichever_it_is():
    tokenizer = pair_tokenizer()
    read = GraphPhraseReader(tokenizer, graph_tokenizer(tokenizer.model_bytes).encode_target).read
    for texts in (["zwei", "zwei\n\u732b"], ["\u732b", "zwei"]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="A required phrase has characters .* no piece"):
            read(tf.constant(texts), 50)


def test_a_placeholder_inside_a_phrase_is_refused_although_the_model_has_pieces_for_it(pair):
    read = GraphPhraseReader(pair[1], graph_tokenizer(pair[1].model_bytes).encode_target).read
    with pytest.raises(tf.errors.InvalidArgumentError, match="has a placeholder of a protected span"):
        read(tf.constant(["a \u27e61\u27e7 b"]), 50)


def test_the_same_phrase_counts_once_in_a_line_and_again_in_the_next_one():
    tokens = tf.ragged.constant([[1, 2], [3], [1, 2], [1, 2], [12], [3]], dtype=tf.int32)
    found = is_first(tokens, tf.constant([0, 0, 0, 1, 1, 1], tf.int64))
    assert found.numpy().tolist() == [True, True, False, True, True, True]


def test_a_phrase_contradicts_the_forbidden_ones_of_its_own_line_alone():
    required = tf.ragged.constant([[[[1], [9]], [[2]]], [], [[[3]]]], ragged_rank=3, dtype=tf.int32)
    words = {1: "a dog", 2: "the hen ", 3: "a cat"}

    def decode(rows):
        return tf.constant([words[row[0]] for row in rows.to_list()])

    phrases = texts_of(required, decode)
    assert phrases.to_list() == [[b"a dog", b"the hen"], [], [b"a cat"]]
    check_not_forbidden(phrases, read_forbidden(tf.constant(["cat", "dog\nhen", "dog"])))
    for forbidden in (["dog", "", ""], ["Hen", "", ""], ["", "", "x\ncat"]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="A required phrase has a forbidden one: keep one"):
            check_not_forbidden(phrases, read_forbidden(tf.constant(forbidden)))


def test_the_rules_of_some_lines_are_those_of_each():
    prefixes = tf.ragged.constant([[1], [2, 3], []], dtype=tf.int32)
    endings = tf.ragged.constant([[[4]], [[5, 6], [7]], [[8]]], ragged_rank=2, dtype=tf.int32)
    required = tf.ragged.constant([[[1]], [], [[2], [3, 4]]], ragged_rank=2, dtype=tf.int32)
    rules = LineRules({"n_best": tf.constant([1, 2, 3])}, prefixes, endings, required, "edges").of([2, 1])
    assert rules.pop("word_edges") == "edges"
    assert {name: rule.numpy().tolist() for name, rule in rules.items()} == {
        "n_best": [3, 2],
        "prefixes": [[PAD, PAD], [2, 3]],
        "required": [[[2, PAD], [3, 4]], [[PAD, PAD], [PAD, PAD]]],
        "endings": [[[8, PAD], [NO_ENDING, NO_ENDING]], [[5, 6], [7, PAD]]],
    }
