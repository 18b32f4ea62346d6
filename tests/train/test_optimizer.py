"""Adam with the paper's constants, one update of it by hand, and what float16 adds."""

import keras
import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from tests.support.models import as_numpy, assert_close, normal
from train.config.training import OF_SCHEDULE, TrainingConfig, check_idle_keys
from train.step.optimizer import training_optimizer

SCHEDULES = sorted({schedule for schedules in OF_SCHEDULE.values() for schedule in schedules})
TRAINING = TrainingConfig(warmup_steps=100, learning_rate_factor=0.5)


def built(training=TRAINING):
    """A variable of three numbers and its optimizer."""
    variable = keras.Variable(normal(3), name="weight")
    optimizer = training_optimizer(64, training)
    optimizer.build([variable])
    return variable, optimizer


def test_the_constants_are_the_papers():
    _, optimizer = built()
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert not (optimizer.weight_decay or optimizer.clipnorm or optimizer.global_clipnorm or optimizer.use_ema)
    assert optimizer._learning_rate.get_config() == {"d_model": 64, "warmup_steps": 100, "factor": 0.5}


def test_updates_follow_the_equations_of_adam():
    variable, optimizer = built()
    expected, mean, square = as_numpy(variable), 0.0, 0.0
    for step in (1, 2, 3):
        gradient = normal(3, seed=step)
        optimizer.apply([keras.ops.convert_to_tensor(gradient)])
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.98 * square + 0.02 * gradient**2
        rate = 0.5 * 64**-0.5 * step * 100**-1.5
        expected = expected - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.98**step)) + 1e-9)
        assert_close(variable, expected, atol=1e-7)


def test_the_first_update_moves_every_weight_by_the_rate_against_its_gradients_sign():
    variable, optimizer = built()
    before = as_numpy(variable)
    optimizer.apply([keras.ops.convert_to_tensor(np.array([3.0, -0.001, 40.0], "float32"))])
    assert_close(as_numpy(variable) - before, 0.5 * 64**-0.5 * 100**-1.5 * np.array([-1, 1, -1]), atol=1e-8, rtol=1e-3)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_the_moving_average_follows_its_equation_and_no_update_that_overflows(precision):
    variable, optimizer = built(TRAINING.model_copy(update={"ema_decay": 0.15, "precision": precision}))
    adam = getattr(optimizer, "inner_optimizer", optimizer)
    expected = as_numpy(variable)
    assert_close(adam.averages[0], expected)
    for step, decay in enumerate([0.1, 0.15, 0.15]):  # (1 + t) / (10 + t) is 0.1, 0.18, 0.25
        optimizer.apply([optimizer.scale_loss(normal(3, seed=step))])
        expected = decay * expected + (1 - decay) * as_numpy(variable)
        assert_close(adam.averages[0], expected, atol=1e-7)
    if precision == "mixed_float16":
        optimizer.apply([keras.ops.convert_to_tensor(np.array([1.0, np.inf, 0.0], "float32"))])
        assert_close(adam.averages[0], expected, atol=1e-7)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_limit_to_the_norm_scales_all_gradients_together(precision):
    """A gradient (3, 4) has the norm 5, so a limit of 1 leaves a fifth of it; one of norm 0.5 stays as it is."""
    for factor, expected in ((1.0, [0.6, 0.8]), (0.1, [0.3, 0.4])):
        optimizer = training_optimizer(64, TRAINING.model_copy(update={"clip_norm": 1.0, "precision": precision}))
        variables = [keras.Variable(np.zeros(1, "float32")) for _ in range(2)]
        optimizer.build(variables)
        optimizer.apply([optimizer.scale_loss(np.array([part * factor], "float32")) for part in (3.0, 4.0)])
        adam = getattr(optimizer, "inner_optimizer", optimizer)
        assert_close([as_numpy(moment)[0] for moment in adam._momentums], 0.1 * np.array(expected), atol=1e-6)


@pytest.mark.parametrize("schedule", ["paper", "constant"])
def test_the_last_updates_of_a_training_may_cool_down(schedule):
    """The first two of four updates have the rate that they have without a cool-down; then it is 1 and 1/2 of it."""
    training = TRAINING.model_copy(update={"schedule": schedule, "steps": 4})
    _, plain = built(training)
    _, cooled = built(training.model_copy(update={"cooldown_steps": 2}))
    ratios = [float(cooled._learning_rate(step) / plain._learning_rate(step)) for step in range(5)]
    assert ratios == pytest.approx([1, 1, 1, 0.5, 0])


def test_plain_adam_has_a_constant_rate_and_its_own_constants():
    changes = {"schedule": "constant", "learning_rate": 0.25}
    variable, optimizer = built(TRAINING.model_copy(update=changes))
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.999, 1e-8)
    before = as_numpy(variable)
    for step in (1, 2):
        optimizer.apply([keras.ops.convert_to_tensor(np.array([3.0, -0.1, 40.0], "float32"))])
        assert_close(before - as_numpy(variable), step * 0.25 * np.array([1, -1, 1]), atol=1e-5)
    assert float(optimizer.learning_rate) == 0.25
    assert len(optimizer.variables) == 3  # updates and two moments, as with the paper's schedule


def test_without_a_decay_there_is_no_average():
    _, optimizer = built()
    assert len(optimizer.variables) == 3  # updates and two moments


def test_the_average_of_the_first_updates_is_mostly_of_the_newest_weights():
    """Its decay is (1 + n) / (10 + n) after n updates, until that is more than the one that was asked for."""
    changes = {"ema_decay": 0.185, "schedule": "constant", "learning_rate": 0.25}
    variable, optimizer = built(TRAINING.model_copy(update=changes))
    optimizer.build([variable])  # once more, which changes nothing
    assert len(optimizer.variables) == 4  # updates, two moments and the average
    expected = as_numpy(variable)
    for decay in (1 / 10, 2 / 11, 0.185):  # 3 / 12 is more
        optimizer.apply([keras.ops.convert_to_tensor(np.array([3.0, -0.1, 40.0], "float32"))])
        expected = decay * expected + (1 - decay) * as_numpy(variable)
        assert_close(optimizer.averages[0], expected, atol=1e-7)


@pytest.mark.parametrize("ema_decay", [None, 0.99])
def test_it_comes_back_from_its_config(ema_decay):
    _, optimizer = built(TRAINING.model_copy(update={"ema_decay": ema_decay}))
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert type(restored) is type(optimizer)
    assert restored.get_config() == optimizer.get_config() and restored.ema_decay == ema_decay


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_only_float16_scales_the_loss(precision):
    _, optimizer = built(TRAINING.model_copy(update={"precision": precision}))
    assert float(optimizer.scale_loss(3.0)) == 3.0


@pytest.mark.parametrize(("tokens_per_batch", "scale"), [(4096, 4.0), (25_000, 1.0), (100_000, 0.25)])
def test_float16_begins_with_a_scale_that_suits_a_sum_over_the_tokens_of_a_batch(tokens_per_batch, scale):
    changes = {"precision": "mixed_float16", "tokens_per_batch": tokens_per_batch}
    _, optimizer = built(TRAINING.model_copy(update=changes))
    assert float(optimizer.scale_loss(1.0)) == scale
    assert scale * tokens_per_batch == pytest.approx(2**15, rel=0.5)  # what Keras begins with for a mean


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_every_optimizer_of_a_process_has_the_same_names_in_checkpoints(precision):
    """As the second one has, of a run whose micro-batches are found by trial."""
    first, second = (built(TRAINING.model_copy(update={"precision": precision}))[1] for _ in range(2))
    assert [one.path for one in first.variables] == [one.path for one in second.variables]


def test_float16_divides_by_the_scale_before_the_update():
    gradient = normal(3, seed=1)
    half, half_optimizer = built(TRAINING.model_copy(update={"precision": "mixed_float16"}))
    whole, optimizer = built()
    half_optimizer.apply([half_optimizer.scale_loss(gradient)])
    optimizer.apply([keras.ops.convert_to_tensor(gradient)])
    assert_close(half, whole)


def test_float16_skips_an_update_that_overflows_and_halves_the_scale():
    variable, optimizer = built(TRAINING.model_copy(update={"precision": "mixed_float16"}))
    before, scale = as_numpy(variable), float(optimizer.scale_loss(1.0))
    optimizer.apply([keras.ops.convert_to_tensor(np.array([1.0, np.inf, 0.0], "float32"))])
    assert_close(variable, before)
    assert float(optimizer.scale_loss(1.0)) == scale / 2
    assert int(optimizer.iterations) == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("key", OF_SCHEDULE)
def test_a_key_of_another_schedule_is_refused(key, schedule):
    check_idle_keys(TrainingConfig(schedule=schedule))
    training = TrainingConfig(schedule=schedule, **{key: 7 if key.endswith("steps") else 7.0})
    if schedule in OF_SCHEDULE[key]:
        check_idle_keys(training)
        return
    with pytest.raises(
        ConfigError, match=f"training.{key} is 7.* belongs to schedule .*training.schedule is .{schedule}"
    ):
        check_idle_keys(training)


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ({"schedule": "warmup"}, [0.25, 0.5, 0.5, 0.5, 0.5, 0.5]),
        ({"schedule": "warmup", "cooldown_steps": 2}, [0.25, 0.5, 0.5, 0.5, 0.25, 0]),
        ({"schedule": "cosine", "steps": 6}, [0.25, 0.5, 0.5, 0.5 * (2 + 2**0.5) / 4, 0.25, 0.5 * (2 - 2**0.5) / 4, 0]),
    ],
)
def test_a_rate_warms_up_and_stays_or_falls_as_half_a_cosine(changes, rates):
    _, optimizer = built(TrainingConfig(**{"learning_rate": 0.5, "warmup_steps": 2, "steps": 5, **changes}))
    assert [float(optimizer._learning_rate(done)) for done in range(len(rates))] == pytest.approx(rates, abs=1e-7)


def test_a_cosine_has_a_warm_up_that_ends_before_it():
    with pytest.raises(ValueError, match="warmup_steps 5 is not less than steps 5"):
        TrainingConfig(schedule="cosine", steps=5, warmup_steps=5)
