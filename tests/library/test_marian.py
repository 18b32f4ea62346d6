"""A model that Marian trained, imported from its files, gives Marian's own scores and translations."""

import numpy as np
import pytest

from keras_transformer.imported.folder import import_folder
from keras_transformer.imported.model import ImportedModel
from keras_transformer.scorer import Scorer
from tests.support.marian import (
    MARIAN,
    SELF_ATTENTION,
    lines,
    scores_by_marian,
)

MODELS = [SELF_ATTENTION]
CLOSE = 1e-4  # nats


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """The name of a model of the fixture, and the model, imported."""
    return request.param, import_folder(MARIAN / f"{request.param}.npz")


def log_probabilities(model: ImportedModel) -> np.ndarray:
    pairs = Scorer(model.transformer(), model.tokenizer).score(lines("test.en"), lines("test.de"))
    return np.array([pair.log_probability for pair in pairs])


def test_scores_of_given_pairs_are_marians(model):
    name, imported = model
    np.testing.assert_allclose(log_probabilities(imported), scores_by_marian(name), atol=CLOSE)


def test_those_of_a_model_with_the_sinusoids_of_the_paper_are_not(model):
    """As Hugging Face's conversion has them."""
    name, imported = model
    paper = imported._replace(config=imported.config.replace(sinusoids="paper"))
    assert np.abs(log_probabilities(paper) - scores_by_marian(name)).max() > 0.2
