"""A SavedModel that answers at once: every signature that a server must know, without a Transformer."""

import atexit
import functools
import pathlib
import shutil
import tempfile

import tensorflow as tf

TEXT = tf.TensorSpec([None], tf.string, name="text")
TWICE, AT_ONCE, TRUE = tf.constant([2]), tf.constant([0.0]), tf.constant(True)


class Echo(tf.Module):
    """Returns what it was asked. `mark` tells versions apart."""

    def __init__(self, mark=""):
        super().__init__()
        self.mark = tf.Variable(mark)

    @tf.function(input_signature=[TEXT], autograph=False)
    def translate(self, text):
        return {"translation": self.mark + text, "score": tf.cast(-tf.strings.length(text), tf.float32)}

    @tf.function(
        input_signature=[
            TEXT,
            tf.TensorSpec([None], tf.int32, name="times"),
            tf.TensorSpec([None], tf.float32, name="spin"),
        ],
        autograph=False,
    )
    def repeat(self, text, times=TWICE, spin=AT_ONCE):
        """Repeat each text; with `spin` work for so many seconds. `rows` shows the whole batch.

        The clock decides, not a number of products, so that a fast machine is busy as long as a slow one.
        """
        tf.debugging.assert_greater_equal(times, 1, "times must be at least 1")
        end = tf.timestamp() + tf.cast(tf.reduce_max(tf.concat([spin, [0.0]], 0)), tf.float64)
        [spun] = tf.while_loop(lambda x: tf.timestamp() < end, lambda x: [tf.tanh(x @ x)], [tf.fill([200, 200], 0.1)])
        rows = tf.fill(tf.shape(text), tf.size(text))
        repeated = tf.map_fn(
            lambda pair: tf.strings.reduce_join(tf.repeat(pair[0], pair[1])),
            (text, tf.broadcast_to(times, tf.shape(text))),
            fn_output_signature=tf.string,
        )
        return {"repeated": repeated, "rows": rows + tf.cast(0 * spun[0, 0], tf.int32)}

    @tf.function(input_signature=[TEXT], autograph=False)
    def words(self, text):
        """Words, padded to the most of a line in the batch."""
        return {"words": tf.strings.split(text).to_tensor(""), "line": text}

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32, name="pair"), tf.TensorSpec([], tf.bool, name="is_sum")],
        autograph=False,
    )
    def reduce(self, pair, is_sum=TRUE):
        return {"total": tf.where(is_sum, tf.reduce_sum(pair, 1), tf.reduce_prod(pair, 1)), "of": tf.size(pair)}


def write_echo(folder, mark=""):
    """Write a version. Returns its path."""
    shutil.copytree(saved_echo(mark), folder, copy_function=shutil.copy, dirs_exist_ok=True)  # with times of its own
    return pathlib.Path(folder)


@functools.cache
def saved_echo(mark):
    """A version that is written once per process, since that takes a third of a second. Returns its path."""
    place = tempfile.TemporaryDirectory()
    atexit.register(place.cleanup)
    echo = Echo(mark)
    signatures = {"serving_default": echo.translate, "repeat": echo.repeat, "words": echo.words, "reduce": echo.reduce}
    tf.saved_model.save(echo, place.name, signatures)
    return place.name
