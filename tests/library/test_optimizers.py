"""The paper's optimizer as the library gives it: its constants, its schedule, other kinds of Adam."""

import keras
import numpy as np
import pytest

from keras_transformer.optimizers import paper_optimizer
from keras_transformer.schedules import WarmupInverseSquareRoot
from tests.support.processes import python


def test_the_constants_are_those_of_section_5_3():
    optimizer = paper_optimizer(512)
    assert type(optimizer) is keras.optimizers.Adam
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert not (optimizer.weight_decay or optimizer.clipnorm or optimizer.global_clipnorm or optimizer.use_ema)


def test_its_learning_rate_is_the_papers_with_every_argument():
    schedule = paper_optimizer(256, warmup_steps=100, factor=0.5)._learning_rate
    assert isinstance(schedule, WarmupInverseSquareRoot)
    assert schedule.get_config() == {"d_model": 256, "warmup_steps": 100, "factor": 0.5}
    assert paper_optimizer(512)._learning_rate.get_config() == {"d_model": 512, "warmup_steps": 4000, "factor": 1.0}


def test_the_first_update_uses_the_rate_of_step_1():
    optimizer = paper_optimizer(64, warmup_steps=100)
    variable = keras.Variable([1.0])
    optimizer.build([variable])
    optimizer.apply([keras.ops.convert_to_tensor([3.0])])
    assert float(variable[0]) == pytest.approx(1 - 64**-0.5 * 100**-1.5)  # Adam's first step is the rate itself


def test_another_kind_of_adam_gets_the_same_constants():
    optimizer = paper_optimizer(64, adam=keras.optimizers.AdamW)
    assert type(optimizer) is keras.optimizers.AdamW
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)


def test_an_option_replaces_a_constant_of_the_paper():
    optimizer = paper_optimizer(64, beta_2=0.5, name="other")
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.name) == (0.9, 0.5, "other")


def test_it_comes_back_from_its_config():
    optimizer = paper_optimizer(64, 100, 2.0)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert restored.get_config() == optimizer.get_config()
    assert restored._learning_rate.get_config() == {"d_model": 64, "warmup_steps": 100, "factor": 2.0}


@pytest.mark.parametrize("micro_batches", [2, 4])
def test_accumulated_gradients_make_the_updates_of_their_mean(micro_batches):
    """Updates, and their rates, are those of an optimizer that is given the mean at once."""
    gradients = np.random.default_rng(1).normal(size=(6, micro_batches, 3)).astype("float32")
    accumulated, whole = (keras.Variable(np.ones(3, "float32")) for _ in range(2))
    optimizer = paper_optimizer(64, warmup_steps=3, gradient_accumulation_steps=micro_batches)
    reference = paper_optimizer(64, warmup_steps=3)
    for of_update in gradients:
        for gradient in of_update:
            optimizer.apply([keras.ops.convert_to_tensor(gradient)], [accumulated])
        reference.apply([keras.ops.convert_to_tensor(of_update.mean(0))], [whole])
        np.testing.assert_allclose(accumulated.numpy(), whole.numpy(), rtol=1e-5)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert restored.get_config() == optimizer.get_config()


TWO_REPLICAS = """
import tensorflow as tf
devices = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_transformer.optimizers import paper_optimizer

with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    paper_optimizer(8)
    try:
        paper_optimizer(8, gradient_accumulation_steps=4)
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
def test_gradients_are_not_accumulated_on_several_replicas():
    process = python("-c", TWO_REPLICAS)
    assert "gradient_accumulation_steps is 4, and " in process.stdout and "here are 2." in process.stdout, (
        process.stderr
    )
