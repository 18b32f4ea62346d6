"""The Explainer shows the same as the served graph, as data that JSON can hold."""

import dataclasses
import json

import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.config import ConfigError
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.trace import EXPLAINED_TOKENS
from keras_transformer.errors import UserError
from keras_transformer.explainer import Explainer
from keras_transformer.model import Transformer
from keras_transformer.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES

pytestmark = pytest.mark.slow

OPTIONS = SearchOptions(beam_size=3, extra_length=6, n_best=3)
SENTENCE = SENTENCES[0]


@pytest.fixture(scope="module")
def explanation(pair):
    return Explainer(*pair, OPTIONS).explain(SENTENCE)


def test_its_translations_are_the_translators(pair, explanation):
    [expected] = Translator(*pair, OPTIONS).translate_n_best([SENTENCE])
    assert [one.text for one in explanation.translations] == [one.text for one in expected]
    for found, wanted in zip(explanation.translations, expected, strict=True):
        assert found.score == pytest.approx(wanted.score, abs=1e-5)
        assert len(found.pieces) == len(found.piece_log_probabilities) == len(wanted.ids)
        assert sum(found.piece_log_probabilities) == pytest.approx(found.log_probability)
        penalty = ((5 + len(found.pieces)) / 6) ** OPTIONS.length_penalty
        assert found.log_probability / penalty == pytest.approx(wanted.score, abs=1e-4)


def test_the_beam_has_the_log_probability_of_every_output(explanation):
    ends = [node["log_probability"] for node in explanation.beam if node["piece"] == "</s>" and node["slot"] >= 0]
    for one in explanation.translations:
        assert min(abs(one.log_probability - end) for end in ends) < 2e-4


def test_it_shows_what_the_served_graph_shows(pair, explanation):
    ask = asker(ServedGraph(*pair, OPTIONS, 40))
    answer = {name: values[0] for name, values in ask("explain", [SENTENCE], n_best=3).items()}
    assert " ".join(explanation.source_pieces).encode() == answer["source_pieces"]
    assert " ".join(explanation.translations[0].pieces).encode() == answer["pieces"]
    for name, weights in explanation.attention.items():
        expected = np.array(answer[f"{name}_attention"].split(), float)
        np.testing.assert_allclose(np.ravel(weights), expected, atol=1.1e-3)
    for name, key in (("steps", "step"), ("parents", "parent"), ("slots", "slot"), ("pieces", "piece")):
        assert " ".join(str(node[key]) for node in explanation.beam).encode() == answer[f"beam_{name}"]
    of_nodes = np.array(answer["beam_log_probabilities"].split(), float)
    np.testing.assert_allclose([node["log_probability"] for node in explanation.beam], of_nodes, atol=2e-4)


def test_rows_of_attention_sum_to_1_and_have_a_place_for_each_piece(explanation):
    source, target = len(explanation.source_pieces), len(explanation.translations[0].pieces)
    shapes = {"memory": (target, source), "encoder": (source, source), "decoder": (target, target)}
    for name, weights in explanation.attention.items():
        assert np.shape(weights)[2:] == shapes[name]
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=0.001 * source)


def test_attention_is_the_best_outputs_alone_if_others_are_longer(pair):
    options = SearchOptions(beam_size=12, n_best=12, length_penalty=0.0, extra_length=6)
    found = Explainer(*pair, options).explain(SENTENCES[1])
    target, *others = [len(one.pieces) for one in found.translations]
    assert max(others) > target  # so the weights of the best have columns and rows to leave out
    source = len(found.source_pieces)
    shapes = {name: np.shape(weights)[2:] for name, weights in found.attention.items()}
    assert shapes == {"memory": (target, source), "encoder": (source, source), "decoder": (target, target)}


def test_it_is_json(explanation):
    data = dataclasses.asdict(explanation)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["options"]["beam_size"] == 3 and data["source"] == SENTENCE


def test_long_sentences_and_outputs_are_cut(pair, caplog):
    found = Explainer(*pair, SearchOptions(beam_size=1, min_length=200)).explain("a dog " * 200)
    assert found.truncated and "only the first" in caplog.text
    caplog.clear()
    for tokens in (EXPLAINED_TOKENS - 1, EXPLAINED_TOKENS):  # and EOS
        line = " ".join(["a"] * tokens)
        assert len(pair[1].encode(line)) == tokens and not caplog.text
        cut = Explainer(*pair, SearchOptions(beam_size=1, extra_length=1)).explain(line)
        assert cut.truncated == ("only the first" in caplog.text) == (tokens == EXPLAINED_TOKENS)
    assert len(found.source_pieces) == EXPLAINED_TOKENS == len(found.translations[0].pieces)


def test_a_model_with_fewer_positions_shows_fewer_tokens(pair, caplog):
    config = pair[0].transformer_config.replace(positions="learned", max_positions=8)
    found = Explainer(Transformer(config), pair[1], SearchOptions(beam_size=1)).explain("a dog " * 20)
    assert found.truncated and len(found.source_pieces) == 8 and "only the first 7 are used" in caplog.text


def test_an_output_has_at_most_max_length_pieces(pair, explanation):
    assert min(len(one.pieces) for one in explanation.translations) > 3
    found = Explainer(*pair, dataclasses.replace(OPTIONS, max_length=3)).explain(SENTENCE)
    assert max(len(one.pieces) for one in found.translations) == 3


def test_a_prefix_begins_every_translation(pair):
    found = Explainer(*pair, OPTIONS).explain(SENTENCE, prefix="three")
    assert all(one.text.startswith("three") for one in found.translations)
    assert found.options["target_prefix"] == "three"


@pytest.mark.parametrize("sentence", ["", " \t"])
def test_a_blank_sentence_is_refused(pair, sentence):
    with pytest.raises(ConfigError, match="blank"):
        Explainer(*pair, OPTIONS).explain(sentence)


def test_a_model_whose_probabilities_are_no_numbers_is_one_sentence(pair):
    model = Transformer(pair[0].transformer_config)
    for weight in model.weights:
        weight.assign(1e30 * np.ones(weight.shape))
    with pytest.raises(UserError, match="The sentence has no translation: the model's probabilities are NaN"):
        Explainer(model, pair[1], OPTIONS).explain(SENTENCE)


def test_a_model_in_float64_is_explained(pair):
    model = Transformer(pair[0].transformer_config, dtype="float64")
    model.set_weights(pair[0].get_weights())
    found, expected = (Explainer(one, pair[1], OPTIONS).explain(SENTENCE) for one in (model, pair[0]))
    assert [one.text for one in found.translations] == [one.text for one in expected.translations]
