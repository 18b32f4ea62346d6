"""The training step: sums over tokens; the same update however a batch is packed, compiled, divided or resumed."""

import functools
import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.support.inspected import on_replicas
from tests.support.models import as_numpy, assert_close, softmax
from tests.support.processes import fork_python
from tests.support.training import (
    BATCHES,
    PAIRS,
    TINY,
    assert_same_weights,
    reusable,
    tensors,
    train,
    training_model,
    weights_of,
)
from tests.support.variants import VARIANTS
from train.config.training import RowLengths
from train.data.batches import lay_out
from train.data.packing import Packing
from train.loop.checkpoints import Checkpoints
from train.loop.progress import Progress
from train.workers.strategy import choose_strategy

pytestmark = pytest.mark.slow
SHIFTED = TINY.replace(shift_positions=500)

ENDS = "Placeholder", "Identity", "NoOp"  # what a graph begins and ends with

CONFIGS = {"paper": TINY} | {variant: TINY.replace(**changes) for variant, changes in VARIANTS.items()}


def sums_and_gradients(model, batch):
    sums, gradients, _ = model.sums_and_gradients(tensors(batch), tf.constant(0), tf.constant(0))  # step, micro-batch
    return [*sums, *gradients]


def rows_of(batch, rows):
    return {name: ids[rows] for name, ids in batch.items()}


def values_of(logs):
    return [[step[name] for name in sorted(step)] for step in logs]


@functools.cache
def trained(**arguments):
    """The logs of the first three steps of a fresh model, and its weights after them."""
    model = reusable(**arguments).from_the_start()
    return train(model, 0, 3), weights_of(model)


def test_a_step_logs_means_over_the_real_tokens_of_its_batch():
    model, batch = training_model(), BATCHES.batch(0)
    logits = as_numpy(model({name: batch[name] for name in model.input}, training=False))
    is_real = batch["target_segments"] > 0
    log_p = np.log(softmax(logits))[is_real]
    nll = -np.take_along_axis(log_p, batch["labels"][is_real][:, None], -1).mean()
    assert 0 < is_real.sum() < is_real.size
    found = trained()[0][0]
    assert found["tokens"] == is_real.sum()
    assert found["nll"] == pytest.approx(nll, rel=1e-5)
    assert found["loss"] == pytest.approx(0.9 * nll - 0.1 * log_p.mean(), rel=1e-5)
    assert found["accuracy"] == pytest.approx((logits.argmax(-1) == batch["labels"])[is_real].mean())
    assert found["learning_rate"] == pytest.approx(16**-0.5 * 20**-1.5)


def test_the_logged_norm_is_the_norm_of_the_gradient_of_the_mean_loss():
    _, _, _, tokens, *gradients = map(as_numpy, sums_and_gradients(training_model(), BATCHES.batch(0)))
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients)) / tokens
    assert trained()[0][0]["gradient_norm"] == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packed_rows_and_one_pair_per_row_have_the_same_loss_and_gradients(config):
    model, pairs = reusable(config=config).from_the_start(), np.arange(8)
    packed = lay_out(PAIRS, Packing(pairs, np.array([0, 2, 5, 8])), RowLengths(24, 24))
    unpacked = lay_out(PAIRS, Packing(pairs, np.arange(9)), RowLengths(7, 7))
    assert packed["target_segments"].max() == 3 and unpacked["target_segments"].max() == 1
    for one, other in zip(sums_and_gradients(model, packed), sums_and_gradients(model, unpacked), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_sums_and_gradients_of_the_parts_of_a_batch_add_up_to_those_of_the_batch(config):
    model, batch = reusable(config=config).from_the_start(), BATCHES.batch(0)
    whole = sums_and_gradients(model, batch)
    parts = [sums_and_gradients(model, rows_of(batch, rows)) for rows in (slice(0, 1), slice(1, None))]
    for one, other, total in zip(*parts, whole, strict=True):
        assert_close(one + other, total)


@functools.cache
def copying(**arguments):
    """The logs of 50 steps, and the model."""
    model = training_model(learning_rate_factor=2.0, **arguments)
    return train(model, 0, 50), model


def has_learned(logs):
    losses = [step["loss"] for step in logs]
    return np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.75 * losses[0]


def test_it_learns_to_copy():
    assert has_learned(copying()[0])


# dropout as a function of (seed, step, micro-batch, layer)


def drawn(model, step, micro_batch=0):
    return [tuple(state.numpy()) for _, state in model.dropout_states(tf.constant(step), tf.constant(micro_batch))]


def test_every_dropout_layer_has_a_stream_of_its_own():
    model = training_model(dropout=0.1)
    count = 2 + 2 * TINY.encoder_layers + 3 * TINY.decoder_layers  # embeddings, and one after each sublayer
    assert len(set(drawn(model, 0))) == len(model.random_states()) == count
    assert len({id(variable) for variable, _ in model.dropout_states(tf.constant(0), tf.constant(0))}) == count


def test_streams_repeat_and_differ_by_step_seed_and_micro_batch():
    halves = functools.partial(training_model, dropout=0.1, micro_batches=2)
    one, other = halves(seed=1), halves(seed=2)
    assert drawn(one, 5) == drawn(halves(seed=1, weights_seed=9), 5)
    for different in (drawn(one, 6), drawn(one, 5, micro_batch=1), drawn(other, 5), drawn(other, 5, micro_batch=1)):
        assert not set(drawn(one, 5)) & set(different)


@pytest.mark.nightly
def test_shifts_of_positions_have_streams_of_their_own():
    states = drawn(training_model(dropout=0.1, config=SHIFTED), 0)
    assert len(set(states)) == len(states) == len(drawn(training_model(dropout=0.1), 0)) + 2  # a side each


def test_a_step_trains_with_shifted_positions():
    (logs, _), (shifted_logs, _) = trained(), trained(config=SHIFTED)
    assert logs[0]["tokens"] == shifted_logs[0]["tokens"]
    assert abs(logs[0]["nll"] - shifted_logs[0]["nll"]) > 1e-3


def test_a_model_without_dropout_has_no_random_states():
    assert training_model().random_states() == []


def test_a_step_trains_with_dropout():
    dropping = training_model(dropout=0.5)
    for weight, value in zip(dropping.weights, weights_of(training_model()), strict=True):
        weight.assign(value)
    one, (other,) = trained()[0][0], train(dropping, 0, 1)
    assert one["tokens"] == other["tokens"]
    assert abs(one["nll"] - other["nll"]) > 1e-3


def test_a_step_leaves_the_random_states_of_the_layers_as_they_were():
    model = training_model(dropout=0.1)
    before = [as_numpy(state) for state in model.random_states()]
    sums_and_gradients(model, BATCHES.batch(0))
    assert_close([as_numpy(state) for state in model.random_states()], before)


# the same however it is run


@pytest.mark.parametrize(
    ("config", "precision"),
    [(TINY, "float32"), (TINY, "mixed_bfloat16"), (SHIFTED, "float32")],
    ids=["plain", "bfloat16", "shifted"],
)
def test_a_repeated_run_and_one_resumed_in_a_new_model_give_the_same_bits(tmp_path, config, precision):
    arguments = dict(dropout=0.1, xla=True, config=config, precision=precision)
    logs, weights = trained(**arguments)
    straight = reusable(**arguments).from_the_start()
    assert train(straight, 0, 3) == logs
    assert_same_weights(weights_of(straight), weights)
    Checkpoints(tmp_path).save(straight, straight.optimizer, Progress(3))
    resumed = training_model(**arguments, weights_seed=2)
    assert Checkpoints(tmp_path).restore_latest(resumed, resumed.optimizer) == Progress(3)
    assert train(resumed, 3, 6) == train(straight, 3, 6)
    assert_same_weights(weights_of(resumed), weights_of(straight))


def test_xla_changes_only_the_speed():
    logs, weights = trained(dropout=0.1)
    compiled_logs, compiled_weights = trained(dropout=0.1, xla=True)
    assert_close(values_of(compiled_logs), values_of(logs), rtol=1e-4)
    for one, other in zip(compiled_weights, weights, strict=True):
        assert_close(one, other, atol=1e-4)


def test_on_a_processor_xla_leaves_the_products_of_bfloat16_to_tensorflow_and_compiles_the_rest():
    model, batch = training_model(dropout=0.1, xla=True, precision="mixed_bfloat16"), tensors(BATCHES.batch(0))
    model.make_train_function()
    graph = model.compiled_sums_and_gradients.get_concrete_function(batch, tf.constant(0), tf.constant(0)).graph
    operations = [operation for operation in graph.get_operations() if operation.type not in ENDS]
    products = [operation for operation in operations if "MatMul" in operation.type]
    assert {operation.inputs[0].dtype for operation in products} == {tf.bfloat16}
    for operation in operations:
        assert operation.get_attr("_XlaCompile") == (operation not in products), operation.type


@pytest.mark.nightly
def test_xla_between_products_rounds_as_tensorflow_does_without_it():
    """Two roundings of bfloat16 that fall to different sides move the loss by less than the 2^-8 of one."""
    (logs, _), (plain, _) = (trained(dropout=0.1, precision="mixed_bfloat16", xla=xla) for xla in (True, False))
    assert_close(values_of(logs), values_of(plain), rtol=0.02)


# half precision


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_learns_in_float32_weights_and_starts_as_float32_does(precision):
    (logs, model), (exact_logs, _) = copying(precision=precision, xla=True), copying()
    assert has_learned(logs)
    assert {weight.dtype for weight in model.trainable_variables} == {"float32"}
    for step, exact in zip(logs[:3], exact_logs, strict=False):
        assert step["loss"] == pytest.approx(exact["loss"], rel=0.01)
        assert step["gradient_norm"] == pytest.approx(exact["gradient_norm"], rel=0.03)  # float16's is unscaled
        assert (step["tokens"], step["learning_rate"]) == (exact["tokens"], exact["learning_rate"])


def test_a_float16_step_that_overflows_changes_no_weight_and_the_next_ones_train():
    model = training_model(precision="mixed_float16")
    model.optimizer.dynamic_scale.assign(2.0**40)
    before = weights_of(model)
    (overflown,) = train(model, 0, 1)
    assert np.isfinite(overflown["loss"]) and not np.isfinite(overflown["gradient_norm"])
    assert_same_weights(weights_of(model), before)
    assert (float(model.optimizer.dynamic_scale), int(model.optimizer.iterations)) == (2.0**39, 0)
    model.optimizer.dynamic_scale.assign(1.0)
    train(model, 1, 2)
    assert int(model.optimizer.iterations) == 1
    assert any((one != other).any() for one, other in zip(weights_of(model), before, strict=True))


# micro-batches


@pytest.mark.parametrize("micro_batches", [2, 4])
def test_micro_batches_give_the_update_of_the_whole_batch(micro_batches):
    logs, weights = trained(micro_batches=micro_batches)
    whole_logs, whole_weights = trained()
    assert_close(values_of(logs), values_of(whole_logs))  # the learning rate too: it counts updates
    for one, other in zip(weights, whole_weights, strict=True):
        assert_close(one, other)


class SameRows:
    """A stream whose every batch is half of a batch of BATCHES, twice."""

    def __getattr__(self, name):
        return getattr(BATCHES, name)

    def batch(self, number):
        return {name: np.concatenate([ids[:2]] * 2) for name, ids in BATCHES.batch(0).items()}


def nll_of_same_rows(model):
    """The loss that the first step logs for two equal halves computed apart, and the loss of each half."""
    half = tensors(rows_of(SameRows().batch(0), slice(0, 2)))
    sums = []
    for number in (0, 1):
        with as_replica(number, model.replicas):
            micro_batch = tf.constant(number if model.replicas == 1 else 0)
            sums.append(model.sums_and_gradients(half, tf.constant(0), micro_batch)[0])
    return train(model, 0, 1, SameRows())[0]["nll"], [float(one.nll / one.tokens) for one in sums]


def as_replica(number, count):
    """Dropout layers take this process for one of `count` replicas."""
    found = {"number_of_replica": lambda: number, "replica_count": lambda: count}
    return mock.patch.multiple("keras_transformer.layers.dropout", **found)


def assert_masks_differ(logged, expected):
    assert abs(expected[0] - expected[1]) > 1e-3
    assert logged == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.nightly
def test_two_micro_batches_drop_different_elements_of_equal_rows():
    assert_masks_differ(*nll_of_same_rows(training_model(dropout=0.5, micro_batches=2)))


def losses_after_an_update(model):
    """The loss after the first step, and that which the next step logs for the same rows."""
    train(model, 0, 1, SameRows())
    before = weights_of(model)
    loss = model.loss_after_update()
    assert_same_weights(weights_of(model), before)
    return loss, train(model, 1, 2, SameRows())[0]["loss"]


@pytest.mark.nightly
@pytest.mark.parametrize("settings", [{}, {"dropout": 0.5}, {"xla": True}, {"precision": "mixed_float16"}])
def test_the_loss_after_an_update_is_that_which_the_next_step_has_on_the_same_rows(settings):
    loss, of_next_step = losses_after_an_update(training_model(**settings))
    assert loss == pytest.approx(of_next_step, rel=1e-6)


def test_in_micro_batches_the_loss_after_an_update_is_that_of_the_first_one():
    whole, parts = (losses_after_an_update(training_model(micro_batches=count)) for count in (1, 2))
    assert parts == pytest.approx(whole, rel=1e-5)  # both halves have the same rows


def test_the_logs_have_the_request_to_stop_of_this_worker():
    model = reusable().from_the_start()
    assert [step["stop_requests"] for step in train(model, 0, 2)] == [0, 0]
    model.wants_to_stop = True
    assert [step["stop_requests"] for step in train(model, 2, 3)] == [1]


# several devices (test_exact.py has more): a process of its own, since devices are configured before it starts


def train_of_variants():
    """The logs of two steps of two models that share no kind of a part, and their weights after them.

    Without biases of keys, which change no attention: their gradient is rounding, of which Adam makes whole steps.
    """
    found = {}
    for variant in ("t5", "ssru, pre-norm"):
        model = training_model(config=CONFIGS[variant].replace(attention_bias=False))
        found[variant] = train(model, 0, 2), [weight.tolist() for weight in weights_of(model)]
    return found


def train_on_two_replicas(path):
    """Write to `path` what the tests below compare."""
    with choose_strategy().scope():
        half, dropping = training_model(precision="mixed_float16"), training_model(dropout=0.5)
        of_variants = train_of_variants()
    found = {"half_logs": train(half, 0, 2), "same_rows": nll_of_same_rows(dropping)}
    found["losses_after"] = losses_after_an_update(dropping)
    half.optimizer.dynamic_scale.assign(2.0**40)
    before = weights_of(half)
    train(half, 2, 3)
    found["updates"] = int(as_numpy(half.optimizer.iterations))
    found["overflow_changes"] = float(max(abs(a - b).max() for a, b in zip(weights_of(half), before, strict=True)))
    found["inspection"] = on_replicas(dropping)
    found["variants"] = of_variants
    path.write_text(json.dumps(found, default=int))


SCRIPT = """
import pathlib, sys, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.train import test_training_model
test_training_model.train_on_two_replicas(pathlib.Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def replicated(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "found.json"
    run = fork_python("-c", SCRIPT, path)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(path.read_text())


@pytest.mark.release
def test_two_replicas_scale_the_loss_of_float16_once_and_both_skip_an_overflow(replicated):
    assert_close(values_of(replicated["half_logs"]), values_of(trained()[0][:2]), rtol=0.03)
    assert (replicated["updates"], replicated["overflow_changes"]) == (2, 0)


@pytest.mark.nightly
def test_an_inspected_step_of_two_replicas_is_the_same_update_and_has_the_gradients_of_both(replicated):
    found = replicated["inspection"]
    assert found["is_same"]
    assert found["norms"][0] == pytest.approx(found["norms"][1], rel=1e-5)
    assert (found["ratios"], found["histograms"]) == (8, 16)


def test_two_replicas_drop_different_elements_of_equal_rows(replicated):
    assert_masks_differ(*replicated["same_rows"])


@pytest.mark.nightly
def test_two_replicas_train_variants_as_one_does(replicated):
    """Of every variant, what the parts of a batch give adds up, as is tested above."""
    for variant, (logs, weights) in train_of_variants().items():
        of_two = replicated["variants"][variant]
        assert_close(values_of(of_two[0]), values_of(logs), rtol=1e-4)
        for one, other in zip(of_two[1], weights, strict=True):
            assert_close(one, other, atol=1e-4)


def test_two_replicas_have_one_loss_after_an_update(replicated):
    loss, of_next_step = replicated["losses_after"]
    assert loss == pytest.approx(of_next_step, rel=1e-6)
