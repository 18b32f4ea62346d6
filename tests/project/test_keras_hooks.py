"""What training relies on in Keras: one test per row of docs/keras_hooks.md, each with what to do if it fails."""

import importlib.util
import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support.models import as_numpy
from tests.support.places import ROOT

KERAS = pathlib.Path(importlib.util.find_spec("keras").origin).parent


def table():
    """The rows of docs/keras_hooks.md: (hook, file of Keras, file of this project, test)."""
    text = (ROOT / "docs" / "keras_hooks.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \| `(keras/[\w/.]+)` \| `([\w/.]+)` \| .* \| `(\w+)` \|$", text, re.MULTILINE)


def small_model(cls=keras.Model):
    inputs = keras.Input((2,))
    return cls(inputs, keras.layers.Dense(1, use_bias=False)(inputs))


DATASET = tf.data.Dataset.from_tensors({"x": tf.ones((4, 2))}).repeat()


def test_the_table_names_what_exists():
    assert len(table()) >= 10
    for hook, file_of_keras, file, test in table():
        source = KERAS / pathlib.Path(file_of_keras).relative_to("keras")
        assert source.is_file() and hook in source.read_text(encoding="utf-8"), (
            f"Keras {keras.__version__} has no {hook} in {file_of_keras}: find where it is now, or what replaced it, "
            "and correct docs/keras_hooks.md."
        )
        assert (ROOT / file).is_file()
        assert test in globals()
    assert (
        len({test for *_, test in table()}) == len(table()) == sum(name.startswith("test_") for name in globals()) - 1
    )


class Stepping(keras.Model):
    """A model whose steps are counted, by the override that TrainingModel uses."""

    def make_train_function(self, force=False):
        self.made, self.batches = getattr(self, "made", 0) + 1, []

        def train_function(iterator):
            self.batches.append(next(iterator))
            return {"step": tf.constant(float(len(self.batches)))}

        self.train_function = train_function


class Logs(keras.callbacks.Callback):
    def __init__(self, last=None):
        super().__init__()
        self.found, self.last = [], last

    def on_train_batch_end(self, batch, logs=None):
        self.found.append(float(logs["step"]))
        self.model.stop_training = len(self.found) == self.last


def fitted(steps=3, last=None):
    """A Stepping after `fit`, and what its callback saw; `last`: the step after which the callback stops training."""
    model, logs = small_model(Stepping), Logs(last)
    model.compile(optimizer="sgd", jit_compile=False)
    model.fit(DATASET, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[logs])
    return model, logs.found


def test_fit_trains_through_make_train_function():
    model, logs = fitted()
    assert (model.made, len(model.batches), logs) == (1, 3, [1.0, 2.0, 3.0]), (
        "keras.Model.fit no longer calls make_train_function() once and train_function(iterator) per step, or changes "
        "the logs: TrainingModel's step would not run, or not be logged. Adapt TrainingModel.make_train_function, or "
        "replace `fit` by a loop over `TrainingModel.train_on_next_batch` in train/loop/fit.py."
    )
    assert set(model.batches[0]) == {"x"}


def test_compile_discards_the_train_function():
    model, _ = fitted()
    model.compile(optimizer="sgd")
    assert model.train_function is None, (
        "compile() keeps train_function: reset it in TrainingModel.compile, or a new optimizer would never be used."
    )


def test_fit_builds_through_maybe_symbolic_build(monkeypatch):
    calls = []
    monkeypatch.setattr(Stepping, "_maybe_symbolic_build", lambda self, **settings: calls.append(settings), False)
    fitted()
    assert len(calls) == 1, (
        "keras.Model.fit no longer calls _maybe_symbolic_build: under MultiWorkerMirroredStrategy it may average a "
        "batch over all workers and fail. Find what builds the model in `fit` now and override that in TrainingModel; "
        "tests/train/test_cluster.py shows whether it works."
    )


def test_apply_reduces_through_all_reduce_sum_gradients(monkeypatch):
    pairs = []

    def double(self, grads_and_vars):
        pairs.extend(grads_and_vars)
        return [(2 * gradient, variable) for gradient, variable in grads_and_vars]

    variable, optimizer = keras.Variable(np.zeros(2, "float32")), keras.optimizers.SGD(1.0)
    monkeypatch.setattr(keras.optimizers.SGD, "_all_reduce_sum_gradients", double)
    optimizer.build([variable])
    optimizer.apply([tf.constant([1.0, 3.0])])
    np.testing.assert_array_equal(
        as_numpy(variable),
        [-2.0, -6.0],
        err_msg=(
            "Optimizer.apply no longer reduces through _all_reduce_sum_gradients: GlobalAdam would sum gradients over "
            "replicas twice. Find where `apply` reduces now and override that in GlobalAdam."
        ),
    )
    assert len(pairs) == 1


def test_an_update_step_knows_the_place_of_its_variable():
    places = []

    class Noting(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            places.append(self._get_variable_index(variable))

    variables, optimizer = [keras.Variable(np.zeros(2, "float32")) for _ in range(3)], Noting(1.0)
    optimizer.build(variables)
    optimizer.apply([tf.ones(2)] * 3)
    assert places == [0, 1, 2], (
        "_get_variable_index no longer finds the variable of an update step: GlobalAdam would average other weights. "
        "See how Keras' Adam finds its moments now, and do the same in GlobalAdam.update_step."
    )


def test_apply_updates_through_backend_update_step():
    calls = []

    class Noting(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            calls.append("one")

        def _backend_update_step(self, grads, trainable_variables, learning_rate):
            calls.append("all")
            super()._backend_update_step(grads, trainable_variables, learning_rate)

    variables, optimizer = [keras.Variable(np.zeros(2, "float32")) for _ in range(2)], Noting(1.0)
    optimizer.build(variables)
    optimizer.apply([tf.ones(2)] * 2)
    assert calls == ["all", "one", "one"], (
        "Optimizer.apply no longer updates through _backend_update_step: ScheduleFree would not count its rates. Find "
        "what runs once per update now and add the squared rate there."
    )


def test_an_update_step_knows_which_variables_decay():
    decays = []

    class Noting(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            decays.append(self._use_weight_decay(variable))

    variables, optimizer = [keras.Variable(np.zeros(2, "float32")) for _ in range(2)], Noting(1.0)
    optimizer.exclude_from_weight_decay(var_list=variables[:1])
    optimizer.build(variables)
    optimizer.apply([tf.ones(2)] * 2)
    assert decays == [False, True], (
        "_use_weight_decay no longer tells which variables decay: ScheduleFree would decay all of them. See how Keras "
        "leaves out those of exclude_from_weight_decay now."
    )


def test_muon_asks_which_weights_get_adamw():
    class AllAdam(keras.optimizers.Muon):
        def _should_use_adamw(self, variable):
            return True

    optimizer = AllAdam(1.0)
    optimizer.build([keras.Variable(np.zeros((2, 3), "float32"))])
    assert any("velocity" in variable.name for variable in optimizer.variables), (
        "Muon.build no longer asks _should_use_adamw: embeddings would be made orthogonal. Find what it asks now and "
        "override that in train/step/matrix_optimizers.py."
    )


def test_a_seed_generator_draws_the_state_of_the_stateless_scope():
    generator = keras.random.SeedGenerator(5)
    before = as_numpy(generator.state)
    with keras.StatelessScope(state_mapping=[(generator.state, tf.constant([7, 9], generator.state.dtype))]):
        drawn = as_numpy(generator.next())
    advice = (
        "A SeedGenerator no longer draws the state that keras.StatelessScope gives it: dropout would not be a function "
        "of (seed, step, micro-batch, layer). Give the seeds to the layers another way in TrainingModel."
    )
    np.testing.assert_array_equal(drawn, [7, 9], err_msg=advice)
    np.testing.assert_array_equal(as_numpy(generator.state), before, err_msg=advice)


class TwoDropouts(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = (
            keras.layers.Dropout(0.1),
            keras.layers.LayerNormalization(),
            keras.layers.Dropout(0.1),
        )


def test_variables_has_the_seed_states_that_weights_lacks():
    layer = TwoDropouts()
    layer.norm.build((None, 3))
    weights = {id(weight) for weight in layer.weights}
    states = [variable for variable in layer.variables if id(variable) not in weights]
    expected = [layer.first.seed_generator.state, layer.second.seed_generator.state]
    assert [id(state) for state in states] == [id(state) for state in expected], (
        "Layer.variables without Layer.weights is no longer the states of the seed generators in order: correct "
        "TrainingModel.random_states, which gives every dropout layer its own masks."
    )


def test_compile_keeps_the_optimizer_in_float16():
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    model.dtype_policy = keras.DTypePolicy("mixed_float16")
    optimizer = keras.optimizers.SGD()
    model.compile(optimizer=optimizer, auto_scale_loss=False)
    assert model.optimizer is optimizer, (
        "compile(auto_scale_loss=False) wraps the optimizer: the loss would be scaled twice in float16. Unwrap it in "
        "TrainingModel.compile, or leave scaling to Keras in training_optimizer."
    )


def test_the_loss_scale_optimizer_scales_unscales_and_skips():
    variable = keras.Variable(np.zeros(1, "float32"))
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=8.0)
    optimizer.build([variable])
    found = [float(optimizer.scale_loss(3.0))]
    for gradient in (16.0, np.inf):
        optimizer.apply([tf.constant([gradient])])
        found += [float(as_numpy(variable)[0]), float(optimizer.dynamic_scale), int(as_numpy(optimizer.iterations))]
    assert found == [24.0, -2.0, 8.0, 1, -2.0, 4.0, 1], (
        "LossScaleOptimizer no longer scales by dynamic_scale, divides by it in apply, or skips an overflow and halves "
        "it: correct training_optimizer, and TrainingModel.update, which divides the logged norm by the scale."
    )


def test_the_end_of_fit_changes_no_weight():
    model, _ = fitted()
    before = [as_numpy(weight) for weight in model.weights]
    model.optimizer.finalize_variable_values(model.trainable_weights)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(
            as_numpy(weight),
            value,
            err_msg=(
                "Optimizer.finalize_variable_values changes weights without EMA: the weights after `fit` would not be "
                "those of the last checkpoint. Override it in GlobalAdam."
            ),
        )


@pytest.mark.parametrize("last", [1, 2])
def test_stop_training_ends_fit_after_that_step(last):
    model, logs = fitted(steps=5, last=last)
    assert len(model.batches) == len(logs) == last, (
        "fit goes on after a callback has set stop_training, or runs callbacks late: a request to stop, or a "
        "divergence, would come after further steps. See AfterEachUpdate in train/loop/callbacks.py."
    )
