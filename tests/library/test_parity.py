"""The same weights in independent implementations give the same numbers: torch.nn.Transformer and keras_hub."""

import importlib.util
import math

import keras_hub
import numpy as np
import pytest

from keras_transformer.layers.blocks import DecoderBlock, EncoderBlock
from keras_transformer.layers.normalization import PreNormResidual
from keras_transformer.model import Transformer
from tests.support.models import SMALL, as_numpy, assert_close, batch_of, normal, randomise

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install -r requirements-peers.txt"
)
D_MODEL, HEADS, D_FF, EPSILON = 16, 4, 24, 0.01
SIDES = "source", "target"
ROWS = [[([5, 6, 7, 8, 3], [2, 9, 10])], [([11, 12, 3], [2, 13, 14, 15, 16, 17])], [([3], [2])]]


# torch


def torch_transformer(ours, config):
    """torch.nn.Transformer with our weights; its encoder and decoder end in a LayerNorm only if ours do (pre-norm)."""
    import torch

    arguments = dict(dim_feedforward=config.d_ff, dropout=0.0, activation=config.activation, batch_first=True)
    arguments |= dict(layer_norm_eps=config.norm_epsilon, norm_first=config.norm == "pre")
    sizes = config.d_model, config.num_heads
    norms = [torch.nn.LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else None for _ in "ed"]
    encoder_layer = torch.nn.TransformerEncoderLayer(*sizes, **arguments)
    encoder = torch.nn.TransformerEncoder(encoder_layer, config.encoder_layers, norms[0], enable_nested_tensor=False)
    decoder_layer = torch.nn.TransformerDecoderLayer(*sizes, **arguments)
    decoder = torch.nn.TransformerDecoder(decoder_layer, config.decoder_layers, norms[1])
    theirs = torch.nn.Transformer(*sizes, custom_encoder=encoder, custom_decoder=decoder, batch_first=True)
    for number, layer in enumerate(theirs.encoder.layers, 1):
        copy_to_torch(ours.get_layer(f"encoder_block_{number}"), layer)
    for number, layer in enumerate(theirs.decoder.layers, 1):
        copy_to_torch(ours.get_layer(f"decoder_block_{number}"), layer)
    if config.norm == "pre":
        copy_norm(ours.get_layer("encoder_norm"), theirs.encoder.norm)
        copy_norm(ours.get_layer("decoder_norm"), theirs.decoder.norm)
    return theirs.eval()


def copy_to_torch(block, layer):
    copy_attention(block.self_attention, layer.self_attn)
    residuals = [block.self_attention_residual]
    if isinstance(block, DecoderBlock):
        copy_attention(block.memory_attention, layer.multihead_attn)
        residuals.append(block.memory_attention_residual)
    for number, residual in enumerate([*residuals, block.feed_forward_residual], 1):
        copy_norm(residual.norm, getattr(layer, f"norm{number}"))
    for ours, theirs in ((block.feed_forward.inner, layer.linear1), (block.feed_forward.outer, layer.linear2)):
        copy(as_numpy(ours.kernel).T, theirs.weight)
        copy(ours.bias, theirs.bias)


def copy_attention(ours, theirs):
    inputs = ours.query_projection, ours.key_projection, ours.value_projection
    copy(np.concatenate([as_numpy(projection.kernel).T for projection in inputs]), theirs.in_proj_weight)
    copy(np.concatenate([as_numpy(projection.bias) for projection in inputs]), theirs.in_proj_bias)
    copy(as_numpy(ours.output_projection.kernel).T, theirs.out_proj.weight)
    copy(ours.output_projection.bias, theirs.out_proj.bias)


def copy_norm(ours, theirs):
    copy(ours.gamma, theirs.weight)
    copy(ours.beta, theirs.bias)


def copy(ours, theirs):
    import torch

    theirs.data.copy_(torch.tensor(as_numpy(ours)))


def embedded(matrix, ids):
    """E[ids] * sqrt(d_model) and the sinusoids of section 3.5, in numpy."""
    d_model = matrix.shape[1]
    angles = np.arange(ids.shape[1])[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return matrix[ids] * math.sqrt(d_model) + np.stack([np.sin(angles), np.cos(angles)], -1).reshape(-1, d_model)


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize(("norm", "activation"), [("post", "relu"), ("pre", "relu"), ("post", "gelu")])
def test_the_logits_are_those_of_torch_nn_transformer(norm, activation):
    import torch

    config = SMALL.replace(attention_bias=True, norm_epsilon=EPSILON, norm=norm, activation=activation)
    ours = randomise(Transformer(config))
    theirs, matrix = torch_transformer(ours, config), as_numpy(ours.get_layer("embedding").matrix)
    batch = batch_of(ROWS, 6, 7)
    source, target = (torch.tensor(embedded(matrix, batch[f"{side}_ids"]), dtype=torch.float32) for side in SIDES)
    source_padding, target_padding = (torch.tensor(batch[f"{side}_segments"] == 0) for side in SIDES)
    with torch.no_grad():
        states = theirs(
            source,
            target,
            tgt_mask=torch.triu(torch.ones(7, 7, dtype=torch.bool), diagonal=1),
            src_key_padding_mask=source_padding,
            memory_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
        ).numpy()
    is_real = batch["target_segments"] > 0
    assert_close(as_numpy(ours(batch))[is_real], (states @ matrix.T)[is_real], atol=1e-5)


@pytest.mark.slow
@needs_torch
def test_rms_norm_is_that_of_torch():
    import torch

    residual = PreNormResidual(epsilon=EPSILON, norm_kind="rms")
    residual.build(STATES.shape)
    theirs = torch.nn.RMSNorm(D_MODEL, EPSILON)
    copy(randomise(residual).norm.scale, theirs.weight)
    assert_close(residual.sublayer_input(STATES), theirs(torch.tensor(STATES)).detach().numpy())


# keras_hub


def copy_to_keras_hub(block, layer):
    """Their attention keeps heads on an axis of its own: (d_model, H, d_k) and (H, d_v, d_model)."""
    attentions = [(block.self_attention, layer._self_attention_layer)]
    norms = [(block.self_attention_residual, layer._self_attention_layer_norm)]
    if isinstance(block, DecoderBlock):
        attentions.append((block.memory_attention, layer._cross_attention_layer))
        norms.append((block.memory_attention_residual, layer._cross_attention_layer_norm))
    for ours, theirs in attentions:
        for name in ("query", "key", "value", "output"):
            projection, dense = getattr(ours, f"{name}_projection"), getattr(theirs, f"_{name}_dense")
            dense.kernel.assign(as_numpy(projection.kernel).reshape(dense.kernel.shape))
            dense.bias.assign(as_numpy(projection.bias).reshape(dense.bias.shape))
    for residual, norm in [*norms, (block.feed_forward_residual, layer._feedforward_layer_norm)]:
        norm.set_weights(residual.norm.get_weights())
    layer._feedforward_intermediate_dense.set_weights(block.feed_forward.inner.get_weights())
    layer._feedforward_output_dense.set_weights(block.feed_forward.outer.get_weights())


def ours_and_theirs(ours_class, theirs_class, norm, *shapes):
    widths = dict(num_heads=HEADS, key_dim=D_MODEL // HEADS, d_ff=D_FF)
    ours = ours_class(**widths, norm=norm, norm_epsilon=EPSILON, attention_bias=True)
    theirs = theirs_class(D_FF, HEADS, layer_norm_epsilon=EPSILON, normalize_first=norm == "pre")
    ours.build(*shapes)
    theirs.build(*shapes)
    copy_to_keras_hub(randomise(ours), theirs)
    return ours, theirs


STATES, MEMORY = normal(2, 5, D_MODEL), normal(2, 7, D_MODEL, seed=1)
STATES_ARE_REAL = np.arange(5) < np.array([[5], [3]])
MEMORY_IS_REAL = np.arange(7) < np.array([[4], [7]])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_block_is_keras_hubs(norm):
    ours, theirs = ours_and_theirs(EncoderBlock, keras_hub.layers.TransformerEncoder, norm, STATES.shape)
    expected = as_numpy(theirs(STATES, padding_mask=STATES_ARE_REAL))
    mask = np.repeat(STATES_ARE_REAL[:, None], 5, axis=1)
    assert_close(as_numpy(ours(STATES, mask)[0]), expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_block_is_keras_hubs(norm):
    shapes = STATES.shape, MEMORY.shape
    ours, theirs = ours_and_theirs(DecoderBlock, keras_hub.layers.TransformerDecoder, norm, *shapes)
    masks = dict(decoder_padding_mask=STATES_ARE_REAL, encoder_padding_mask=MEMORY_IS_REAL)
    expected = as_numpy(theirs(STATES, MEMORY, **masks))
    self_mask = STATES_ARE_REAL[:, None] & np.tril(np.ones((5, 5), bool))
    found = ours(STATES, MEMORY, self_mask, np.repeat(MEMORY_IS_REAL[:, None], 5, axis=1))[0]
    assert_close(as_numpy(found)[STATES_ARE_REAL], expected[STATES_ARE_REAL], atol=1e-5)
