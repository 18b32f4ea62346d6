"""What is trained: every setting of the training step reaches it."""

import numpy as np
import tensorflow as tf

from keras_transformer.layers import Dropout
from tests.support.training import BATCHES, TINY, tensors, training_model
from train.config.training import TrainingConfig
from train.run import build
from train.step.training_model import compiled
from train.workers.workers import Workers


def test_every_setting_arrives_in_the_training_model():
    training = TrainingConfig(
        seed=7,
        xla=False,
        precision="mixed_bfloat16",
        micro_batches=3,
        warmup_steps=11,
        learning_rate_factor=0.5,
        cooldown_steps=10,
        frozen=["embedding"],
    )
    config = TINY.replace(dropout=0.4, label_smoothing=0.3)
    strategy = tf.distribute.get_strategy()
    model = compiled(build(config, training, Workers(strategy)), training, strategy)
    assert (model.dropout_seed, model.label_smoothing, model.xla, model.micro_batches) == (7, 0.3, False, 3)
    assert {layer.rate for layer in model.layers if isinstance(layer, Dropout)} == {0.4}
    assert model.get_layer("logits" if not config.shared_embeddings else "embedding").compute_dtype == "bfloat16"
    cooldown = model.optimizer.get_config()["learning_rate"]["config"]
    assert cooldown["cooldown_steps"] == 10
    schedule = cooldown["schedule"]["config"]
    assert (schedule["d_model"], schedule["warmup_steps"], schedule["factor"]) == (config.d_model, 11, 0.5)
    is_trained = {weight.path.partition("/")[0]: weight.trainable for weight in model.weights}
    assert {name for name, trains in is_trained.items() if not trains} == {"embedding"}


def test_dropout_acts_in_a_step_and_each_step_has_masks_of_its_own():
    model, batch = training_model(dropout=0.5), tensors(BATCHES.batch(0))
    sums = [model.sums_and_gradients(batch, tf.constant(step), tf.constant(0))[0] for step in (0, 0, 1)]
    first, again, next_step = (float(each.loss) for each in sums)
    assert first == again != next_step


def test_the_first_weights_follow_from_the_seed(caplog):
    caplog.set_level("INFO", "train")
    alone = Workers(tf.distribute.get_strategy())
    trainings = (TrainingConfig(seed=seed, precision="float32") for seed in (1, 1, 2))
    first, same, other = (build(TINY, training, alone).get_weights() for training in trainings)
    for one, two in zip(first, same, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any((one != two).any() for one, two in zip(first, other, strict=True))
    count = sum(weight.size for weight in first)
    assert caplog.messages == [f"{count:,} parameters; training on one CPU, float32"] * 3


# the training step, whose laws on a real model are in test_training_model.py, with stand-ins for the model


def test_a_model_is_ready_for_its_first_step_once_it_is_compiled():
    model = training_model()
    assert (model.wants_to_stop, model.inspects, model.inspected, model.seconds_waiting) == (False, False, None, 0.0)
    assert model.optimizer.built and model.replicas == 1
    scale, weights = model.before_update()
    assert float(scale) == 1.0
    for kept, weight in zip(weights, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(kept, weight.value)
