"""A model of keras-hub's layers, trained with plain `compile` and `fit`, as its guides do."""

from collections.abc import Callable

import keras
import keras_hub
import tensorflow as tf
from keras import ops

from benchmarks.speed.contestants import Contestant, Lane
from benchmarks.speed.contestants.workload import BETA_1, BETA_2, EPSILON, Workload, blocks
from keras_transformer.config import TransformerConfig
from keras_transformer.schedules import WarmupInverseSquareRoot

INPUTS = "source_ids", "source_segments", "target_ids", "target_segments"


def prepare(workload: Workload) -> Contestant:
    """One lane. `jit_compile` stays at its default "auto", which means no XLA on a CPU."""
    model = connect(workload.config)
    load(model, workload)
    schedule = WarmupInverseSquareRoot(workload.config.d_model, workload.warmup_steps)
    model.compile(
        optimizer=keras.optimizers.Adam(schedule, beta_1=BETA_1, beta_2=BETA_2, epsilon=EPSILON),
        loss=SmoothedCrossEntropy(workload.config),
    )
    batch = workload.batch()
    data = {name: batch[name] for name in INPUTS}, batch["labels"], (batch["target_segments"] > 0).astype("float32")
    dataset = tf.data.Dataset.from_tensors(data)
    loss = model.evaluate(dataset, verbose=0)
    lanes = {"keras_hub": Lane(trainer(model, dataset.repeat()), workload.tokens)}
    return Contestant(lanes, model.count_params(), loss)


def connect(config: TransformerConfig) -> keras.Model:
    """The workload's model, with biases in its attention projections and dropout on attention weights, as shipped."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS}
    embedding = keras_hub.layers.ReversibleEmbedding(config.vocab_size, config.d_model, name="embedding")
    is_real = {side: ops.not_equal(inputs[f"{side}_segments"], 0) for side in ("source", "target")}
    options = {"dropout": config.dropout, "layer_norm_epsilon": config.norm_epsilon}
    memory = embedded(embedding, inputs["source_ids"], config)
    for number in range(1, config.encoder_layers + 1):
        block = keras_hub.layers.TransformerEncoder(
            config.d_ff, config.num_heads, **options, name=f"encoder_block_{number}"
        )
        memory = block(memory, padding_mask=is_real["source"])
    states = embedded(embedding, inputs["target_ids"], config)
    for number in range(1, config.decoder_layers + 1):
        block = keras_hub.layers.TransformerDecoder(
            config.d_ff, config.num_heads, **options, name=f"decoder_block_{number}"
        )
        masks = {"decoder_padding_mask": is_real["target"], "encoder_padding_mask": is_real["source"]}
        states = block(states, memory, **masks)
    return keras.Model(inputs, embedding(states, reverse=True))


def embedded(embedding: keras.layers.Layer, ids, config: TransformerConfig):
    states = embedding(ids) * config.d_model**0.5
    states = states + keras_hub.layers.SinePositionEncoding()(states)
    return keras.layers.Dropout(config.dropout)(states)


class SmoothedCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, averaged over tokens of weight 1. Keras smooths only labels that are one-hot."""

    def __init__(self, config: TransformerConfig):
        super().__init__(reduction="mean_with_sample_weight")
        self.config = config

    def call(self, labels, logits):
        one_hot, smoothing = ops.one_hot(labels, self.config.vocab_size), self.config.label_smoothing
        return keras.losses.categorical_crossentropy(one_hot, logits, from_logits=True, label_smoothing=smoothing)


def trainer(model: keras.Model, dataset: tf.data.Dataset) -> Callable[[int], float]:
    """A function that trains for a number of steps and returns their mean loss, as `fit` reports it."""

    def run(steps: int) -> float:
        return model.fit(dataset, steps_per_epoch=steps, shuffle=False, verbose=0).history["loss"][-1]

    return run


def load(model: keras.Model, workload: Workload) -> None:
    weights = workload.weights()
    model.get_layer("embedding").embeddings.assign(weights["embedding"])
    for name, attentions in blocks(workload.config):
        block = model.get_layer(name)
        for attention, theirs in zip(attentions, ("_self_attention_layer", "_cross_attention_layer"), strict=False):
            for projection in ("query", "key", "value", "output"):
                kernel = getattr(getattr(block, theirs), f"_{projection}_dense").kernel
                kernel.assign(weights[f"{name}.{attention}.{projection}"].reshape(kernel.shape))
        block._feedforward_intermediate_dense.kernel.assign(weights[f"{name}.inner"])
        block._feedforward_output_dense.kernel.assign(weights[f"{name}.outer"])
