"""Forbidden phrases inside a graph: where they are, and translations without them, the same as in Python."""

import pytest
import tensorflow as tf

from export.graph.forbidden import Found, found_in, matches, places_of_tokens, read_forbidden, search_without
from export.graph.served_graph import ServedGraph
from export.graph.text_outputs import EMPTY
from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.fallback import WithPhrases
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.text.forbidden import ROUNDS, forbidden_phrases, tokens_of
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES
from tests.support.text_rules import FORBIDDEN, FORBIDDEN_IN, FORBIDDEN_REFUSED


def python_matches(text, phrases):
    return sorted({match[:2] for match in forbidden_phrases(phrases.encode()).matches(text)})


def test_a_graph_finds_phrases_where_python_does():
    read = read_forbidden(tf.constant(FORBIDDEN))
    phrases_of_a_line = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    in_graph = tf.function(matches, [tf.TensorSpec([], tf.string), phrases_of_a_line], autograph=False)
    for number, phrases in enumerate(FORBIDDEN):
        for text in FORBIDDEN_IN:
            found = in_graph(tf.constant(text), read[number]).numpy().tolist()
            assert [tuple(place) for place in found] == python_matches(text, phrases), (text, phrases)


def test_phrases_that_are_too_long_or_have_flags_are_refused():
    assert read_forbidden(tf.constant(["a" * 1000])).row_lengths().numpy().tolist() == [1]
    for phrases, sentence in [
        ("a" * 500 + "\n" + "b" * 501, "may have 1000 characters together"),
        ("a\tregex", "has a tab"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
            read_forbidden(tf.constant(["b", phrases]))


def is_refused(read, phrases):
    try:
        read(phrases)
    except (InputError, tf.errors.InvalidArgumentError):
        return True
    return False


@pytest.mark.parametrize("phrases, refused", FORBIDDEN_REFUSED, ids=lambda case: ascii(case)[:30])
def test_a_graph_refuses_the_phrases_that_python_refuses(phrases, refused):
    assert is_refused(lambda text: read_forbidden(tf.constant([b"b", text])), phrases) is refused
    assert is_refused(forbidden_phrases, phrases) is refused


def test_a_graph_and_python_read_the_same_phrases():
    for phrases in [*FORBIDDEN, *(phrases.decode() for phrases, refused in FORBIDDEN_REFUSED if not refused)]:
        codes = read_forbidden(tf.constant([phrases]))[0].to_list()
        expected = [term.target for term in forbidden_phrases(phrases.encode()).terms]
        assert ["".join(map(chr, of_phrase)) for of_phrase in codes] == expected


def test_the_tokens_of_a_phrase_are_those_of_python(pair):
    tokenizer = pair[1]
    graph = graph_tokenizer(tokenizer.model_bytes)
    for sentence in [*SENTENCES[:4], "aé\U0001f600b the"]:
        ids = tokenizer.encode(sentence)
        text = tokenizer.decode(ids)
        for phrases in ("the", "a\nfox", text, "\U0001f600", "é"):
            glossary = Glossary.of_words(phrases.split("\n"), "x", ("part",))
            expected = tokens_of(Translation(text, 0.0, tuple(ids)), glossary, tokenizer.decode)
            spans = [match[:2] for match in glossary.matches(text)]
            places = places_of_tokens(tf.constant(ids), tf.reshape(tf.constant(spans, tf.int32), [-1, 2]), graph.decode)
            assert [tuple(ids[first:end]) for first, end in places.numpy()] == expected


def test_only_the_wanted_hypotheses_with_different_texts_are_found():
    ids = tf.constant([[[4, 5], [4, 6], [4, 7]], [[4, 8], [4, 5], [0, 0]]])  # 5 and 6 write the same
    scores = tf.constant([[-1.0, -2.0, -3.0], [-1.0, -2.0, NEVER]])
    is_cut, lost = [[True, True, False], [False, True, True]], [[2.0, 2.0, 4.0], [3.0, 9.0, 9.0]]
    hypotheses = WithPhrases(ids, scores, tf.constant(is_cut), tf.constant(lost))

    def decode(rows):
        return tf.constant([" ".join(WORDS.get(token, "") for token in row).strip() for row in rows.numpy().tolist()])

    found = found_in(hypotheses, tf.constant([2, 1]), tf.constant([3.0, 2.0]), decode)
    assert found.texts.numpy().tolist() == [[b"the dog", b"the fox", b""], [b"the hen", b"", b""]]
    assert found.scores.numpy().tolist() == [[-1.0, -3.0, NEVER], [-1.0, NEVER, NEVER]]
    assert found.ids.numpy().tolist() == [[[4, 5], [4, 7], [PAD, PAD]], [[4, 8], [PAD, PAD], [PAD, PAD]]]
    assert found.is_cut.numpy().tolist() == [[True, False, False], [False, False, False]]
    assert found.is_wanted.numpy().tolist() == [[True, True, False], [True, False, False]]
    assert found.is_forced.numpy().tolist() == [[False, True, False], [True, False, False]]
    everything = found_in(hypotheses, tf.constant([3, 3]), tf.constant([3.0, 2.0]), decode)
    assert everything.is_wanted.numpy().tolist() == [[True, True, False], [True, True, False]]


WORDS = {4: "the", 5: "dog", 6: "dog", 7: "fox", 8: "hen"}  # two tokens write "dog"


def test_those_lines_are_searched_again_that_have_a_phrase_until_they_have_none():
    asked = []

    def decode(ids):
        return tf.constant([" ".join(WORDS[token] for token in row if token != PAD) for row in ids.numpy().tolist()])

    def search(rows, rule):
        """Each line is the first of "the dog", "the fox" and "the hen" that it may be."""
        asked.append(rows.numpy().tolist())
        ids = []
        for sequences in rule.numpy().tolist():
            forbidden = [sequence[sequence.count(PAD) :] for sequence in sequences if sequence[-1:] != [PAD]]
            word = next((word for word in (5, 6, 7) if not any(each in ([4, word], [word]) for each in forbidden)), 8)
            ids.append([[4, word]])
        ids = tf.constant(ids)
        no = tf.zeros(ids.shape[:2], tf.bool)
        return Found(ids, tf.zeros(ids.shape[:2]), decode(ids[:, 0])[:, tf.newaxis], no, no)

    phrases = read_forbidden(tf.constant(["the dog\nfox", "", "dog", "the"]))
    found = search_without(search, phrases, decode, beam_size=1)
    assert found.texts.numpy()[:3, 0].tolist() == [b"the hen", b"the dog", b"the fox"]
    assert asked[:4] == [[0, 1, 2, 3], [0, 2, 3], [0, 2, 3], [0, 3]] and len(asked) == ROUNDS


@pytest.mark.release
def test_a_served_graph_avoids_phrases_as_the_translator_does(pair):
    lines, options = [*SENTENCES[:4], "", SENTENCES[0]], SearchOptions(beam_size=4, n_best=2, extra_length=6)
    ask, translator = (
        asker(ServedGraph(*pair, options, max_source_tokens=40)),
        Translator(*pair, options, max_source_tokens=40),
    )
    texts = [best.text.split() for best in translator.translate(lines)]
    phrases = ["\n".join(words[:2]).upper() for words in texts]
    phrases[1:3] = "", " ".join(texts[2][-2:])
    answer = ask("translate", lines, forbidden=phrases)
    required = ["" if n else "zwei" for n in range(len(lines))]
    both = ask("translate", lines, forbidden=phrases, required=required)
    for number, line in enumerate(lines):
        protection = Protection(forbidden=Glossary.of_words(phrases[number].split("\n"), "x", ()))
        for found, of_line in ((answer, [[]]), (both, [[required[number]]])):
            [expected] = translator.translate_n_best([line], protect=protection, required=of_line)
            expected = expected if line else []
            names = ("translations", "is_forced", "scores")
            best = [row for row in zip(*(found[name][number] for name in names), strict=True) if row[-1] > -1e8]
            assert [(text.decode(), forced) for text, forced, _ in best] == [(e.text, e.is_forced) for e in expected]
            assert [score for *_, score in best] == pytest.approx([each.score for each in expected], abs=1e-4)
    assert (answer["translations"][1] == ask("translate", lines[1:2])["translations"][0]).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="A required phrase has a forbidden one: keep one"):
        ask("translate", ["a"], required="the Fox", forbidden="fox")


def test_what_was_found_is_answered_by_its_names():
    found = Found(ids="ids", scores="scores", texts="translations", is_cut="is_cut", is_forced="is_forced")
    assert all(name == value for name, value in found.outputs().items()) and found.outputs().keys() < EMPTY.keys()
