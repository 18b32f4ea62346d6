"""LoRA: low-rank adapters that are trained in place of the weights of a model (Hu et al. 2021)."""

import operator
from collections.abc import Callable, Iterator, Sequence

import keras

from keras_transformer.layers import TokenEmbedding
from keras_transformer.layers.attention import AttentionHeads
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.normalization import NORM_KINDS

from ..config.lora import lora_names
from ..config.training import TrainingConfig

OF_ATTENTION: dict[str, Callable[[AttentionHeads], keras.layers.Dense]] = {
    name: operator.attrgetter(f"{name}_projection") for name in ("query", "key", "value", "output")
}


def adapt(model: keras.Model, training: TrainingConfig) -> None:
    """Leave all weights as they are but what LoRA adds; call it before the optimizer is built. Nothing without LoRA.

    Of a kernel W (inputs, outputs) the layer then computes with

        W + (alpha / r) A B         A (inputs, r)   B (r, outputs)

    (equation 3, whose matrices are transposed, as W here is). A begins random, by `training.seed`, and B with 0, so
    that the model begins as it was. Keras keeps both (`enable_lora`), and saves their sum in the file of weights.
    A model that has adapters already keeps them.
    """
    names = lora_names(training)
    if not names:
        return
    keras.utils.set_random_seed(training.seed)
    for weight in model.weights:
        weight.trainable = False
    for layer in matrices_of(model, names):
        if not layer.lora_enabled:
            layer.enable_lora(training.lora_rank, training.lora_alpha)
        layer.lora_kernel_a.trainable = layer.lora_kernel_b.trainable = True
    for name, weights_of in AS_THEY_ARE.items():
        for weight in weights_of(model) if name in names else ():
            weight.trainable = True


def matrices_of(model: keras.Model, names: Sequence[str]) -> Iterator[keras.layers.Dense]:
    """The layers of a model that hold the matrices of these names, which are those of `training.lora_matrices`."""
    for layer in model._flatten_layers():
        if isinstance(layer, AttentionHeads):
            yield from (projection_of(layer) for name, projection_of in OF_ATTENTION.items() if name in names)
        elif isinstance(layer, FeedForward) and "ffn" in names:
            yield from filter(None, (layer.inner, layer.linear, layer.outer))


def of_norms(model: keras.Model) -> Iterator[keras.Variable]:
    """The weights of the norms of a model, of every block and of its ends."""
    kinds = tuple(kind.layer for kind in NORM_KINDS.values())
    for layer in model._flatten_layers():
        if isinstance(layer, kinds):
            yield from layer.weights


def of_embeddings(model: keras.Model) -> Iterator[keras.Variable]:
    """What embeds tokens and scores them: matrices, and the biases of logits that training changes."""
    for layer in model._flatten_layers():
        if isinstance(layer, TokenEmbedding):
            yield layer.matrix
            if layer.bias is not None and layer.starts_with == "bos":
                yield layer.bias


AS_THEY_ARE = {"norms": of_norms, "embeddings": of_embeddings}


def has_adapters(model: keras.Model) -> bool:
    """Whether a model has adapters, which alone its checkpoints hold."""
    return any(getattr(layer, "lora_enabled", False) for layer in model._flatten_layers())
