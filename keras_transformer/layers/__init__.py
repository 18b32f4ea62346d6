"""The layers of the Transformer, each registered with Keras under the name "keras_transformer"."""

from keras_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.layers.blocks import DecoderBlock, EncoderBlock
from keras_transformer.layers.convolution import SegmentConvolution
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import (
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
    sinusoidal_encoding,
)
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.normalization import PostNormResidual, PreNormResidual
from keras_transformer.layers.positions import AlibiPositions, RelativePositions, RotaryPositions
from keras_transformer.layers.restricted_attention import RestrictedSelfAttention
from keras_transformer.layers.ssru import SSRU, SSRUDecoderBlock
from keras_transformer.layers.sublayer_block import SublayerBlock

__all__ = [
    "SSRU",
    "AlibiPositions",
    "DecoderBlock",
    "Dropout",
    "EncoderBlock",
    "FeedForward",
    "LearnedPositions",
    "MultiHeadAttention",
    "PostNormResidual",
    "PreNormResidual",
    "RelativePositions",
    "RestrictedSelfAttention",
    "RotaryPositions",
    "SSRUDecoderBlock",
    "SegmentConvolution",
    "SinusoidalPositions",
    "SublayerBlock",
    "TokenEmbedding",
    "scaled_dot_product_attention",
    "sinusoidal_encoding",
]
