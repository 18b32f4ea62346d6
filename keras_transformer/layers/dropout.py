"""Dropout with a mask that is a hash of (seed, place): cheap, because XLA fuses it with what it multiplies."""

import operator

import keras
from keras import ops

from keras_transformer.ground.bits import mixed
from keras_transformer.ground.replicas import number_of_replica, replica_count

STREAM_OF_REPLICA = 0x9E3779B9  # per replica number, added to the stream: far larger than differences between layers


def random_bits(shape: tuple, seed):
    """One uint32 for each place of `shape`, a pure function of `seed` and the place's number.

    A counter passes twice through `mixed`. Both passes use the first word of the seed. If only the first pass did, that
    word would select a window of one sequence of 2^32 numbers, and the windows of wide layers would overlap. Not for
    cryptography.

    XLA fuses this arithmetic into the operation that applies the mask. A generator with a state would need a pass over
    memory of its own, and several times the work on a CPU.

    Shapes: seed int (2,) -> `shape`, which may hold symbolic lengths.
    """
    seed = ops.cast(seed, "uint32")
    size = 1
    for length in shape:
        size = size * length
    counter = ops.cast(ops.arange(size), "uint32")
    stream = mixed(seed[0])
    return ops.reshape(mixed(mixed(counter + stream) + mixed(stream + seed[1])), shape)


def dropout(inputs, rate: float, seed):
    """Zero each element with probability `rate` and divide the others by 1 - rate (Srivastava et al. 2014).

    The same seed and shape give the same mask.
    Shapes: inputs any, seed int (2,) -> the shape of `inputs`.
    """
    is_kept = random_bits(ops.shape(inputs), seed) >= ops.cast(int(rate * 2**32), "uint32")
    return ops.where(is_kept, inputs / ops.cast(1.0 - rate, inputs.dtype), ops.cast(0.0, inputs.dtype))


def seed_of_replica(seed):
    """Return the seed (2,) of this replica's masks. Keras gives all replicas the same one, which the first keeps."""
    if replica_count() == 1:
        return seed
    return seed + ops.stack([ops.cast(number_of_replica(), seed.dtype) * STREAM_OF_REPLICA, ops.zeros_like(seed[1])])


@keras.saving.register_keras_serializable("keras_transformer")
class Dropout(keras.layers.Layer):
    """Apply `dropout` in training, with another mask in every call and replica; return the inputs unchanged otherwise.

    Args:
        rate: probability of zero, in [0, 1). Raises ValueError for any other.
        seed: of the masks; None draws one from `keras.utils.set_random_seed`.

    Shapes: (...,) -> (...,), each number with a draw of its own.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be in [0, 1). Received: rate={rate}")
        self.rate = rate
        self.seed = None if seed is None else operator.index(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed) if rate > 0 else None
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training: bool = False):
        if training and self.seed_generator is not None:
            return dropout(inputs, self.rate, seed_of_replica(self.seed_generator.next()))
        return inputs

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return input_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
