"""Schedule-free Adam: against its equations in float64 and Keras' class, and which weights a run translates with."""

import keras
import numpy as np
import pytest

from keras_transformer.runs.run_folder import RunFolder
from tests.support.models import as_numpy, assert_close
from tests.support.optimizers import SHAPES, VECTORS, arrays, built, gradients, model_of, weights
from tests.support.training import TRAINING, fit_in, no_validation, training_model, weights_of
from train.loop.checkpoints import Checkpoints, read_checkpoint, read_weights
from train.step.schedule_free import averages_in, evaluation_weights
from train.validation.selection import candidate_weights, select_weights

SCHEDULE = {"schedule": "warmup", "learning_rate": 0.01, "warmup_steps": 4}
OPTIMIZER = {"optimizer": "schedule_free", "optimizer_options": {"beta_1": 0.8, "weight_decay": 0.1}}


def by_its_equations(start, rates, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
    """x, y and z of one weight after an update per rate, each an equation of the docstring, in float64."""
    x = y = z = start
    square, weight_sum = 0.0, 0.0
    for step, rate in enumerate(rates):
        gradient = yield y
        square = beta_2 * square + (1 - beta_2) * gradient**2
        direction = gradient / (np.sqrt(square / (1 - beta_2 ** (step + 1))) + epsilon) + decay * y
        z = z - rate * direction
        weight_sum += rate**2
        share = rate**2 / weight_sum
        x = (1 - share) * x + share * z
        y = beta_1 * x + (1 - beta_1) * z
    yield x, y, z


def test_it_follows_its_equations_through_the_warm_up_and_after_it():
    settings = {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-6}
    variables, optimizer = built("schedule_free", {"weight_decay": 0.1, **settings}, **SCHEDULE)
    rates = [0.01 * min(1, (step + 1) / 4) for step in range(20)]
    expected = [
        by_its_equations(as_numpy(weight), rates, 0 if path in VECTORS else 0.1, **settings)
        for path, weight in zip(SHAPES, variables, strict=True)
    ]
    for one in expected:
        next(one)
    for step in range(20):
        optimizer.apply(gradients(step))
        found = [one.send(gradient) for one, gradient in zip(expected, gradients(step), strict=True)]
    for place, (x, y, z) in enumerate(found):
        assert_close(variables[place], y)
        assert_close(optimizer.sequences[place], z)
        with evaluation_weights(model_of(variables, optimizer)):
            assert_close(variables[place], x)
            assert np.abs(x - y).max() > 1e-3
        assert_close(variables[place], y)


def test_without_warm_up_and_decay_an_update_is_that_of_keras_class_but_for_its_slip():
    """On TensorFlow, Keras 3.15.1 takes the new z for the old one: y is (1 - c) (1 - beta_1) (z - new z) off."""
    variables, optimizer = built("schedule_free", {}, schedule="constant", warmup_steps=4000, learning_rate=0.01)
    others, theirs = weights(), keras.optimizers.ScheduleFreeAdamW(0.01)
    theirs.build(others)
    for step in range(10):
        before = arrays(optimizer.sequences)
        optimizer.apply(gradients(step))
        theirs.apply(gradients(step))
        for place, (ours, other, z, old) in enumerate(zip(variables, others, optimizer.sequences, before, strict=True)):
            slip = (1 - 1 / (step + 1)) * 0.1 * (old - as_numpy(z))
            assert_close(theirs._momentums[place], z)
            is_mended = np.allclose(as_numpy(other), as_numpy(ours), atol=1e-6)
            assert is_mended or np.allclose(as_numpy(other), as_numpy(ours) + slip, atol=1e-5)
            other.assign(ours.value)


def test_the_first_average_is_the_first_z_and_a_constant_rate_weighs_all_alike():
    variables, optimizer = built("schedule_free", {}, schedule="constant", warmup_steps=4000, learning_rate=0.01)
    sequences = []
    for step in range(3):
        optimizer.apply(gradients(step))
        sequences.append([as_numpy(z) for z in optimizer.sequences])
        with evaluation_weights(model_of(variables, optimizer)):
            for place, weight in enumerate(variables):
                assert_close(weight, np.mean([each[place] for each in sequences], axis=0))


def test_other_optimizers_translate_with_the_weights_that_they_train():
    variables, optimizer = built("adam")
    optimizer.apply(gradients(0))
    before = arrays(variables)
    with evaluation_weights(model_of(variables, optimizer)):
        assert all((one == other).all() for one, other in zip(arrays(variables), before, strict=True))
    named = dict(zip(SHAPES, before, strict=True))
    kept = {variable.path: np.array(variable.value) for variable in optimizer.variables}
    assert averages_in(named, kept) == named and averages_in(named, {}) == named


def test_weights_that_are_trained_come_back_if_a_validation_fails():
    variables, optimizer = built("schedule_free")
    optimizer.apply(gradients(0)), optimizer.apply(gradients(1))
    before = arrays(variables)
    with pytest.raises(ZeroDivisionError), evaluation_weights(model_of(variables, optimizer)):
        assert (arrays(variables)[0] != before[0]).any()
        raise ZeroDivisionError
    for one, other in zip(arrays(variables), before, strict=True):
        np.testing.assert_array_equal(one, other)


# in a run


@pytest.fixture(scope="module", params=["float32", "mixed_float16"])
def run(request, tmp_path_factory):
    """A folder after 6 updates with a frozen layer, and the weights that each validation saw, by step."""
    folder, seen, settings = tmp_path_factory.mktemp("run"), {}, {**SCHEDULE, **OPTIMIZER, "precision": request.param}
    model = training_model(**settings, frozen=["encoder_block_1/feed_forward"])

    def validate():
        seen[int(model.optimizer.iterations)] = weights_of(model)
        return no_validation()

    often = {"steps": 6, "validate_every": 2, "checkpoint_every": 2, "keep_best": True, "best_metric": "loss"}
    fit_in(folder, model, validate=validate, **settings, **often)
    return folder, model, seen, settings


@pytest.mark.slow
def test_validation_and_readers_of_checkpoints_have_the_average_and_training_goes_on_from_the_weights(run):
    folder, model, seen, _ = run
    for path in Checkpoints(folder / "checkpoints").paths():
        step, found = int(path.stem[-8:]), read_weights(path)
        trained = read_checkpoint(path, "model/")
        for weight, value in zip(model.weights, seen[step], strict=True):
            assert_close(found[weight.path], value, atol=1e-6)
            is_frozen = weight.path.startswith("encoder_block_1/feed_forward/")
            assert (found[weight.path] == trained[f"model/{weight.path}"]).all() == is_frozen
    assert sorted(seen) == [2, 4, 6]
    for weight, path in ((weight, f"model/{weight.path}") for weight in model.weights):
        np.testing.assert_array_equal(np.array(weight.value), trained[path])


@pytest.mark.slow
def test_candidates_for_translation_are_averages(run):
    folder, model, seen, settings = run
    training = TRAINING.model_copy(update={**settings, "keep_best": True, "average_checkpoints": 3})
    candidates = dict(candidate_weights(RunFolder(folder), training))
    of_last, of_best = "the last checkpoint", "the best checkpoint, of step 2"
    assert list(candidates) == ["the average of the last 3 checkpoints", of_last, of_best]
    for place, weight in enumerate(model.weights):
        assert_close(candidates[of_last][weight.path], seen[6][place], atol=1e-6)
        assert_close(candidates[of_best][weight.path], seen[2][place], atol=1e-6)
        mean = np.mean([seen[step][place] for step in (2, 4, 6)], axis=0)
        assert_close(candidates["the average of the last 3 checkpoints"][weight.path], mean, atol=1e-6)
    selection = select_weights(RunFolder(folder), training, model, no_validation)
    assert (folder / "model.weights.h5").exists()
    for weight in model.weights:
        assert_close(weight, selection.kept.weights[weight.path])
