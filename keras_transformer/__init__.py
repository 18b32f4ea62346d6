"""The Transformer of "Attention Is All You Need" in Keras 3: what a script imports.

    import keras_transformer as kt

    transformer = kt.Transformer(kt.preset("tiny"))
    transformer.compile(kt.paper_optimizer(d_model=128), loss=kt.LabelSmoothedCrossentropy())

Names are imported when they are first used (PEP 562): importing the package imports neither Keras nor TensorFlow. If
Keras is imported already, all classes are registered with it, so that `keras.models.load_model` finds them:

    import keras
    import keras_transformer

    transformer = keras.models.load_model("m.keras")
"""

# ruff: noqa: F401
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names once more, for editors and type checkers
    from keras_transformer.config import PRESETS, TransformerConfig, preset
    from keras_transformer.ground.errors import ConfigError, UserError
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
    from keras_transformer.layers.masking import CausalSegmentMask, PositionsInSegment, SegmentMask
    from keras_transformer.layers.normalization import PostNormResidual, PreNormResidual
    from keras_transformer.layers.restricted_attention import RestrictedSelfAttention
    from keras_transformer.layers.ssru import SSRU, SSRUDecoderBlock
    from keras_transformer.layers.sublayer_block import SublayerBlock
    from keras_transformer.lite.translator import LiteTranslator
    from keras_transformer.losses import LabelSmoothedCrossentropy, token_losses
    from keras_transformer.masks import (
        causal_mask,
        causal_segment_mask,
        neighbourhood_mask,
        positions_in_segment,
        segment_mask,
    )
    from keras_transformer.metrics import Perplexity, TokenAccuracy
    from keras_transformer.model import Transformer, encoder
    from keras_transformer.optimizers import paper_optimizer
    from keras_transformer.pieces.datasets import dataset_from_pairs
    from keras_transformer.pieces.pair_tokenizer import PairTokenizer, open_tokenizer
    from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, train_tokenizer
    from keras_transformer.pieces.translation import Translation
    from keras_transformer.recurrent.config import RecurrentConfig
    from keras_transformer.recurrent.model import RecurrentModel
    from keras_transformer.runs.inference import Inference
    from keras_transformer.runs.kinds import with_attention
    from keras_transformer.runs.saved_run import load_run, save_run
    from keras_transformer.schedules import ConstantRate, LinearCooldown, RatePerUpdate, WarmupInverseSquareRoot
    from keras_transformer.search.options import SearchOptions
    from keras_transformer.text.glossary import Glossary, Term
    from keras_transformer.text.spans import Protection
    from keras_transformer.translation.minimum_bayes_risk import MinimumBayesRisk
    from keras_transformer.translation.pipeline import pipeline
    from keras_transformer.translation.translator import Translator

NAMES_OF = {
    "config": ("PRESETS", "TransformerConfig", "preset"),
    "pieces.datasets": ("dataset_from_pairs",),
    "search.options": ("SearchOptions",),
    "ground.errors": ("ConfigError", "UserError"),
    "runs.inference": ("Inference",),
    "runs.kinds": ("with_attention",),
    "layers.attention": ("MultiHeadAttention", "scaled_dot_product_attention"),
    "layers.blocks": ("DecoderBlock", "EncoderBlock"),
    "layers.convolution": ("SegmentConvolution",),
    "layers.dropout": ("Dropout",),
    "layers.embedding": ("LearnedPositions", "SinusoidalPositions", "TokenEmbedding", "sinusoidal_encoding"),
    "layers.feed_forward": ("FeedForward",),
    "layers.masking": ("CausalSegmentMask", "PositionsInSegment", "SegmentMask"),
    "layers.normalization": ("PostNormResidual", "PreNormResidual"),
    "layers.restricted_attention": ("RestrictedSelfAttention",),
    "layers.ssru": ("SSRU", "SSRUDecoderBlock"),
    "layers.sublayer_block": ("SublayerBlock",),
    "lite.translator": ("LiteTranslator",),
    "losses": ("LabelSmoothedCrossentropy", "token_losses"),
    "masks": ("causal_mask", "causal_segment_mask", "neighbourhood_mask", "positions_in_segment", "segment_mask"),
    "metrics": ("Perplexity", "TokenAccuracy"),
    "model": ("Transformer", "encoder"),
    "optimizers": ("paper_optimizer",),
    "pieces.pair_tokenizer": ("PairTokenizer", "open_tokenizer"),
    "recurrent.config": ("RecurrentConfig",),
    "recurrent.model": ("RecurrentModel",),
    "runs.saved_run": ("load_run", "save_run"),
    "schedules": ("ConstantRate", "LinearCooldown", "RatePerUpdate", "WarmupInverseSquareRoot"),
    "text.glossary": ("Glossary", "Term"),
    "text.spans": ("Protection",),
    "pieces.tokenizer": ("Tokenizer", "TokenizerError", "train_tokenizer"),
    "pieces.translation": ("Translation",),
    "translation.minimum_bayes_risk": ("MinimumBayesRisk",),
    "translation.pipeline": ("pipeline",),
    "translation.translator": ("Translator",),
}  # module -> what it gives
MODULE_OF = {name: module for module, names in NAMES_OF.items() for name in names}

__all__ = sorted(MODULE_OF)


REGISTERED = (
    "layers",
    "losses",
    "metrics",
    "model",
    "recurrent.model",
    "schedules",
)  # modules with classes that Keras saves and loads


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module(f"{__name__}.ground.version").version()
    if name not in MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    globals()[name] = value  # asked for once
    _register_if_keras_is_imported()
    return value


def __dir__() -> list[str]:
    return [*{*globals(), *__all__}]


def _register_if_keras_is_imported() -> None:
    """Import every module whose classes register themselves with Keras, which imports none of them on its own."""
    if "keras" in sys.modules:
        for module in REGISTERED:
            importlib.import_module(f"{__name__}.{module}")
        model = importlib.import_module("keras_transformer.translation_model")
        model.TranslationModel.presets = staticmethod(_presets)


def _presets() -> ModuleType:
    """Import what opens presets of every kind of model, when a model is first asked for one."""
    return importlib.import_module("keras_transformer.models.presets")


_register_if_keras_is_imported()
