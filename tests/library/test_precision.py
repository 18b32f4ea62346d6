"""Translations, scores and explanations in another precision than that of the model."""

import pathlib

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.model import Transformer
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.translator import Translator

OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=5)
LINES = ["the fox", "dog dog dog", "", "one", "a lazy hen", "three four"]


@pytest.mark.nightly
def test_in_bfloat16_the_weights_and_products_are_bfloat16_and_scores_are_close(pair):
    expected = Translator(*pair, OPTIONS).translate(LINES)
    copy = in_precision(pair[0], "bfloat16")
    assert {weight.dtype for weight in copy.weights} == {"bfloat16"}
    found = Translator(*pair, OPTIONS, precision="bfloat16").translate(LINES)
    # processors without products of bfloat16 round elsewhere: up to 0.11 apart with AVX2 alone, below 0.1 with AVX-512
    assert [t.score for t in found] == pytest.approx([t.score for t in expected], abs=0.2, rel=0.05)
    assert in_precision(pair[0], "float32") is pair[0]


@pytest.mark.nightly
def test_a_transformer_of_mixed_precision_is_searched_as_it_is_on_request(pair):
    mixed = Transformer(pair[0].transformer_config, dtype="mixed_bfloat16")
    for weight, value in zip(mixed.weights, pair[0].weights, strict=True):
        weight.assign(value)
    exact = Translator(*pair, OPTIONS).translate(LINES)
    copied = Translator(mixed, pair[1], OPTIONS).translate(LINES)  # its weights are float32: nothing is lost
    assert [(t.text, t.score) for t in copied] == [(t.text, pytest.approx(t.score, abs=1e-4)) for t in exact]
    as_it_is = Translator(mixed, pair[1], OPTIONS, precision=None).translate(LINES)
    assert 1e-4 < max(abs(t.score - e.score) for t, e in zip(as_it_is, exact, strict=True)) < 0.5


def test_a_model_that_has_the_precision_is_no_copy(pair):
    assert in_precision(pair[0], None) is in_precision(pair[0], "float32") is pair[0]


def test_a_copy_has_the_weights_of_the_model_which_keeps_its_own(pair):
    before = [weight.numpy() for weight in pair[0].weights]
    copy = in_precision(pair[0], "bfloat16")
    for kept, ours, theirs in zip(before, pair[0].weights, copy.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), kept)
        np.testing.assert_allclose(np.asarray(theirs, np.float32), kept, rtol=2**-8)


def test_another_precision_is_refused(pair):
    with pytest.raises(ConfigError, match="precision is 'float8'; it must be one of float32, bfloat16"):
        Translator(*pair, precision="float8")


@pytest.mark.parametrize("flags, warns", [("avx2 avx512_bf16", False), ("amx_bf16", False), ("avx2 avx512f", True)])
def test_a_processor_without_bfloat16_products_is_told(pair, monkeypatch, caplog, flags, warns):
    monkeypatch.setattr(pathlib.Path, "read_text", lambda *_, **__: f"flags : {flags}\n")
    in_precision(pair[0], "bfloat16")
    messages = [record.getMessage() for record in caplog.records if record.name == "keras_transformer"]
    assert ["bfloat16" in message for message in messages] == [True] * warns
