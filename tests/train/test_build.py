"""What is trained: every setting of the training step reaches it."""

import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers import Dropout
from tests.support.training import BATCHES, TINY, tensors, training_model
from train.config.training import TrainingConfig
from train.step.build import build, compiled
from train.step.training_model import TrainingModel


def test_every_setting_arrives_in_the_training_model():
    training = TrainingConfig(
        seed=7, xla=False, precision="mixed_bfloat16", micro_batches=3, warmup_steps=11, learning_rate_factor=0.5,
        cooldown_steps=10, frozen=["embedding"],
    )  # fmt: skip
    config = TINY.replace(dropout=0.4, label_smoothing=0.3)
    strategy = tf.distribute.get_strategy()
    model = compiled(build(config, training, strategy), training, strategy)
    assert (model.dropout_seed, model.label_smoothing, model.xla, model.micro_batches) == (7, 0.3, False, 3)
    assert {layer.rate for layer in model.layers if isinstance(layer, Dropout)} == {0.4}
    assert model.get_layer("logits" if not config.shared_embeddings else "embedding").compute_dtype == "bfloat16"
    cooldown = model.optimizer.get_config()["learning_rate"]["config"]
    assert cooldown["cooldown_steps"] == 10
    schedule = cooldown["schedule"]["config"]
    assert (schedule["d_model"], schedule["warmup_steps"], schedule["factor"]) == (config.d_model, 11, 0.5)
    is_trained = {weight.path.partition("/")[0]: weight.trainable for weight in model.weights}
    assert {name for name, trains in is_trained.items() if not trains} == {"embedding"}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("xla", [True, False])
def test_xla_compiles_forward_and_backward_pass_and_on_one_replica_the_update(monkeypatch, xla, replicas):
    compiled = {}
    monkeypatch.setattr(tf, "function", lambda step, jit_compile=None: compiled.setdefault(step, jit_compile))
    step = types.SimpleNamespace(
        train_function=None, xla=xla, replicas=replicas, sums_and_gradients="sums and gradients", update="update",
        step_of_replicas="step", train_on_next_batch="train",
    )  # fmt: skip
    assert TrainingModel.make_train_function(step) == "train"
    assert compiled == {"sums and gradients": xla, "step": None} | ({"update": xla} if replicas == 1 else {})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_micro_batches_are_equal_parts_of_the_rows_in_order(count):
    batch = {"source_ids": tf.reshape(tf.range(24), (4, 6)), "labels": tf.reshape(tf.range(12), (4, 3))}
    parts = TrainingModel.split(types.SimpleNamespace(micro_batches=count), batch)
    assert [part["labels"].shape for part in parts] == [(4 // count, 3)] * count
    for name, ids in batch.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), ids)


def test_dropout_acts_in_a_step_and_each_step_has_masks_of_its_own():
    model, batch = training_model(dropout=0.5), tensors(BATCHES.batch(0))
    sums = [model.sums_and_gradients(batch, tf.constant(step), tf.constant(0))[0] for step in (0, 0, 1)]
    first, again, next_step = (float(each.loss) for each in sums)
    assert first == again != next_step


def test_the_first_weights_follow_from_the_seed(caplog):
    caplog.set_level("INFO", "train")
    first, same, other = (
        build(TINY, TrainingConfig(seed=seed), tf.distribute.get_strategy()).get_weights() for seed in (1, 1, 2)
    )
    for one, two in zip(first, same, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any((one != two).any() for one, two in zip(first, other, strict=True))
    count = sum(weight.size for weight in first)
    assert caplog.messages == [f"{count:,} parameters; training on one CPU, float32"] * 3
