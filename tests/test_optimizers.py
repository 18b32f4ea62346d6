"""The paper's optimizer as the library gives it: its constants, its schedule, other kinds of Adam."""

import keras
import pytest

from keras_transformer.optimizers import paper_optimizer
from keras_transformer.schedules import WarmupInverseSquareRoot


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


def test_it_comes_back_from_its_config():
    optimizer = paper_optimizer(64, 100, 2.0)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert restored.get_config() == optimizer.get_config()
    assert restored._learning_rate.get_config() == {"d_model": 64, "warmup_steps": 100, "factor": 2.0}
