"""What an inspected step shows of the optimisation: histograms of weights and gradients, and how far weights move.

A layer, here, is a layer of the graph or, in a block, one of its sublayers: "embedding", or
"encoder_block_1/self_attention". Its matrices and biases count together. The scales and shifts of all LayerNorms of a
block stand apart, as "encoder_block_1/norms", because scales are close to 1 and would widen every histogram. So there
are three charts per block of the encoder and four per block of the decoder, not one per vector.
"""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.histogram.metadata import create_summary_metadata
from tensorboard.util.tensor_util import make_tensor_proto

from .training_model import Inspected

BINS = 30


def layer_of(weight_path: str) -> str:
    """Return the layer, as this module counts them, of the weight "layer/weight" or "layer/sublayer/.../weight"."""
    layer, *sublayers = weight_path.split("/")[:-1]
    if not sublayers:
        return layer
    return f"{layer}/norms" if sublayers[0].endswith("_residual") else f"{layer}/{sublayers[0]}"


def weights_of(model: keras.Model) -> list:
    """Return the trainable weights as tensors; if there are several replicas, those of the first."""
    return [tf.convert_to_tensor(weight) for weight in model.trainable_variables]


def by_layer(model: keras.Model, values: Sequence) -> dict[str, list]:
    """Sort values, one per trainable weight of the model, by the layer of that weight."""
    layers = {}
    for weight, value in zip(model.trainable_variables, values, strict=True):
        layers.setdefault(layer_of(weight.path), []).append(value)
    return layers


def update_ratios(model: keras.Model, inspected: Inspected) -> dict[str, float]:
    """Return how far the step moved each layer, relative to its weights: "train/update_ratio/<layer>" -> ratio.

        || weights after - weights before || / || weights before ||

    A layer that does not learn has 0, one that each update replaces has about 1, and one whose weights were all 0 has
    NaN or infinity.
    """
    moves = [new - old for new, old in zip(weights_of(model), inspected.before, strict=True)]
    moved, before = by_layer(model, moves), by_layer(model, inspected.before)
    norm = tf.linalg.global_norm
    return {f"train/update_ratio/{layer}": float(norm(moved[layer]) / norm(before[layer])) for layer in before}


def histograms(model: keras.Model, inspected: Inspected) -> Summary:
    """Return histograms "weights/<layer>", after the update, and "gradients/<layer>", of the mean loss."""
    summary = Summary()
    for kind, values in (("weights", weights_of(model)), ("gradients", inspected.gradients)):
        for layer, tensors in by_layer(model, values).items():
            summary.value.append(histogram(f"{kind}/{layer}", tensors))
    return summary


def histogram(name: str, tensors: Sequence) -> Summary.Value:
    """Return a histogram of all numbers in some tensors, in bins of equal width. NaN and infinity are left out.

    It is counted by TensorFlow, on the device of the tensors: `tensorboard.plugins.histogram.summary_v2.histogram_pb`
    compares every number with every bin, which takes half a gigabyte for the embeddings of the base model.
    """
    values = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
    is_finite = tf.math.is_finite(values)
    if not tf.reduce_all(is_finite):
        values = tf.boolean_mask(values, is_finite)
    return Summary.Value(
        tag=name,
        metadata=create_summary_metadata(display_name=None, description=None),
        tensor=make_tensor_proto(bins(values), dtype=np.float64),
    )


def bins(values) -> np.ndarray:
    """Return rows of (left edge, right edge, count) of numbers of shape (n,), as TensorBoard wants them."""
    if not len(values):
        return np.zeros((BINS, 3))
    least, most = float(tf.reduce_min(values)), float(tf.reduce_max(values))
    if least == most:  # TensorBoard's own form of that
        return np.array([[least, most, 0.0]] * (BINS - 1) + [[least, most, len(values)]])
    counts = tf.histogram_fixed_width(values, [least, most], BINS)
    edges = np.linspace(least, most, BINS + 1)
    return np.stack([edges[:-1], edges[1:], counts.numpy()], axis=1)
