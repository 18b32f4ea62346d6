"""The served graph with letters for tokens and a search that is a table: what every signature is told and answers."""

import functools
import types

import numpy as np
import pytest
import tensorflow as tf

from export.graph import served_graph
from export.graph.confidences import Confidences
from export.graph.request import inputs_of
from export.graph.served_graph import ServedGraph
from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.runs.confidence import OF_NOTHING, Calibration
from keras_transformer.search.fallback import WithPhrases
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.scores import NEVER
from tests.support.exports import asker
from tests.support.searches import arrays_of

pytestmark = pytest.mark.usefixtures("eager")

CURVE = Calibration((-2.0, 0.0), (0.0, 1.0), "a measure", 9)
OPTIONS, LONGEST = SearchOptions(beam_size=2, extra_length=4, length_penalty=1.0), 6
SPACE, X = ord("\u2581"), ord("x")


class Letters:
    """The tokenizer of a graph: the number of a character is its token, and that of a space is written visibly."""

    def encode(self, texts):
        ids = tf.strings.unicode_decode(texts, "UTF-8")
        return ids.with_values(tf.where(ids.values == ord(" "), SPACE, ids.values))

    encode_target = encode

    def decode(self, ids):
        return tf.strings.unicode_encode(tf.ragged.boolean_mask(ids, ids > EOS), "UTF-8")

    def id_to_string(self, ids):
        names = tf.strings.unicode_encode(ids[:, tf.newaxis], "UTF-8")
        return tf.where(ids == PAD, "<pad>", tf.where(ids == EOS, "</s>", names))


class Reader:
    """Reads prefixes and phrases as letters; no prefix has other endings."""

    word_edges = tf.zeros([2, 9], tf.bool)

    def __init__(self, are_phrases=False):
        self.are_phrases, self.most = are_phrases, []

    def read(self, texts, most):
        self.most.append(most)
        tokens, lines = Letters().encode(texts), tf.size(texts)
        if self.are_phrases:
            has_phrase = tf.cast(tokens.row_lengths() > 0, tf.int64)
            tokens = tf.ragged.boolean_mask(tokens, tokens.row_lengths() > 0)
            ways = tf.RaggedTensor.from_row_lengths(tokens, tf.ones([tokens.nrows()], tf.int64))  # one each
            return tf.RaggedTensor.from_row_lengths(ways, has_phrase)
        none = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), tf.zeros([0], tf.int64))
        endings = tf.RaggedTensor.from_row_lengths(none, tf.zeros([lines], tf.int64))
        return tokens, endings, tf.cast(tokens.row_lengths(), tf.int32) >= most


class LettersGraph(ServedGraph):
    """A ServedGraph whose `forced` model gives each token the log-probability -0.5 and attends to its own place."""

    def __init__(self, options=OPTIONS, calibration=None, alignment_layer=2):
        tf.Module.__init__(self, name="letters")
        self.tokenizer, self.options, self.max_source_tokens = Letters(), options, LONGEST
        self.longest_output = LONGEST + options.extra_length
        self.alignment_layer, self._inputs = alignment_layer, inputs_of(options, self.longest_output)
        self._placeholders = functools.partial(rule_of_placeholders, [X])
        self._confidences, self._decoder = Confidences(calibration, options), "decoder"
        self._plan = SearchPlan(options, shortlist="table")
        self._prefixes, self._phrases, self._forced = Reader(), Reader(are_phrases=True), self.forced

    def forced(self, source_ids, target_ids):
        length, width = target_ids.shape[1], source_ids.shape[1]
        weights = tf.tile(tf.eye(length, width)[tf.newaxis, tf.newaxis], [len(target_ids), 2, 1, 1])
        return types.SimpleNamespace(
            log_probs=tf.where(target_ids == PAD, 0.0, -0.5),
            attention={"decoder_block_2/memory": weights},
            log_coverage=lambda ids: tf.fill([len(ids)], -2.0),
        )


@pytest.fixture
def asked(monkeypatch):
    """What each search was asked for. It finds a sentence in capitals and, with a worse score, its first letter.

    A sentence of "?" has no translation; capitals in the rule `forbidden` make it write a dash in place of them.
    """
    asked = []

    def search(decoder, source_ids, plan):
        rules = arrays_of(plan.rules)
        asked.append((decoder, source_ids.numpy().tolist(), plan.options, rules, plan.shortlist))
        capitals = tf.where((source_ids > EOS) & (source_ids != SPACE), source_ids - 32, source_ids)
        if "forbidden" in rules:
            is_same = capitals[:, :, tf.newaxis, tf.newaxis] == rules["forbidden"][:, tf.newaxis]
            capitals = tf.where(tf.reduce_any(is_same, [2, 3]) & (capitals > EOS), ord("-"), capitals)
        places = tf.range(capitals.shape[1])
        first = tf.where(places == 0, capitals, tf.where(places == 1, EOS, PAD))
        scores = -tf.reduce_sum(tf.cast(source_ids != PAD, tf.float32), 1)
        scores = tf.where(source_ids[:, 0] == ord("?"), NEVER, scores)
        ids, is_cut = tf.stack([capitals, first], 1), tf.tile([[False, True]], [len(capitals), 1])
        has_phrase = tf.reduce_any(rules.get("required", tf.zeros([len(ids), 1, 1, 1], tf.int32)) != PAD, [1, 2, 3])
        lost = tf.where(has_phrase[:, tf.newaxis], [[9.0, 7.0]], 0.0)
        return WithPhrases(ids, tf.stack([scores, scores - 1.0], 1), is_cut, lost)

    monkeypatch.setattr(served_graph, "search", search)
    monkeypatch.setattr(served_graph, "search_with_phrases", search)
    return asked


def rows(values):
    return np.vectorize(lambda each: each.decode() if isinstance(each, bytes) else each)(values).tolist()


@pytest.mark.parametrize("calibration", [None, CURVE])
def test_the_best_translation_of_each_line_and_nothing_for_a_blank_one(calibration, asked):
    found = asker(LettersGraph(calibration=calibration))("serving_default", ["ab", " ", "xyxx", "abcdefgh", ""])
    assert rows(found["translation"]) == ["AB", "", "XYXX", "ABCDE", ""]  # cut to six tokens with EOS
    assert rows(found["score"]) == [-3.0, 0.0, -5.0, -6.0, 0.0]
    assert not any(found["is_cut"]) and found["truncated"].tolist() == [*[False] * 3, True, False]
    [(decoder, source_ids, options, rules, table)] = asked
    assert (decoder, options, table) == ("decoder", OPTIONS, "table")
    assert source_ids == [[*map(ord, text), EOS, *[PAD] * (5 - len(text))] for text in ("ab", "xyxx", "abcde")]
    assert rules["placeholders"].numpy().tolist() == [[[X, 0]], [[X, 3]], [[X, 0]]]
    assert ("confidence" in found) is (calibration is not None)
    if calibration:  # scores are over (5 + tokens) / 6, confidences of what one token has
        expected = [1 + score * (5 + count) / 6 / count / 2 for score, count in ((-3, 3), (-5, 5), (-6, 6))]
        of_lines = np.maximum([expected[0], 0, expected[1], expected[2], 0], 0)
        of_lines[[1, 4]] = OF_NOTHING
        np.testing.assert_allclose(found["confidence"], of_lines, atol=1e-6)


def test_a_line_without_a_translation_fails_the_batch(asked):
    with pytest.raises(tf.errors.InvalidArgumentError, match="A line .*NaN"):
        asker(LettersGraph())("serving_default", ["ab", "?"])


def test_every_column_of_the_hypotheses_that_are_wanted(asked):
    ask = asker(LettersGraph(calibration=CURVE))
    found = ask("translate", ["a bc", " ", "abcdefgh"], n_best=[2, 1, 1], beam_size=[2, 2, 1], min_length=[1, 2, 3])
    assert rows(found["translations"]) == [["A\u2581BC", "A"], ["", ""], ["ABCDE", ""]]
    assert rows(found["scores"]) == [[-5.0, -6.0], [NEVER] * 2, [-6.0, NEVER]]
    assert rows(found["log_probabilities"]) == [[-2.5, -1.0], [NEVER] * 2, [-3.0, NEVER]]
    assert rows(found["pieces"]) == [["A \u2581 B C </s>", "A </s>"], ["", ""], ["A B C D E </s>", ""]]
    halves = [" ".join(["-0.5000"] * count) for count in (5, 2, 6)]
    assert rows(found["piece_log_probabilities"]) == [halves[:2], ["", ""], [halves[2], ""]]
    assert rows(found["alignments"]) == [["0-0 1-1", "0-0"], ["", ""], ["0-0", ""]]
    assert rows(found["is_cut"]) == [[False, True], [False] * 2, [False] * 2]
    assert rows(found["truncated"]) == [False, False, True]
    assert (found["confidences"] > 0).tolist() == [[True, False], [False] * 2, [True, False]]
    [(_, _, options, rules, table)] = asked
    assert (options, table) == (OPTIONS, "table")
    given = {name: values.numpy().tolist() for name, values in rules.items()}
    assert (given["n_best"], given["placeholders"]) == ([2, 1], [[[X, 0]], [[X, 0]]])
    assert set(given) >= {"prefixes", "endings", "required", "word_edges", "forbidden"}
    [minimum] = [each.rule for each in inputs_of(OPTIONS, 10) if each.name == "min_length"]
    assert given[minimum] == [1, 3]


def test_a_model_that_attends_to_nothing_aligns_nothing(asked):
    assert rows(asker(LettersGraph(alignment_layer=1))("translate", ["a b"])["alignments"]) == [["", ""]]


def test_prefixes_and_phrases_are_those_of_their_lines_and_a_prefix_that_is_cut_is_reported(asked):
    served = LettersGraph()
    prefixes, phrases = ["", "uv", "abcdef"], ["pq", "", "r"]
    found = asker(served)("translate", ["a", "b", "c"], target_prefix=prefixes, required=phrases)
    assert rows(found["truncated"]) == [False, False, True]  # six tokens leave no room for EOS
    [(_, source_ids, _, rules, _)] = asked
    lines = [chr(row[0]) for row in source_ids]
    for name, texts in (("prefixes", prefixes), ("required", phrases)):
        of_lines = dict(zip(lines, rules[name].numpy().tolist(), strict=True))
        for line, text in zip("abc", texts, strict=True):
            assert [token for token in np.ravel(of_lines[line]).tolist() if token != PAD] == list(map(ord, text))
    assert served._prefixes.most == served._phrases.most == [LONGEST]
    assert rows(found["is_forced"]) == [[True, False], [False, False], [True, False]]  # of one word 8 may be lost


def test_a_line_is_searched_again_without_the_tokens_of_a_phrase_that_it_must_not_have(asked):
    found = asker(LettersGraph())("translate", ["ab", "ab"], forbidden=["", "ab"])
    assert rows(found["translations"])[0][0] == "AB" and rows(found["translations"])[1][0] == "--"
    assert [len(source_ids) for _, source_ids, *_ in asked] == [2, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="A required phrase has a forbidden one"):
        asker(LettersGraph())("translate", ["ab"], forbidden="b", required="b")


@pytest.mark.parametrize("coverage", [0.0, 0.25])
def test_a_translation_is_scored_as_a_search_would_and_one_that_is_too_long_in_part(coverage):
    options = SearchOptions(beam_size=2, extra_length=4, coverage_penalty=coverage)
    given = {"text": ["ab", "", "c", "c"], "translation": ["xy", "xy", "", "z" * 10], "length_penalty": [1.0, 1, 0, 1]}
    found = asker(LettersGraph(options))("score", given.pop("text"), **given)
    assert rows(found["log_probability"]) == [-1.5, 0.0, -0.5, -5.0]
    scores = [-1.5 / (8 / 6), 0.0, -0.5, -5.0 / (15 / 6)]
    more = coverage * np.array([-2.0, 0, -2, -2])
    np.testing.assert_allclose(found["score"], scores + more, atol=1e-6)
    assert rows(found["pieces"]) == ["x y </s>", "", "</s>", " ".join("z" * 9) + " </s>"]
    assert rows(found["piece_log_probabilities"])[:3] == ["-0.5000 -0.5000 -0.5000", "", "-0.5000"]
    assert rows(found["truncated"]) == [False, False, False, True]
    assert rows(asker(LettersGraph())("score", ["abcdef"], translation=["x"])["truncated"]) == [True]


def test_a_line_is_tokenized_as_the_model_reads_it():
    found = asker(LettersGraph())("tokenize", ["a b", "\t", "abcdefgh"])
    assert rows(found["pieces"]) == ["a \u2581 b </s>", "", "a b c d e </s>"]
    assert rows(found["ids"])[0] == f"97 {SPACE} 98 {EOS}" and rows(found["ids"])[1] == ""
