"""Dropout whose mask is a hash of (seed, place): cheap enough to vanish inside a compiled step."""

import keras
from keras import ops


def random_bits(shape, seed):
    """One uint32 for each place of `shape`, a pure function of `seed` (two integers) and the place's number.

    A counter through the finalizer "lowbias32" (Wellons 2018, "Prospecting for Hash Functions"), twice. The first word
    of the seed counts in both passes: in the first alone it would only say where on one sequence of 2^32 numbers a mask
    begins, and the masks of wide layers would overlap. Not for cryptography. XLA fuses it with what it multiplies;
    generators with a state cost a pass over memory of their own, and on a CPU several times the work.
    """
    seed = ops.cast(seed, "uint32")
    size = 1
    for length in shape:
        size = size * length
    counter = ops.cast(ops.arange(size), "uint32")
    stream = _mix(seed[0])
    return ops.reshape(_mix(_mix(counter + stream) + _mix(stream + seed[1])), shape)


def _mix(bits):
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(16, "uint32")))
    bits = bits * ops.cast(0x7FEB352D, "uint32")
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(15, "uint32")))
    bits = bits * ops.cast(0x846CA68B, "uint32")
    return ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(16, "uint32")))


def dropout(inputs, rate, seed):
    """Zero each element with probability `rate`, divide the others by 1 - rate (Srivastava et al. 2014).

    Shapes: inputs any; seed two integers. The same seed gives the same mask.
    """
    is_kept = random_bits(ops.shape(inputs), seed) >= ops.cast(int(rate * 2**32), "uint32")
    return ops.where(is_kept, inputs / ops.cast(1.0 - rate, inputs.dtype), ops.cast(0.0, inputs.dtype))


@keras.saving.register_keras_serializable("keras_transformer")
class Dropout(keras.layers.Layer):
    """`dropout` in training, nothing otherwise. Shapes: any -> the same. Raises ValueError for a rate not in [0, 1)."""

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be in [0, 1). Received: rate={rate}")
        self.rate, self.seed = rate, seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate > 0 else None
        self.built = True

    def call(self, inputs, training=False):
        if training and self.rate > 0:
            return dropout(inputs, self.rate, self.seed_generator.next())
        return inputs

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
