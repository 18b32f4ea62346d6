"""Numbers that look random and are a function of integers: the same on every backend, in every batch."""

import keras
from keras import ops


def mixed(bits):
    """Mix integers of 32 bits: every bit of the input changes about half the bits of the output.

    Multiplications and shifts with constants by Wellons (2018, "Prospecting for Hash Functions", lowbias32).
    Shapes: uint32, any -> the same.
    """
    bits = modulo_2_to_32(bits)
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(16, "uint32")))
    bits = modulo_2_to_32(bits * ops.cast(0x7FEB352D, "uint32"))
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(15, "uint32")))
    bits = modulo_2_to_32(bits * ops.cast(0x846CA68B, "uint32"))
    return ops.bitwise_xor(bits, ops.right_shift(bits, ops.cast(16, "uint32")))


def modulo_2_to_32(bits):
    """`bits`, which uint32 arithmetic has wrapped already, except on PyTorch: there Keras computes it in int64."""
    if keras.backend.backend() == "torch":
        return ops.bitwise_and(bits, ops.cast(0xFFFFFFFF, "uint32"))
    return bits
