"""One position after the other: the loop of every recurrent layer."""

from collections.abc import Callable, Sequence

import keras
from keras import ops


def scan(
    step: Callable, state: Sequence, inputs: Sequence, collected: Sequence[int] = (0,), reverse: bool = False
) -> list:
    """Compute state = step(state, inputs at position t) for t = 0, 1, 2 and so on; from the last t to 0 if `reverse`.

    `step` takes and returns a list of tensors (B, ...). Shapes: state, a list of (B, ...); inputs, a list of
    (B, L, ...), of any L of at least 1. Returns what the parts of the state with the numbers `collected` were after
    each position, a list of (B, L, ...).
    """
    inputs = [ops.swapaxes(values, 0, 1) for values in inputs]  # (L, B, ...)
    loop = tensorflow_loop if keras.backend.backend() == "tensorflow" else keras_loop
    return [ops.swapaxes(values, 0, 1) for values in loop(step, list(state), inputs, collected, reverse)]


def keras_loop(step: Callable, state: list, inputs: list, collected: Sequence[int], reverse: bool) -> list:
    """`scan` by `keras.ops.scan`; inputs and results begin with L."""

    def one_position(state, values):
        state = step(list(state), list(values))
        return tuple(state), tuple(state[number] for number in collected)

    _, outputs = ops.scan(one_position, tuple(state), tuple(inputs), reverse=reverse)
    return list(outputs)


def tensorflow_loop(step: Callable, state: list, inputs: list, collected: Sequence[int], reverse: bool) -> list:
    """`scan` by `tf.while_loop`; inputs and results begin with L.

    `keras.ops.scan` does not tell TensorFlow the largest number of its steps, without which XLA cannot compile the
    gradient.
    """
    import tensorflow as tf

    length = inputs[0].shape[0]  # None if it is not known before the graph runs
    positions = tf.shape(inputs[0])[0] if length is None else length
    arrays = [tf.TensorArray(values.dtype, positions, element_shape=values.shape[1:]) for values in inputs]
    arrays = [array.unstack(values) for array, values in zip(arrays, inputs, strict=True)]
    state = list(map(tf.convert_to_tensor, state))
    outputs = [
        tf.TensorArray(state[number].dtype, positions, element_shape=state[number].shape) for number in collected
    ]

    def one_position(done, state, outputs):
        position = positions - 1 - done if reverse else done
        state = step(state, [array.read(position) for array in arrays])
        outputs = [array.write(position, state[number]) for array, number in zip(outputs, collected, strict=True)]
        return done + 1, state, outputs

    _, _, outputs = tf.while_loop(
        lambda done, state, outputs: done < positions, one_position, (0, state, outputs), maximum_iterations=length
    )
    return [array.stack() for array in outputs]
