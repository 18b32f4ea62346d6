"""Shifted absolute positions (Kiyono et al. 2021): in training, sentences begin at random positions."""

import operator

import keras
from keras import ops

from keras_transformer.layers.dropout import random_bits, seed_of_replica


def shifted(positions, segments, most: int, seed):
    """Add to the positions of each segment a number of its own, drawn from 0..most with equal chances.

        shifted(pos) = pos + k(segment), k ~ U{0, most}          (Kiyono et al. 2021)

    Distances in a segment stay as they are. The same seed and shape draw the same numbers.
    Shapes: positions and segments int (B, L), seed int (2,) -> int32 (B, L).
    """
    bits = ops.right_shift(random_bits(ops.shape(segments), seed), ops.cast(1, "uint32"))  # an int32 has 31 of them
    drawn = ops.mod(ops.cast(bits, "int32"), most + 1)
    places = ops.maximum(ops.cast(segments, "int32") - 1, 0)  # there are as many segments in a row as places, at most
    return ops.cast(positions, "int32") + ops.take_along_axis(drawn, places, axis=1)


@keras.saving.register_keras_serializable("keras_transformer")
class ShiftedPositions(keras.layers.Layer):
    """Apply `shifted` in training, with other numbers in every call and replica; return the positions otherwise.

    Args:
        most: the largest shift, at least 1. Raises ValueError for any other.
        seed: of the numbers; None draws one from `keras.utils.set_random_seed`.
    """

    def __init__(self, most: int, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        if most < 1:
            raise ValueError(f"most must be at least 1. Received: most={most}")
        self.most = most
        self.seed = None if seed is None else operator.index(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        self.built = True

    def call(self, positions, segments, training: bool = False):
        if not training:
            return positions
        return shifted(positions, segments, self.most, seed_of_replica(self.seed_generator.next()))

    def compute_output_spec(self, positions, segments, training: bool = False) -> keras.KerasTensor:
        return keras.KerasTensor(positions.shape, "int32")

    def compute_output_shape(self, positions_shape: tuple, segments_shape: tuple | None = None) -> tuple:
        return positions_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "most": self.most, "seed": self.seed}
