"""Stock `fit` and `evaluate` of one batch on one replica and on two, in a process with two logical CPUs.

python -m tests.support.scripts.two_replicas RESULTS.npz
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.losses import token_sums
from tests.support.models import SMALL, batch_of, randomise

PAIRS = [([5, 6, 7, 3], [2, 8, 9, 10, 11]), ([12, 13, 3], [2, 14, 15]), ([16, 3], [2, 17]), ([20, 3], [2, 21])]
PLACES = 1000
CONFIG = SMALL.replace(encoder_layers=1, decoder_layers=1, dropout=0.0)


def batch():
    """Four rows of one pair each: the first two have 8 real target tokens, the last two have 4; and their labels."""
    inputs = batch_of([[pair] for pair in PAIRS], 5, 7)
    labels = np.zeros_like(inputs["target_ids"])
    for row, (_, target) in zip(labels, PAIRS, strict=True):
        row[: len(target)] = [*target[1:], 3]
    return inputs, labels


def scalar_mean(labels, logits):
    """What a user may write, and what Keras does not scale: the mean over this replica's real tokens."""
    sums = token_sums(logits, keras.ops.cast(labels, "int32"), keras.ops.not_equal(labels, 0))
    return sums.loss / sums.tokens


def compiled(loss):
    """A small Transformer with weights that depend on nothing; the step of SGD at rate 1 is the gradient itself."""
    model = randomise(kt.Transformer(CONFIG))
    model.compile(
        keras.optimizers.SGD(1.0), loss=loss, metrics=[kt.TokenAccuracy(), kt.Perplexity()], jit_compile=False
    )
    return model


def one_step(loss, real_rows=4, evaluate=False):
    """Logs of one `fit` step, the gradient of that step, and logs of `evaluate` before it.

    Rows of the batch after `real_rows` are padding.
    """
    model = compiled(loss)
    dataset = tf.data.Dataset.from_tensors(tf.nest.map_structure(lambda ids: only(real_rows, ids), batch()))
    evaluated = model.evaluate(dataset, return_dict=True, verbose=0) if evaluate else {}
    before = [np.asarray(weight.value) for weight in model.trainable_weights]
    fitted = model.fit(dataset, verbose=0).history
    gradient = [old - np.asarray(weight.value) for old, weight in zip(before, model.trainable_weights, strict=True)]
    return {
        **{f"evaluate/{name}": value for name, value in evaluated.items()},
        **{f"fit/{name}": values[0] for name, values in fitted.items()},
        "gradient": np.concatenate([part.ravel() for part in gradient]),
    }


def of_seven_rows():
    """Logs of `evaluate` and of one epoch of `fit` of two batches, of which the second has three rows."""
    model = compiled(kt.LabelSmoothedCrossentropy())
    rows = tf.nest.map_structure(lambda ids: np.concatenate([ids, ids[1:]]), batch())
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    return {"evaluate": model.evaluate(dataset, verbose=0)[0], "fit": model.fit(dataset, verbose=0).history["loss"][0]}


def kept():
    """Which places of four rows a dropout layer of seed 1 keeps in one `fit` step: the others have no gradient."""
    inputs = keras.Input((4,))
    states = keras.layers.Dense(PLACES, use_bias=False)
    model = keras.Model(inputs, kt.Dropout(0.5, seed=1)(states(inputs)))
    model.compile(keras.optimizers.SGD(1.0), loss=lambda labels, outputs: outputs, jit_compile=False)
    before = np.asarray(states.kernel.value)
    model.fit(tf.data.Dataset.from_tensors((np.eye(4), np.zeros((4, PLACES)))), verbose=0)
    return np.asarray(states.kernel.value) != before


def only(real_rows, ids):
    return np.where(np.arange(len(ids))[:, None] < real_rows, ids, 0)


def main(path):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        runs = {
            "two": one_step(kt.LabelSmoothedCrossentropy(), evaluate=True),
            "half": one_step(kt.LabelSmoothedCrossentropy(), real_rows=2),
            "sum": one_step(kt.LabelSmoothedCrossentropy(reduction="sum")),
            "scalar": one_step(scalar_mean),
            "dropout": {"kept": kept()},
            "uneven": of_seven_rows(),
        }
    np.savez(path, **{f"{run}/{name}": value for run, found in runs.items() for name, value in found.items()})


if __name__ == "__main__":
    main(sys.argv[1])
