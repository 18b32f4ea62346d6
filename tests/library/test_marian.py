"""A model that Marian trained, imported from its files, gives Marian's own scores and translations."""

import numpy as np
import pytest

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.imported.errors import ImportedModelError
from keras_transformer.imported.folder import import_folder
from keras_transformer.imported.marian import check_options
from keras_transformer.imported.model import ImportedModel
from keras_transformer.scorer import Scorer
from keras_transformer.translation import Translation
from keras_transformer.translator import Translator
from tests.support.marian import (
    MARIAN,
    SELF_ATTENTION,
    SSRU,
    best_by_marian,
    greedy_by_marian,
    lines,
    scores_by_marian,
)

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


@pytest.mark.slow
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


@pytest.mark.slow
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
