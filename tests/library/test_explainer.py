"""The Explainer shows the same as the served graph, as data that JSON can hold."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.ground.errors import ConfigError, InputError, UserError
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer
from keras_transformer.runs.inference import Inference
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.trace import EXPLAINED_TOKENS
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES

OPTIONS = SearchOptions(beam_size=3, extra_length=6, n_best=3)
SENTENCE = SENTENCES[0]


@pytest.fixture(scope="module")
def explanation(pair):
    return Explainer(*pair, OPTIONS).explain(SENTENCE)


@pytest.mark.nightly
def test_its_translations_are_the_translators(pair, explanation):
    [expected] = Translator(*pair, OPTIONS).translate_n_best([SENTENCE])
    assert [one.text for one in explanation.translations] == [one.text for one in expected]
    for found, wanted in zip(explanation.translations, expected, strict=True):
        assert found.score == pytest.approx(wanted.score, abs=1e-5)
        assert len(found.pieces) == len(found.piece_log_probabilities) == len(wanted.ids)
        assert sum(found.piece_log_probabilities) == pytest.approx(found.log_probability)
        penalty = ((5 + len(found.pieces)) / 6) ** OPTIONS.length_penalty
        assert found.log_probability / penalty == pytest.approx(wanted.score, abs=1e-4)


def test_an_explanation_has_what_was_asked_for_and_the_shapes_of_the_best_translation(pair):
    options = SearchOptions(beam_size=2, n_best=1, extra_length=9, max_length=3)
    explainer = Explainer(*pair, options)
    found = explainer.explain("a", prefix="k")
    [best] = found.translations
    assert found.options == dataclasses.asdict(options) | {"target_prefix": "k"} and best.text.startswith("k")
    assert found.source_pieces == [pair[1].pieces()[number] for number in [*pair[1].encode("a"), EOS]]
    assert best.pieces[-1] == "</s>" and len(best.pieces) == len(best.piece_log_probabilities) <= 3
    assert best.log_probability == pytest.approx(sum(best.piece_log_probabilities)) and best.is_cut in (True, False)
    length, source = len(best.pieces), len(found.source_pieces)
    sizes = {"memory": (1, 4, length, source), "encoder": (1, 4, source, source), "decoder": (1, 4, length, length)}
    for name, size in sizes.items():
        assert np.shape(found.attention[name]) == size
        weights = 1000 * np.array(found.attention[name])
        np.testing.assert_allclose(weights, np.round(weights), atol=1e-6)
    assert any(round(node["log_probability"], 3) != node["log_probability"] for node in found.beam)
    tokens = len(pair[1].encode("a"))
    for most, is_truncated in ((tokens, True), (tokens + 1, False)):
        explainer.most_tokens = most
        assert explainer.explain("a").truncated == is_truncated
    explainer.most_tokens = 2
    with pytest.raises(InputError, match="tokens; at most 1 are possible"):
        explainer.explain("a", prefix="kochen der")
    with pytest.raises(InputError, match="^Sentence 1 has a lone surrogate"):
        explainer.explain("\ud800")


def test_an_explainer_refuses_what_its_model_cannot_do(pair):
    with pytest.raises(TypeError, match="options must be SearchOptions"):
        Explainer(*pair, {"beam_size": 3})
    model = Transformer(pair[0].transformer_config.replace(vocab_size=300, positions="learned", max_positions=9))
    with pytest.raises(ConfigError, match="a vocabulary of 300 pieces and the tokenizer one of 330"):
        Explainer(model, pair[1])
    few = Transformer(pair[0].transformer_config.replace(positions="learned", max_positions=9))
    assert Explainer(few, pair[1]).most_tokens == 9 and Explainer(*pair).most_tokens == EXPLAINED_TOKENS
    with pytest.raises(ConfigError, match="no shortlist was given"):
        Explainer(*pair, SearchOptions(shortlist="on"))


@pytest.mark.nightly
def test_the_beam_has_the_log_probability_of_every_output(explanation):
    ends = [node["log_probability"] for node in explanation.beam if node["piece"] == "</s>" and node["slot"] >= 0]
    for one in explanation.translations:
        assert min(abs(one.log_probability - end) for end in ends) < 2e-4


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_rows_of_attention_sum_to_1_and_have_a_place_for_each_piece(explanation):
    source, target = len(explanation.source_pieces), len(explanation.translations[0].pieces)
    shapes = {"memory": (target, source), "encoder": (source, source), "decoder": (target, target)}
    for name, weights in explanation.attention.items():
        assert np.shape(weights)[2:] == shapes[name]
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=0.001 * source)


@pytest.mark.nightly
def test_attention_is_the_best_outputs_alone_if_others_are_longer(pair):
    options = SearchOptions(beam_size=12, n_best=12, length_penalty=0.0, extra_length=6)
    found = Explainer(*pair, options).explain(SENTENCES[1])
    target, *others = [len(one.pieces) for one in found.translations]
    assert max(others) > target  # so the weights of the best have columns and rows to leave out
    source = len(found.source_pieces)
    shapes = {name: np.shape(weights)[2:] for name, weights in found.attention.items()}
    assert shapes == {"memory": (target, source), "encoder": (source, source), "decoder": (target, target)}


@pytest.mark.nightly
def test_it_is_json(explanation):
    data = dataclasses.asdict(explanation)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["options"]["beam_size"] == 3 and data["source"] == SENTENCE


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_an_output_has_at_most_max_length_pieces(pair, explanation):
    assert min(len(one.pieces) for one in explanation.translations) > 3
    found = Explainer(*pair, dataclasses.replace(OPTIONS, max_length=3)).explain(SENTENCE)
    assert max(len(one.pieces) for one in found.translations) == 3


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_model_in_float64_is_explained(pair):
    model = Transformer(pair[0].transformer_config, dtype="float64")
    model.set_weights(pair[0].get_weights())
    found, expected = (Explainer(one, pair[1], OPTIONS).explain(SENTENCE) for one in (model, pair[0]))
    assert [one.text for one in found.translations] == [one.text for one in expected.translations]


def test_a_run_is_explained_as_it_searches_unless_it_is_asked_otherwise(random_folder, tmp_path):
    run = shutil.copytree(random_folder, tmp_path / "run")
    Inference(search={"beam_size": 7, "length_penalty": 0.3}).save(run / "inference.json")
    assert Explainer.load(run).options == SearchOptions(beam_size=7, length_penalty=0.3)
    assert Explainer.load(run, SearchOptions(beam_size=2)).options == SearchOptions(beam_size=2)


def test_numbers_of_attention_have_three_decimals_and_log_probabilities_of_the_beam_four(explanation):
    for of_kind in explanation.attention.values():
        for of_block in of_kind:
            np.testing.assert_array_equal(np.round(of_block, 3), of_block)
    found = [entry["log_probability"] for entry in explanation.beam]
    assert found == [round(value, 4) for value in found] and found != [round(value, 3) for value in found]
