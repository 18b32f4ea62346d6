"""What is trained: every setting of the training step reaches it."""

import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers import Dropout
from keras_transformer.losses import TokenSums
from tests.support.training import BATCHES, TINY, tensors, training_model
from train.config.training import TrainingConfig
from train.run import build
from train.step.training_model import DRAWS_PER_RUN, TrainingModel, compiled
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


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("xla", [True, False])
def test_xla_compiles_forward_and_backward_pass_and_on_one_replica_the_update(monkeypatch, xla, replicas):
    compiled = {}
    monkeypatch.setattr(tf, "function", lambda step, jit_compile=None: compiled.setdefault(step, jit_compile))
    step = types.SimpleNamespace(
        train_function=None,
        xla=xla,
        replicas=replicas,
        sums_and_gradients="sums and gradients",
        update="update",
        step_of_replicas="step",
        train_on_next_batch="train",
    )
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
    alone = Workers(tf.distribute.get_strategy())
    first, same, other = (build(TINY, TrainingConfig(seed=seed), alone).get_weights() for seed in (1, 1, 2))
    for one, two in zip(first, same, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any((one != two).any() for one, two in zip(first, other, strict=True))
    count = sum(weight.size for weight in first)
    assert caplog.messages == [f"{count:,} parameters; training on one CPU, float32"] * 3


# the training step, whose laws on a real model are in test_training_model.py, with stand-ins for the model


def test_an_update_is_by_the_mean_gradient_and_logs_means_and_the_norm_without_the_loss_scale():
    applied = []
    optimizer = types.SimpleNamespace(
        scale_loss=lambda loss: 4.0 * loss, learning_rate=0.5, apply=lambda *of: applied.append(of)
    )
    step = types.SimpleNamespace(optimizer=optimizer, trainable_variables=["weight"])
    sums = TokenSums(*map(tf.constant, {"loss": 6.0, "nll": 4.0, "correct": 1.0, "tokens": 2.0}.values()))
    logs = TrainingModel.update(step, sums, [tf.constant([24.0, 32.0])])
    ((gradients, variables),) = applied
    assert (gradients[0].numpy().tolist(), variables) == ([12.0, 16.0], ["weight"])
    assert {name: float(value) for name, value in logs.items()} == {
        "loss": 3.0,
        "nll": 2.0,
        "accuracy": 0.5,
        "tokens": 2.0,
        "gradient_norm": 5.0,
        "learning_rate": 0.5,
    }


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_step_adds_up_its_micro_batches_then_its_replicas_and_updates_once(monkeypatch, replicas):
    seen = []

    def sums_and_gradients(batch, step, number):
        seen.append((batch, int(step), int(number)))
        return [float(batch)], [10.0 * batch]

    context = types.SimpleNamespace(all_reduce=lambda op, value: tf.nest.map_structure(lambda each: 2 * each, value))
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    step = types.SimpleNamespace(
        optimizer=types.SimpleNamespace(iterations=7),
        replicas=replicas,
        split=lambda batch: batch,
        compiled_sums_and_gradients=sums_and_gradients,
        compiled_update=lambda sums, gradients: {"sums": float(sums[0]), "gradients": float(gradients[0])},
    )
    logs, gradients = TrainingModel.step_of_replica(step, [1.0, 2.0, 3.0], tf.constant(1.0))
    assert seen == [(1.0, 7, 0), (2.0, 7, 1), (3.0, 7, 2)]
    assert {name: float(value) for name, value in logs.items()} == {
        "sums": 6.0 * replicas,
        "gradients": 60.0 * replicas,
        "stop_requests": replicas,
    }
    assert [float(gradient) for gradient in gradients] == [60.0 * replicas]


@pytest.mark.parametrize("inspects", [False, True])
def test_an_inspected_step_keeps_mean_gradients_without_the_loss_scale_and_the_weights_before_it(inspects):
    asked = []

    def step_of_all_replicas(iterator, stop_requests):
        asked.append((iterator, float(stop_requests)))
        step.weights = [9.0]
        return {"tokens": 5.0}, [tf.constant([100.0])], 0.25

    step = types.SimpleNamespace(
        inspects=inspects,
        inspected="of the step before",
        wants_to_stop=True,
        weights=[1.0],
        before_update=lambda: (4.0, list(step.weights)),
        step_of_all_replicas=step_of_all_replicas,
    )
    assert TrainingModel.train_on_next_batch(step, "batches") == {"tokens": 5.0}
    assert asked == [("batches", 1.0)] and step.seconds_waiting == 0.25
    if not inspects:
        assert step.inspected is None
    else:
        assert ([each.numpy().tolist() for each in step.inspected.gradients], step.inspected.before) == ([[5.0]], [1.0])


def test_what_is_logged_is_that_of_the_first_replica_and_each_has_the_next_batch():
    ran = []
    strategy = types.SimpleNamespace(
        run=lambda function, args: ran.append((function, args)) or ({"loss": 1.0}, [2.0]),
        experimental_local_results=lambda value: (value, "of another replica"),
    )
    step = types.SimpleNamespace(distribute_strategy=strategy, step_of_replica="step")
    logs, gradients, seconds = TrainingModel.step_of_replicas(step, iter([tf.constant(3)]), "stop requests")
    ((function, (batch, stop_requests)),) = ran
    assert (function, int(batch), stop_requests) == ("step", 3, "stop requests")
    assert (logs, gradients) == ({"loss": 1.0}, [2.0]) and 0 <= float(seconds) < 10


def test_the_state_of_each_dropout_layer_is_a_stream_of_its_seed_micro_batch_and_place():
    """In a block from the last to the first; weights are no states."""
    weight, *states = (types.SimpleNamespace(name=name) for name in ("weight", "a", "b", "c"))
    layers = [
        types.SimpleNamespace(weights=[weight], variables=[states[0], weight, states[1]]),
        types.SimpleNamespace(weights=[], variables=[states[2]]),
    ]
    step = types.SimpleNamespace(layers=layers, dropout_seed=2, micro_batches=4)
    step.random_states = lambda: TrainingModel.random_states(step)
    found = TrainingModel.dropout_states(step, tf.constant(7), tf.constant(3))
    assert [variable.name for variable, _ in found] == ["b", "a", "c"]
    assert [value.numpy().tolist() for _, value in found] == [
        [(2 * DRAWS_PER_RUN + number) * 4 + 3, 7] for number in range(3)
    ]
    assert {value.dtype for _, value in found} == {tf.int64}


def test_a_model_is_ready_for_its_first_step_once_it_is_compiled():
    model = training_model()
    assert (model.wants_to_stop, model.inspects, model.inspected, model.seconds_waiting) == (False, False, None, 0.0)
    assert model.optimizer.built and model.replicas == 1
    scale, weights = model.before_update()
    assert float(scale) == 1.0
    for kept, weight in zip(weights, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(kept, weight.value)
