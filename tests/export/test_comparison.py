"""A Hugging Face folder must score the run's translations as the run does, but for another epsilon."""

import contextlib
import types

import pytest

from export.huggingface import comparison
from export.versions import ExportError
from keras_transformer.pieces.translation import Translation


class FixedScores:
    """In place of a Scorer: a model gives each translation its own number, once it reads so many tokens."""

    def __init__(self, model, tokenizer, max_source_tokens=512):
        self.model, self.tokenizer, self.longest = model, tokenizer, max_source_tokens

    def score(self, lines, translations):
        assert translations == [line.upper() for line in lines] and self.longest == 40
        assert self.tokenizer == self.model.tokenizer
        return [types.SimpleNamespace(score=self.model.score * len(line)) for line in lines]


@pytest.mark.parametrize(
    ("epsilon", "difference", "is_refused"),
    [(1e-5, 1e-5, False), (1e-5, 1e-3, True), (1e-6, 1e-3, False), (1e-6, 0.02, True)],
)
def test_only_another_epsilon_explains_more_than_rounding(epsilon, difference, is_refused, monkeypatch, caplog):
    config = types.SimpleNamespace(norm_epsilon=epsilon)
    model = types.SimpleNamespace(score=-1.0, tokenizer="the run's", model_config=config)
    theirs = types.SimpleNamespace(score=-1.0 - difference, tokenizer="the folder's")
    imported = types.SimpleNamespace(transformer=lambda: theirs, tokenizer="the folder's")
    opened = []
    monkeypatch.setattr(comparison, "import_folder", lambda folder: opened.append(folder) or imported)
    monkeypatch.setattr(comparison, "Scorer", FixedScores)
    translator = types.SimpleNamespace(
        translate=lambda lines: [Translation(line.upper(), -1.0) for line in lines],
        tokenizer="the run's",
        max_source_tokens=40,
    )
    with pytest.raises(ExportError, match="'bb'") if is_refused else contextlib.nullcontext():
        found = comparison.compare("folder", model, translator, ["a", "bb"])
        assert found == (2, pytest.approx(2 * difference), "bb")
        assert (f"epsilon is {epsilon} in the run and always 1e-05 in" in caplog.text) is (epsilon != 1e-5)
    assert opened == ["folder"]
