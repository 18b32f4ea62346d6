"""Every layer of the library with arguments that are not its defaults, and what it is called with."""

import keras
import numpy as np
import pytest

import keras_transformer.layers as layers
from keras_transformer.layers import masking, shift
from keras_transformer.layers.cells import GRUCell, LSTMCell
from keras_transformer.layers.recurrent import FinalStates, Recurrent
from keras_transformer.recurrent.attention import AdditiveAttention, DotAttention, GeneralAttention
from keras_transformer.recurrent.decoder import RecurrentDecoder
from tests.support.models import normal

STATES, MEMORY = normal(2, 4, 8), normal(2, 5, 6, seed=1)
IDS, SEGMENTS = np.array([[1, 2, 3, 0], [4, 0, 0, 0]], "int32"), np.array([[1, 1, 2, 0], [1, 0, 0, 0]], "int32")
SELF_MASK = np.tril(np.ones((2, 4, 4), bool))

BLOCK = dict(d_ff=12, activation="gelu", dropout=0.2, norm="pre", norm_kind="rms", norm_epsilon=1e-3)
HEADS = dict(num_heads=2, key_dim=3, value_dim=5, scale_scores=False)
ATTENTION_BLOCK = {**BLOCK, **HEADS, "attention_bias": True}

EXAMPLES = {
    "attention": (
        layers.MultiHeadAttention,
        {**HEADS, "use_bias": True},
        (STATES, MEMORY),
    ),
    "token embedding": (
        layers.TokenEmbedding,
        dict(vocab_size=6, d_model=8, use_bias=True, starts_with="eos"),
        (IDS,),
    ),
    "sinusoids": (layers.SinusoidalPositions, dict(sinusoids="tensor2tensor", first_position=2), (STATES, IDS)),
    "learned positions": (layers.LearnedPositions, dict(max_positions=5), (STATES, IDS)),
    "rotary positions": (layers.RotaryPositions, dict(d_k=6), (SEGMENTS,)),
    "relative positions": (
        layers.RelativePositions,
        dict(num_heads=2, relative_buckets=8, relative_distance=6, bidirectional=False),
        (SEGMENTS,),
    ),
    "ALiBi": (layers.AlibiPositions, dict(num_heads=2), (SEGMENTS,)),
    "feed-forward": (layers.FeedForward, dict(d_ff=12, activation="gelu"), (STATES,)),
    "dropout": (layers.Dropout, dict(rate=0.3, seed=5), (STATES,)),
    "encoder block": (layers.EncoderBlock, ATTENTION_BLOCK, (STATES, SELF_MASK)),
    "decoder block": (
        layers.DecoderBlock,
        ATTENTION_BLOCK | {"norm": "post", "norm_kind": "layer"},
        (STATES, MEMORY, SELF_MASK),
    ),
    "convolution": (layers.SegmentConvolution, dict(kernel_size=5, dilation=2), (STATES, SEGMENTS)),
    "restricted attention": (
        layers.RestrictedSelfAttention,
        {**HEADS, "use_bias": True, "neighbourhood": 3},
        (STATES, SEGMENTS),
    ),
    "sublayer block": (
        layers.SublayerBlock,
        {**BLOCK, "sublayer": keras.saving.serialize_keras_object(layers.SegmentConvolution(3))},
        (STATES, SEGMENTS),
    ),
    "SSRU": (layers.SSRU, {}, (STATES, SEGMENTS)),
    "SSRU decoder block": (layers.SSRUDecoderBlock, ATTENTION_BLOCK, (STATES, MEMORY, SEGMENTS)),
    "segment mask": (masking.SegmentMask, {}, (SEGMENTS, SEGMENTS)),
    "causal segment mask": (masking.CausalSegmentMask, {}, (SEGMENTS,)),
    "positions in segment": (masking.PositionsInSegment, {}, (SEGMENTS,)),
    "shifted positions": (shift.ShiftedPositions, dict(most=9, seed=3), (SEGMENTS, SEGMENTS)),
    "GRU cell": (GRUCell, dict(units=3), (STATES[0], normal(4, 3))),
    "LSTM cell": (LSTMCell, dict(units=3), (STATES[0], normal(4, 3), normal(4, 3))),
    "recurrent": (Recurrent, dict(units=3, cell="lstm", direction="both"), (STATES, SEGMENTS)),
    "final states": (FinalStates, dict(direction="backward"), (STATES, SEGMENTS, SEGMENTS)),
    "dot attention": (DotAttention, {}, (STATES, STATES)),
    "general attention": (GeneralAttention, {}, (STATES, MEMORY)),
    "additive attention": (AdditiveAttention, dict(units=3), (STATES, MEMORY)),
    "recurrent decoder": (
        RecurrentDecoder,
        dict(units=3, cell="lstm", layers=2, attention="additive", input_feeding=False, dropout=0.2),
        (normal(2, 4, 3), SEGMENTS, normal(2, 5, 3), SEGMENTS[:, [0, 1, 2, 3, 3]], [normal(2, 4, 3)] * 4),
    ),
}
every_layer = pytest.mark.parametrize(("layer_class", "arguments", "inputs"), EXAMPLES.values(), ids=EXAMPLES.keys())


def symbolic(array):
    """An input like this array, whose batch and lengths are unknown and whose width, of floats, is known."""
    width = array.shape[-1] if array.dtype == "float32" else None
    return keras.Input((*[None] * (array.ndim - 2), width), dtype=array.dtype.name)


def functional(layer, inputs):
    """A model of this one layer."""
    inputs = keras.tree.map_structure(symbolic, list(inputs))
    return keras.Model(inputs, layer(*inputs))


def outputs(layer, inputs):
    """What a layer gives for these inputs, as a flat list."""
    return keras.tree.flatten(layer(*inputs))
