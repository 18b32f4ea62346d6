"""The table of names has every weight of a Transformer, and its arrays go both ways."""

import itertools

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.layers.embedding import sinusoidal_encoding
from keras_transformer.models.imported.names import as_huggingface, as_ours, order_of_channels, weights_of

CONFIG = kt.TransformerConfig(
    vocab_size=11, encoder_layers=2, decoder_layers=1, d_model=8, d_ff=12, num_heads=2, attention_bias=True
)
CONFIGS = [
    CONFIG.replace(norm=norm, shared_embeddings=is_shared)
    for norm, is_shared in itertools.product(("post", "pre"), (True, False))
]


@pytest.mark.parametrize("config", [*CONFIGS, CONFIG.replace(decoder_layer="ssru")], ids=str)
def test_every_weight_of_a_transformer_has_its_row(config):
    shapes = {weight.path: tuple(weight.shape) for weight in kt.Transformer(config).weights}
    rows = {weight.ours: weight.shape(config) for weight in weights_of(config)}
    bias = "embedding/bias" if config.shared_embeddings else "logits/bias"
    assert rows == shapes | {bias: (11,)}


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_no_name_comes_twice(config):
    for names in zip(*((row.ours, row.marian, row.huggingface) for row in weights_of(config)), strict=True):
        assert len(set(names)) == len(names)


def test_marian_names_a_norm_after_its_place():
    """Its layers are called x_ffn_ln_scale after a sublayer and x_ffn_ln_scale_pre before it."""
    for config in CONFIGS:
        norms = {row.marian for row in weights_of(config) if "_ln_" in row.marian and "top" not in row.marian}
        assert norms and {name.endswith("_pre") for name in norms} == {config.norm == "pre"}


def test_an_array_goes_to_hugging_face_and_back():
    for weight in weights_of(CONFIG):
        array = np.random.default_rng(1).normal(size=weight.shape(CONFIG))
        np.testing.assert_array_equal(as_ours(weight, as_huggingface(weight, array), is_huggingface=True), array)


def test_all_sines_before_all_cosines_become_pairs():
    positions, rates = np.arange(5.0)[:, np.newaxis], 10000.0 ** (-np.arange(4) / 4)
    halves = np.concatenate([np.sin(positions * rates), np.cos(positions * rates)], axis=1)
    pairs = sinusoidal_encoding(np.arange(5), 8)
    np.testing.assert_allclose(halves[:, order_of_channels(8)], pairs, atol=1e-6)
