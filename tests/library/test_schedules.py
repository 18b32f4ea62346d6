"""The paper's learning rate (section 5.3, eq. 3): its peak, its two halves, the + 1, and its way through a file."""

import keras
import pytest

from keras_transformer.schedules import (
    ConstantRate,
    LinearCooldown,
    LinearWarmup,
    RatePerUpdate,
    WarmupCosine,
    WarmupInverseSquareRoot,
)

BASE = WarmupInverseSquareRoot(512, 4000)


def rate(step, schedule=BASE):
    """Of update `step` as the paper counts, from 1; Keras asks with the number of updates done."""
    return float(schedule(step - 1))


def test_for_512_and_4000_the_peak_is_6_99e_4_at_step_4000():
    assert rate(4000) == pytest.approx(6.99e-4, abs=5e-7)
    assert rate(4000) == max(map(rate, (1, 3999, 4000, 4001, 100_000)))


def test_the_rate_rises_in_equal_steps_from_the_first_update_on():
    first = 512**-0.5 * 4000**-1.5
    for step in (1, 2, 10, 1000, 4000):
        assert rate(step) == pytest.approx(step * first)


def test_after_warm_up_four_times_the_steps_halve_the_rate():
    for step in (4000, 10_000, 100_000):
        assert rate(4 * step) == pytest.approx(rate(step) / 2)


def test_keras_first_update_number_0_is_the_papers_step_1():
    assert float(BASE(0)) == pytest.approx(512**-0.5 * 1 * 4000**-1.5)


def test_at_the_end_of_warm_up_both_halves_agree():
    assert rate(100, WarmupInverseSquareRoot(64, 100)) == pytest.approx(64**-0.5 * 100**-0.5) == 1 / 80


def test_the_factor_scales_the_whole_curve():
    twice = WarmupInverseSquareRoot(512, 4000, factor=2.0)
    for step in (1, 4000, 50_000):
        assert rate(step, twice) == pytest.approx(2 * rate(step))


def test_without_warm_up_to_speak_of_it_only_falls():
    falling = [rate(step, WarmupInverseSquareRoot(512, 1)) for step in range(1, 6)]
    assert falling == sorted(falling, reverse=True)


def test_it_comes_back_from_its_config():
    schedule = WarmupInverseSquareRoot(256, 1000, 0.8)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert isinstance(restored, WarmupInverseSquareRoot)
    assert restored.get_config() == schedule.get_config() == {"d_model": 256, "warmup_steps": 1000, "factor": 0.8}
    assert rate(17, restored) == rate(17, schedule)


@pytest.mark.parametrize(
    "arguments",
    [
        {"d_model": 0},
        {"d_model": "512"},
        {"warmup_steps": 0},
        {"warmup_steps": -5},
        {"factor": 0.0},
        {"factor": float("nan")},
    ],
)
def test_what_is_not_above_0_is_refused_by_name(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must be above 0. Received: {name}={value!r}"):
        WarmupInverseSquareRoot(**{"d_model": 512, **arguments})


def test_a_constant_rate_is_the_same_at_every_step():
    assert [float(ConstantRate(0.5)(step)) for step in (0, 7, 10**6)] == [0.5] * 3
    assert ConstantRate.from_config(ConstantRate(0.5).get_config()).learning_rate == 0.5
    with pytest.raises(ValueError, match="learning_rate=0"):
        ConstantRate(0)


def test_a_warm_up_rises_in_equal_steps_and_stays():
    assert [float(LinearWarmup(1.0, 4)(done)) for done in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    with pytest.raises(ValueError, match="warmup_steps must be above 0"):
        LinearWarmup(1.0, 0)


def test_a_cosine_is_at_its_peak_after_the_warm_up_half_of_it_halfway_and_0_at_the_end():
    schedule = WarmupCosine(2.0, 10, 110)
    assert [float(schedule(done)) for done in (0, 4)] == pytest.approx([0.2, 1.0])
    assert [float(schedule(done)) for done in (9, 10, 60, 110, 500)] == pytest.approx([2, 2, 1, 0, 0], abs=1e-6)
    for beyond in (7, 20, 33):  # it falls as much before its middle as after it
        assert float(schedule(60 - beyond)) + float(schedule(60 + beyond)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="warmup_steps=7, steps=7"):
        WarmupCosine(1.0, 7, 7)


@pytest.mark.parametrize("schedule", [LinearWarmup(0.5, 3), WarmupCosine(0.5, 3, 9)])
def test_a_warm_up_comes_back_from_its_config(schedule):
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert type(restored) is type(schedule) and restored.get_config() == schedule.get_config()
    assert [float(restored(step)) for step in (1, 3, 7)] == [float(schedule(step)) for step in (1, 3, 7)]


def test_a_cooldown_leaves_the_schedule_as_it_is_until_it_begins():
    cooled = LinearCooldown(BASE, 10_000, 2_000)
    for updates_done in (0, 3999, 7999, 8000):
        assert float(cooled(updates_done)) == float(BASE(updates_done))


def test_a_cooldown_takes_the_rate_to_0_in_equal_steps():
    cooled = LinearCooldown(ConstantRate(0.5), 10, 4)
    assert [float(cooled(updates_done)) for updates_done in range(5, 12)] == [0.5, 0.5, 0.375, 0.25, 0.125, 0, 0]
    assert float(LinearCooldown(BASE, 8000, 4000)(6000)) == pytest.approx(float(BASE(6000)) / 2)
    assert [float(LinearCooldown(ConstantRate(1.0), 4, 4)(step)) for step in range(5)] == [1, 0.75, 0.5, 0.25, 0]


def test_a_cooldown_comes_back_from_its_config():
    schedule = LinearCooldown(WarmupInverseSquareRoot(256, 1000, 0.8), 100, 40)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert isinstance(restored, LinearCooldown) and isinstance(restored.schedule, WarmupInverseSquareRoot)
    assert [float(restored(step)) for step in (17, 70, 99)] == [float(schedule(step)) for step in (17, 70, 99)]


@pytest.mark.parametrize("cooldown_steps", [0, -1, 11])
def test_a_cooldown_is_a_part_of_the_steps(cooldown_steps):
    with pytest.raises(ValueError, match=f"Received: cooldown_steps={cooldown_steps}, steps=10"):
        LinearCooldown(ConstantRate(1.0), 10, cooldown_steps)


def test_every_micro_batch_of_an_update_has_the_rate_of_the_update():
    schedule = RatePerUpdate(BASE, 3)
    assert [float(schedule(done)) for done in range(7)] == [float(BASE(done // 3)) for done in range(7)]
    assert float(RatePerUpdate(BASE, 1)(5)) == float(BASE(5))
    with pytest.raises(ValueError, match="micro_batches must be at least 1"):
        RatePerUpdate(BASE, 0)
