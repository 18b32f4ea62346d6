"""LoRA: what it computes, that it trains nothing else, what checkpoints hold, and that files have plain weights."""

import re
import shutil
import sys

import keras
import numpy as np
import pydantic
import pytest
import tensorflow as tf

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import save_weights, with_weights
from tests.support.fields import every_value
from tests.support.models import as_numpy, assert_close
from tests.support.optimizers import OPTIONS
from tests.support.processes import fork_python
from tests.support.training import (
    BATCHES,
    TINY,
    assert_stopped_ends_as_uninterrupted,
    fit_in,
    tensors,
    train,
    training_model,
    weights_by_path,
)
from train.config.lora import check_lora
from train.config.training import TrainingConfig, check_idle_keys
from train.cost.cost import parameter_count, trained_count, training_memory
from train.loop.checkpoints import CheckpointError, Checkpoints, read_checkpoint, read_weights
from train.loop.progress import Progress
from train.step.lora import adapt, matrices_of
from train.validation.selection import candidate_weights

ALL = ["query", "key", "value", "output", "ffn"]
LORA = {"lora_rank": 2, "lora_alpha": 6.0, "start_from": "base"}
EVERY = {"steps": 4, "checkpoint_every": 2, "validate_every": 2, **LORA}


def lora_model(**changes):
    rate = {"schedule": "warmup", "learning_rate": 0.01, "warmup_steps": 2}
    return training_model(**{**rate, **LORA, **changes})


def fill(model, seed=1):
    """Values of all adapters that change what their layers compute."""
    random = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        weight.assign(random.normal(0, 0.3, weight.shape))


def logits(model):
    batch = tensors(BATCHES.batch(0))
    return as_numpy(model({name: batch[name] for name in model.input}, training=False))


# what it computes


@pytest.mark.parametrize("names", [None, ALL, ["ffn", "norms", "embeddings"]])
def test_a_model_begins_as_its_base_exactly(names):
    np.testing.assert_array_equal(logits(lora_model(lora_matrices=names)), logits(training_model()))


def test_a_kernel_is_the_base_and_the_scaled_product():
    """Equation 3, transposed: 6 / 2 = 3 times A B beside W."""
    layer = next(matrices_of(lora_model(), ["query"]))
    base = as_numpy(layer._kernel)
    layer.lora_kernel_a.assign(np.full((16, 2), 0.5))
    layer.lora_kernel_b.assign(np.full((2, 16), 2.0))
    assert_close(as_numpy(layer.kernel), base + 3 * (0.5 * 2.0 + 0.5 * 2.0))


def test_gradients_follow_from_that_of_the_kernel_by_the_chain_rule():
    """dL/dA = s dL/dW B^T and dL/dB = s A^T dL/dW, with A = (1, 2)^T, B = (3, 4), s = 6 and dL/dW = x^T g."""
    layer = keras.layers.Dense(2, use_bias=False)
    layer.build((None, 2))
    layer.enable_lora(1, lora_alpha=6)
    layer.lora_kernel_a.assign([[1.0], [2.0]])
    layer.lora_kernel_b.assign([[3.0, 4.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([[1.0, -1.0]])) * [[5.0, 7.0]])  # dL/dW = [[5, 7], [-5, -7]]
    of_a, of_b = tape.gradient(loss, layer.trainable_variables)
    assert_close(of_a, [[6 * (5 * 3 + 7 * 4)], [6 * (-5 * 3 - 7 * 4)]])
    assert_close(of_b, [[6 * (5 * 1 - 5 * 2), 6 * (7 * 1 - 7 * 2)]])


def test_the_step_has_these_gradients_of_the_gradients_of_all_weights():
    whole, model = training_model(), lora_model(lora_matrices=ALL)
    fill(model)
    for layer, merged in zip(matrices_of(whole, ALL), matrices_of(model, ALL), strict=True):
        layer.kernel.assign(merged.kernel)
    found = [
        dict(zip([weight.path for weight in each.trainable_variables], sums[1], strict=True))
        for each in (whole, model)
        for sums in [each.sums_and_gradients(tensors(BATCHES.batch(0)), tf.constant(0), tf.constant(0))]
    ]
    for layer in matrices_of(model, ALL):
        of_kernel = as_numpy(found[0][layer._kernel.path])
        a, b = as_numpy(layer.lora_kernel_a), as_numpy(layer.lora_kernel_b)
        assert_close(found[1][layer.lora_kernel_a.path], 3 * of_kernel @ b.T, atol=1e-3)
        assert_close(found[1][layer.lora_kernel_b.path], 3 * a.T @ of_kernel, atol=1e-3)


def test_a_bias_that_keeps_bos_from_being_written_is_not_counted():
    """It does not train in a model whose decoder begins with another token."""
    training = TrainingConfig(**LORA | {"lora_matrices": ["embeddings"]})
    for start in ("bos", "eos", "pad"):
        config = TINY.replace(logits_bias=True, decoder_start=start)
        adapt(model := build_model(config), training)
        assert trained_count(training, config) == sum(weight.numpy().size for weight in model.trainable_weights)


@pytest.mark.nightly
@every_value
def test_counts_are_those_of_the_model(config):
    for names in (["query"], ["key", "value", "output"], ["ffn"], [*ALL, "norms"], ["query", "embeddings"]):
        training = TrainingConfig(**LORA | {"lora_rank": 1, "lora_matrices": names})
        model = build_model(config)
        adapt(model, training)
        assert trained_count(training, config) == sum(weight.numpy().size for weight in model.trainable_weights)
        assert len(model.non_trainable_weights) > 0


# training


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*OPTIONS, "average"])
def test_a_stopped_training_ends_as_one_that_was_not_and_changes_adapters_alone(name, tmp_path):
    ema = {"ema_decay": 0.9} if name == "average" else {"optimizer": name, "optimizer_options": OPTIONS[name]}
    model = lora_model(dropout=0.1, micro_batches=2, lora_matrices=[*ALL, "norms", "embeddings"], **ema)
    before = weights_by_path(model)
    assert_stopped_ends_as_uninterrupted(model, tmp_path)
    trained = {weight.path for weight in model.trainable_variables}
    assert all(path.endswith(("lora_kernel_a", "lora_kernel_b", "/gamma", "/beta", "/matrix")) for path in trained)
    for path, value in weights_by_path(model).items():
        assert np.array_equal(value, before[path]) is (path not in trained), path


def test_the_optimizer_keeps_something_for_adapters_alone():
    model = lora_model()
    slots = [variable for variable in model.optimizer.variables if len(variable.shape)]
    assert len(slots) == 2 * len(model.trainable_variables) == 2 * 2 * 2 * 3  # query and value of three attentions
    numbers = sum(int(np.prod(variable.shape)) for variable in slots)
    assert numbers == 2 * trained_count(TrainingConfig(**LORA), TINY) == 2 * 6 * 2 * (16 + 16)


@pytest.mark.nightly
def test_xla_trains_as_tensorflow_does():
    found = []
    for xla in (False, True):
        model = lora_model(xla=xla, lora_matrices=ALL)
        train(model, 0, 3)
        found.append([as_numpy(weight) for weight in model.trainable_variables])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, atol=1e-4)


def test_the_estimate_of_memory_keeps_the_weights_once():
    plain = TrainingConfig(histograms_every=0)
    lora = plain.model_copy(update={"lora_rank": 8, "start_from": "base"})
    wide = TransformerConfig(vocab_size=30_000)
    saved = training_memory(plain, wide, 1, plain.row_lengths) - training_memory(lora, wide, 1, plain.row_lengths)
    # of four arrays of all weights three are gone, and four of the adapters came
    assert saved == pytest.approx(4 * (3 * parameter_count(wide) - 4 * trained_count(lora, wide)), abs=8)


# two replicas


def steps_of_two_rows(path=None):
    model = lora_model()
    train(model, 0, 3)
    found = [as_numpy(weight) for weight in model.trainable_variables]
    return np.savez(path, *found) if path else found


@pytest.mark.nightly
def test_two_replicas_train_as_one(tmp_path):
    run = fork_python("-m", "tests.train.test_lora", tmp_path / "found.npz")
    assert run.returncode == 0, run.stderr[-3000:]
    with np.load(tmp_path / "found.npz") as file:
        for one, other in zip(file.values(), steps_of_two_rows(), strict=True):
            assert_close(one, other, atol=1e-4)


# checkpoints and files


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder of four steps, the weights before them, and the model."""
    folder, model = tmp_path_factory.mktemp("lora"), lora_model()
    before = weights_by_path(model)
    fit_in(folder, model, **EVERY)
    return folder, before, model


def test_the_base_is_written_once_and_checkpoints_hold_adapters_alone(trained):
    folder, before, model = trained
    names = [path.name for path in Checkpoints(folder / "checkpoints").paths()]
    assert names == [f"step-{step:08d}.npz" for step in (0, 2, 4)]
    base = read_checkpoint(folder / "checkpoints" / "base.npz")
    assert base.keys() == {f"model/{path}" for path in before if "lora" not in path}
    for path in before.keys() - {path for path in before if "lora" in path}:
        np.testing.assert_array_equal(base[f"model/{path}"], before[path])
    for name in names:
        held = read_weights(folder / "checkpoints" / name)
        assert held.keys() == {path for path in before if "lora" in path}


def test_every_candidate_has_the_adapters_of_its_kind(trained):
    folder, _, model = trained
    training = TrainingConfig(**EVERY, average_checkpoints=2, keep_checkpoints=2)
    (average, means), (last, values) = candidate_weights(RunFolder(folder), training)
    assert "average" in average and "last" in last
    two = [read_weights(folder / f"checkpoints/step-0000000{step}.npz") for step in (2, 4)]
    for path, mean in means.items():
        assert_close(mean, (two[0][path] + two[1][path]) / 2)
        np.testing.assert_array_equal(values[path], two[1][path])


@pytest.mark.parametrize("fault", ["gone", "of another run", "damaged"])
def test_a_base_that_is_not_that_of_the_checkpoints_is_one_sentence(trained, tmp_path, fault):
    shutil.copytree(trained[0] / "checkpoints", tmp_path / "checkpoints")
    base, model = tmp_path / "checkpoints" / "base.npz", lora_model(weights_seed=3)
    if fault == "gone":
        base.unlink()
    elif fault == "damaged":
        content = bytearray(base.read_bytes())
        content[len(content) // 2] ^= 1
        base.write_bytes(content)
    else:
        Checkpoints(tmp_path / "other").save(model, model.optimizer, Progress(0))
        shutil.copy(tmp_path / "other" / "base.npz", base)
    with pytest.raises(CheckpointError) as error:
        Checkpoints(tmp_path / "checkpoints").restore_latest(model, model.optimizer)
    words = {"gone": "is gone", "of another run": "has other weights", "damaged": "is damaged"}[fault]
    assert str(base) in str(error.value) and words in str(error.value) and "\n" not in str(error.value)


def test_a_base_without_a_checkpoint_is_written_anew(tmp_path):
    """A run that was killed before its first checkpoint may begin again from other weights."""
    (tmp_path / "base.npz").write_bytes(b"that of another start")
    model = lora_model()
    Checkpoints(tmp_path).save(model, model.optimizer, Progress(0))
    assert Checkpoints(tmp_path).restore_latest(model, model.optimizer) == Progress(0)


def test_the_file_of_weights_is_a_plain_model_that_computes_the_same(tmp_path):
    model = lora_model(lora_matrices=[*ALL, "norms", "embeddings"])
    fill(model)
    save_weights(model, tmp_path / "model.weights.h5")
    plain = with_weights(build_model(TINY), tmp_path / "model.weights.h5")
    assert not any("lora" in weight.path for weight in plain.weights)
    assert_close(logits(plain), logits(model), atol=1e-5)


# what is refused


@pytest.mark.parametrize(
    ("keys", "config", "sentence"),
    [
        ({"start_from": None}, TINY, "training begins with random weights"),
        ({"lora_rank": 17}, TINY, 'more than the width of the matrix "query", 16 x 16.* at most 16'),
        ({"lora_rank": 17, "lora_matrices": ["ffn"]}, TINY, '"ffn", 16 x 24'),
        ({"lora_matrices": ["norms"]}, TINY, "without a matrix to adapt: add some of query, key, value, output, ffn"),
        ({"frozen": ["embedding"]}, TINY, "leave one of the two out"),
        ({}, RecurrentConfig(vocab_size=9, d_model=8), "model.kind is 'recurrent'"),
    ],
)
def test_adapters_without_something_to_adapt_are_one_sentence(keys, config, sentence):
    with pytest.raises(ConfigError, match=sentence) as error:
        check_lora(TrainingConfig(**LORA | keys), config)
    assert "\n" not in str(error.value)
    check_lora(TrainingConfig(**LORA | {"lora_rank": 16}), TINY)


@pytest.mark.parametrize("key", [{"lora_alpha": 2.0}, {"lora_matrices": ["ffn"]}])
def test_keys_that_need_a_rank_are_refused_without_one(key):
    with pytest.raises(ConfigError, match=f"training.{[*key][0]} is .* without training.lora_rank"):
        check_idle_keys(TrainingConfig(**key))


def test_an_unknown_matrix_is_refused_with_those_that_there_are():
    with pytest.raises(
        pydantic.ValidationError, match=re.escape("'query', 'key', 'value', 'output', 'ffn', 'norms' or 'embeddings'")
    ):
        TrainingConfig(lora_matrices=["values"])


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        steps_of_two_rows(sys.argv[1])
