"""The languages of lines inside a graph: the same tokens, refusals and translations as in Python."""

import dataclasses
import itertools
import re

import pytest
import tensorflow as tf

from export.graph.languages import GraphLanguages
from export.graph.ragged_rows import firsts
from export.graph.served_graph import ServedGraph
from keras_transformer.ground.errors import ConfigError, message_of_the_graph
from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.language_marks import Languages, MarkReader
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import Ask
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.models import LIVELY, assert_close, lively_transformer
from tests.support.runs import SENTENCES

PIECES = {"en": "__en__", "deu_Latn": "__de__", "srp_Cyrl": "__sc__", "srp_Latn": "__sl__"}
M2M = Languages(PIECES, PIECES, source_first="source", target_first="target")
LEGACY = Languages(PIECES, PIECES, source_last="source", target_first="target")
TAGS = Languages(target=PIECES, source_first="target")
WORDS = Languages(target={code: f"{piece} __en__" for code, piece in PIECES.items()}, source_first="target")
LONGER = Languages(PIECES, WORDS.target, source_first="source")  # than the tags that stand before a source
ALL = {"m2m": M2M, "legacy": LEGACY, "tags": TAGS, "words": WORDS, "by default": M2M.by_default("en", "de")}
ALL["longer"] = LONGER
ALL["shorter"] = Languages(target=PIECES | {"srp_Latn": "__sl__ __en__ __sc__"}, source_first="target")
OPTIONS = SearchOptions(beam_size=2, extra_length=5)
LINES = [SENTENCES[0], "a lazy hen", "", SENTENCES[1] * 3, "123"]
CODES = ["", "en", "EN", "eng", "en-GB", "de", "ger", "deu_Latn", "DE_AT", "sr", "srp_Latn", "fr", "English", "de\n"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("languages") / "tokenizer.model"
    train_tokenizer(SENTENCES * 3, path, vocab_size=360, symbols=list(PIECES.values()))
    tokenizer = Tokenizer(path)
    return lively_transformer(dataclasses.replace(LIVELY, vocab_size=tokenizer.vocab_size)), tokenizer


@pytest.mark.parametrize("name", ALL)
def test_every_code_has_the_tokens_that_it_has_in_python(model, name):
    languages = ALL[name]
    graph, reader = GraphLanguages(languages, model[1]), MarkReader(languages, model[1])
    marks = tf.function(graph.marks)
    for code in CODES:
        for pair in ((code, "de"), ("en" if languages.source else "", code)):
            asked = tuple(tf.constant([text, text]) for text in pair)
            try:
                expected = reader.marks(*languages.chosen(*pair))
            except ConfigError:
                with pytest.raises(tf.errors.InvalidArgumentError, match="This model (reads|writes|does not say)"):
                    marks(*asked)
            else:
                found = [[token for token in of_place.numpy().ravel() if token != PAD] for of_place in marks(*asked)]
                assert found == [list(tokens) * 2 for tokens in expected], pair


@pytest.mark.parametrize("name", ALL)
def test_a_source_that_has_its_marks_already_gets_none_again(model, name):
    languages = ALL[name]
    graph, reader = GraphLanguages(languages, model[1]), MarkReader(languages, model[1])
    asked = "en" if languages.source else "", "de"
    expected, marks = reader.marks(*languages.chosen(*asked)), graph.marks(*(tf.constant([code]) for code in asked))
    for ids in ([20, 21], [*expected.first, 20, 21]):
        assert graph.of_source(tf.ragged.constant([ids], tf.int32), marks).to_list() == [expected.around(ids)]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("target", ["de", "srp_Latn"])
def test_a_source_is_cut_where_it_is_in_python_whether_it_has_its_marks_already(model, name, target):
    """ "shorter" has a language of fewer tokens than the longest, whose sources may be longer."""
    languages, longest = ALL[name], 8
    graph, reader = GraphLanguages(languages, model[1]), MarkReader(languages, model[1])
    asked = "en" if languages.source else "", target
    expected, marks = reader.marks(*languages.chosen(*asked)), graph.marks(*(tf.constant([code]) for code in asked))
    for first, length in itertools.product(((), expected.first), range(1, longest + 3)):
        ids = [*first, *range(20, 20 + length)]
        pieces = tf.ragged.constant([ids], tf.int32)
        found = graph.of_source(firsts(pieces, graph.limits(pieces, marks, longest)), marks)
        assert found.to_list() == [expected.around(ids, longest)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ALL)
def test_the_graph_translates_and_scores_as_the_model_does(model, name):
    """In two languages in one request, cut lines, alignments and scores of pieces included."""
    languages, longest = ALL[name], 20
    ask = asker(ServedGraph(*model, OPTIONS, longest, languages=languages))
    translator = Translator(*model, OPTIONS, max_source_tokens=longest, languages=languages)
    sources = {"source_language": "en"} if languages.source else {}
    targets = ["de", "srp_Latn", "de", "srp_Latn", "de"]
    found = ask("translate", LINES, target_language=targets, **{key: [value] for key, value in sources.items()})
    scorer = Scorer(*model, max_source_tokens=longest, languages=languages, length_penalty=OPTIONS.length_penalty)
    for row, (line, target) in enumerate(zip(LINES, targets, strict=True)):
        [best] = translator.translate([line], target_language=target, **sources)
        assert found["translations"][row, 0].decode() == best.text
        if row in (2, 4):  # blank, and without a letter
            continue
        assert_close(found["scores"][row, 0], best.score, atol=1e-4)
        asks = [translator.told(Ask(target_language=target, **sources))]
        alignment = " ".join(f"{source}-{word}" for source, word in translator.align([(line, best)], asks)[0])
        assert found["alignments"][row, 0].decode() == alignment
        assert found["truncated"][row] == (row == 3)
        [pair] = scorer.score([line], [SENTENCES[2]], target_language=target, **sources)
        answer = ask("score", [line], translation=[SENTENCES[2]], target_language=[target], **to_lists(sources))
        assert_close(answer["log_probability"][0], pair.log_probability, atol=1e-3)
        assert answer["pieces"][0].decode().split(" ") == list(pair.pieces)
    if name == "by default":
        assert ask("serving_default", LINES[:1])["translation"][0] == found["translations"][0, 0]


def to_lists(values):
    return {name: [value] for name, value in values.items()}


@pytest.mark.parametrize("name", ["m2m", "tags", "words"])
def test_a_tag_in_the_line_that_contradicts_the_language_is_refused_in_the_graph_too(model, name):
    tokenizer, graph = model[1], GraphLanguages(ALL[name], model[1])
    own, other = (("en", "deu_Latn"), ("deu_Latn", "srp_Latn"))[name != "m2m"]
    own, other = (getattr(ALL[name], ALL[name].source_first)[code].replace(" ", "") for code in (own, other))

    def inputs(*lines, codes):
        marks = graph.marks(*(tf.constant([code] * len(lines)) for code in codes))
        return tf.ragged.constant([tokenizer.encode(line) for line in lines], tf.int32), marks

    def sources(*lines, codes):
        return graph.of_source(*inputs(*lines, codes=codes)).to_list()

    codes = ("en" if name == "m2m" else "", "de")
    plain, tagged = sources("the dog", f"{own}the dog", codes=codes)
    assert plain == tagged
    python = MarkReader(ALL[name], tokenizer).marks(*ALL[name].chosen(*codes))
    for text in ("<2xx> the dog", ">>xx<< the dog", "__xx__ the dog", f"the {other} dog"):  # text, since it is no tag
        assert sources(text, codes=codes) == [python.around(tokenizer.encode(text))]
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        tf.function(graph.of_source)(*inputs("the dog", "", f"{other} the dog", codes=codes))
    sentence = message_of_the_graph(raised.value.message)
    assert re.fullmatch("A line begins with the tag of another language than is asked for: .*language[.]", sentence)
    if name == "tags":  # asked for none
        assert sources(f"{other} the dog", codes=("", "")) == [[*tokenizer.encode(f"{other} the dog"), 3]]


def test_a_tag_can_begin_with_that_of_another_language_in_the_graph_too(model):
    languages = Languages(target={"zh": "__en__", "zh_Hant": "__en__ __de__"}, source_first="target")
    tokenizer, graph = model[1], GraphLanguages(languages, model[1])
    line, codes = tf.ragged.constant([tokenizer.encode("__en____de__the dog")], tf.int32), tf.constant(["zh_Hant"])
    assert graph.of_source(line, graph.marks(tf.constant([""]), codes)).to_list() == [[*line.to_list()[0], 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the tag of another language"):
        graph.of_source(line, graph.marks(tf.constant([""]), tf.constant(["zh"])))
