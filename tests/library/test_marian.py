"""A model that Marian trained, imported from its files, gives Marian's own scores and translations."""

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.marian import (
    activation_of,
    check_options,
    notes_of,
    operations,
    search_of,
    tokens_of,
)
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.models.imported.weights import Arrays
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.marian import MARIAN, SELF_ATTENTION, SSRU, best_by_marian, greedy_by_marian, lines, scores_by_marian

MODELS = [SELF_ATTENTION, SSRU]
CLOSE = 1e-4  # nats


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """The name of a model of the fixture, and the model, imported."""
    return request.param, import_folder(MARIAN / f"{request.param}.npz")


def log_probabilities(model: ImportedModel) -> np.ndarray:
    pairs = Scorer(model.transformer(), model.tokenizer).score(lines("test.en"), lines("test.de"))
    return np.array([pair.log_probability for pair in pairs])


@pytest.mark.slow
def test_scores_of_given_pairs_are_marians(model):
    name, imported = model
    np.testing.assert_allclose(log_probabilities(imported), scores_by_marian(name), atol=CLOSE)


@pytest.mark.nightly
def test_those_of_a_model_with_the_sinusoids_of_the_paper_are_not(model):
    """As Hugging Face's conversion has them."""
    name, imported = model
    paper = imported._replace(config=imported.config.replace(sinusoids="paper"))
    assert np.abs(log_probabilities(paper) - scores_by_marian(name)).max() > 0.2


def translated(model: ImportedModel, **options) -> list[Translation]:
    return Translator(model.transformer(), model.tokenizer, SearchOptions(**options)).translate(lines("test.en"))


@pytest.mark.slow
def test_the_best_of_a_beam_of_six_and_its_score_are_marians(model):
    name, imported = model
    found = translated(imported, beam_size=6, length_penalty=1.0, length_normalization="tokens")
    texts, scores = zip(*best_by_marian(name), strict=True)
    assert [translation.text for translation in found] == list(texts)
    np.testing.assert_allclose([translation.score for translation in found], scores, atol=CLOSE)


@pytest.mark.nightly
def test_greedy_translations_are_marians(model):
    name, imported = model
    assert [translation.text for translation in translated(imported, beam_size=1)] == greedy_by_marian(name)


@pytest.mark.parametrize(
    ("option", "value", "written"),
    [
        ("dec-cell", "gru", "gru"),
        ("transformer-rnn-projection", True, "true"),
        ("layer-normalization", True, "true"),
    ],
)
def test_another_recurrent_decoder_than_an_ssru_is_refused_by_its_option(option, value, written):
    options = {"type": "transformer", "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    check_options(options, MARIAN)
    with pytest.raises(ImportedModelError, match=f"{option}: {written};"):
        check_options(options | {option: value}, MARIAN)
    check_options(options | {"transformer-decoder-autoreg": "self-attention", option: value}, MARIAN)


def test_options_that_are_missing_are_those_of_before_there_were_such_options():
    assert (activation_of({}), activation_of({"transformer-ffn-activation": "relu"})) == ("swish", "relu")
    assert search_of({}) == {"length_normalization": "tokens", "length_penalty": 0}
    penalties = [search_of({"normalize": value})["length_penalty"] for value in (True, 1, False, None, 0.6)]
    assert penalties == [1, 1, 0, 0, 0.6] and not any(isinstance(penalty, bool) for penalty in penalties)
    assert search_of({"normalize": 0.6, "beam-size": 3})["beam_size"] == 3
    notes = list(notes_of({"word-penalty": 0.1, "allow-unk": True, "beam-size": 3}))
    assert [note.partition(" in its")[0] for note in notes] == ["word-penalty: 0.1", "allow-unk: True"]
    assert not list(notes_of({"word-penalty": 0, "allow-unk": False}))
    assert operations({"x": "dan"}, "x") == "an" and operations({"x": None}, "x") == operations({}, "x") == ""
    check_options({"input-types": None}, "m.npz")


def test_the_matrix_of_the_logits_may_be_one_of_its_own_in_either_form():
    vocabulary = Vocabulary.of_pieces(["</s>", "<unk>"], "v")
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name, array in (("Wt", matrix), ("W", matrix.T)):
        arrays = Arrays({"Wemb": matrix + 1, f"decoder_ff_logit_out_{name}": array}, "m")
        tokens = tokens_of(arrays, vocabulary, vocabulary, 3)
        assert (tokens.logits == matrix).all() and not tokens.bias.any() and not arrays.rest
    other = Vocabulary.of_pieces(["</s>", "<unk>", "a"], "w")
    three = np.arange(9, dtype=np.float32).reshape(3, 3)
    arrays = Arrays({"encoder_Wemb": matrix, "decoder_Wemb": three, "decoder_ff_logit_out_b": three[:1]}, "m")
    tokens = tokens_of(arrays, vocabulary, other, 3)
    assert tokens.embed_source is matrix and tokens.embed_target is tokens.logits is three
    assert tokens.bias.tolist() == [0, 1, 2] and not arrays.rest
    with pytest.raises(kt.UserError, match="^m has one matrix Wemb for two vocabularies that differ"):
        tokens_of(Arrays({"Wemb": matrix}, "m"), vocabulary, other, 3)
