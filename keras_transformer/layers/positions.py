"""The table of kinds of positions, and those that act inside self-attention: rotary, relative, ALiBi.

Sinusoids and learned positions are added to embeddings (embedding.py). The kinds here rotate queries and keys, or add a
bias to scores. A stack of blocks computes either once, for all its self-attentions. Attention to the memory has none.

A segment is contiguous, so the distance of two of its positions is that of their places in the row.
"""

import math
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.embedding import LearnedPositions, SinusoidalPositions, as_ids, rows_in


class AttentionPositions(keras.layers.Layer):
    """Positions that act in self-attention: `argument` names what a block gets of them.

    As a layer it takes the positions of a whole stack; `at_step` is the same at one position of a search.
    """

    argument: str

    def compute_output_spec(self, positions) -> keras.KerasTensor:
        return keras.KerasTensor(self.compute_output_shape(positions.shape), self.compute_dtype)

    def at_step(self, position, entries):
        """Return what self-attention gets at `position`, int (), whose keys stand at `entries`, int (B, E)."""
        raise NotImplementedError


def rotation_of(positions, width: int):
    """The factors by which `rotated` turns heads (Su et al. 2021, eq. 34).

        angle(pos, i) = pos / 10000^(2i / width)

    Computed in float32. Shapes: positions (B, L) -> (B, L, 2 width): the cosines of both halves of the channels, then
    the sines, those of the first half negative. `width` is even.
    """
    wavelengths = ops.power(10000.0, ops.arange(0, width, 2, dtype="float32") / width)
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) / wavelengths
    cosines, sines = ops.cos(angles), ops.sin(angles)
    return ops.concatenate([cosines, cosines, -sines, sines], axis=-1)


@keras.saving.register_keras_serializable("keras_transformer")
class RotaryPositions(AttentionPositions):
    """Turn queries and keys by angles that grow with their position (Su et al. 2021).

    The score of a query and a key then depends on their distance. Channel i is paired with channel i + d_k / 2, as in
    Llama, keras-hub and CTranslate2; the paper pairs neighbours, which is another order of the columns of W^Q and W^K.

    Shapes: positions int (B, L) -> (B, L, 2 d_k), see `rotation_of`. Raises ValueError for an odd width.
    """

    argument = "rotation"

    def __init__(self, d_k: int, **kwargs):
        super().__init__(**kwargs)
        if d_k % 2:
            raise ValueError(f"d_k must be even: rotations turn pairs of channels. Received: d_k={d_k}")
        self.d_k = d_k

    def call(self, positions):
        return ops.cast(rotation_of(as_ids(positions), self.d_k), self.compute_dtype)

    def at_step(self, position, entries):
        return rotation_of(ops.reshape(position, (1, 1)), self.d_k)

    def compute_output_shape(self, positions_shape: tuple) -> tuple:
        return (*positions_shape, 2 * self.d_k)

    def get_config(self) -> dict:
        return {**super().get_config(), "d_k": self.d_k}


class BiasPositions(AttentionPositions):
    """Positions that add a bias to the score of a query and a key, by their distance and the head.

    Shapes: positions int (B, L) -> bias (1, h, L, L).
    """

    argument = "bias"
    num_heads: int

    def bias_of(self, distances):
        """Return what is added if the key stands `distances` after the query: int (..., K) -> (..., K, h)."""
        raise NotImplementedError

    def call(self, positions):
        places = ops.arange(ops.shape(positions)[1])
        bias = self.bias_of(ops.expand_dims(places, 0) - ops.expand_dims(places, 1))
        return ops.expand_dims(ops.transpose(bias, (2, 0, 1)), 0)

    def at_step(self, position, entries):
        bias = ops.swapaxes(self.bias_of(entries - ops.cast(position, "int32")), 1, 2)
        return ops.expand_dims(ops.cast(bias, "float32"), 2)  # (B, h, 1, E)

    def compute_output_shape(self, positions_shape: tuple) -> tuple:
        return 1, self.num_heads, positions_shape[1], positions_shape[1]


def bucket_of(distance: int, buckets: int, longest: int, bidirectional: bool) -> int:
    """Return the bucket of a key that stands `distance` after its query (Raffel et al. 2020, section 2.1).

    The nearest half of the distances have buckets of their own, the others share buckets that grow like logarithms, and
    from `longest` on all share the last one. With `bidirectional` each direction has half of the buckets, the keys
    before the query the first half; without, all later keys have the bucket of distance 0, which masks hide.
    """
    if bidirectional:
        of_direction = buckets // 2
        first, distance = (of_direction if distance > 0 else 0), abs(distance)
    else:
        of_direction, first, distance = buckets, 0, max(-distance, 0)
    exact = of_direction // 2
    if distance < exact:
        return first + distance
    shared = math.log(distance / exact) / math.log(longest / exact) * (of_direction - exact)
    return first + min(exact + int(shared), of_direction - 1)


@keras.saving.register_keras_serializable("keras_transformer")
class RelativePositions(BiasPositions):
    """A learned bias for each bucket of distances and each head, of all blocks of a stack (Raffel et al. 2020: T5).

    Args:
        num_heads: h.
        relative_buckets: rows of the table, each of h biases.
        relative_distance: from which distance on all keys share a bucket.
        bidirectional: half of the buckets are for keys after the query, as in an encoder.
    """

    def __init__(
        self,
        num_heads: int,
        relative_buckets: int = 32,
        relative_distance: int = 128,
        bidirectional: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.relative_buckets = relative_buckets
        self.relative_distance = relative_distance
        self.bidirectional = bidirectional
        distances = range(-relative_distance, relative_distance + 1)
        arguments = relative_buckets, relative_distance, bidirectional
        self.buckets = np.array([bucket_of(distance, *arguments) for distance in distances], "int32")

    def build(self, positions_shape: tuple):
        self.table = self.add_weight(
            name="table",
            shape=(self.relative_buckets, self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
            autocast=False,  # see `rows_in`
        )

    def bias_of(self, distances):
        longest = self.relative_distance
        places = ops.clip(distances, -longest, longest) + longest
        return rows_in(self.compute_dtype, self.table, ops.take(self.buckets, places, axis=0))

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "relative_buckets": self.relative_buckets,
            "relative_distance": self.relative_distance,
            "bidirectional": self.bidirectional,
        }


def alibi_slopes(num_heads: int) -> list[float]:
    """Return the slope of each head (Press et al. 2022, section 3, and their code for other numbers of heads).

    2^(-8/h), 2^(-16/h) and so on, if h is a power of two. Of another h, the slopes of the power below come first, and
    then every second one of twice that power.
    """
    power = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * n / power) for n in range(1, power + 1)]
    return slopes + [2 ** (-4 * n / power) for n in range(1, 2 * power, 2)][: num_heads - power]


@keras.saving.register_keras_serializable("keras_transformer")
class AlibiPositions(BiasPositions):
    """Lower the score of a query and a key by their distance times the slope of the head (Press et al. 2022).

    There are no weights. In an encoder the bias is the same in both directions.
    """

    def __init__(self, num_heads: int, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def bias_of(self, distances):
        slopes = ops.convert_to_tensor(alibi_slopes(self.num_heads), self.compute_dtype)
        return ops.expand_dims(ops.cast(-ops.abs(distances), self.compute_dtype), -1) * slopes

    def get_config(self) -> dict:
        return {**super().get_config(), "num_heads": self.num_heads}


class PositionKind(NamedTuple):
    """A kind of positions: its layer, and the fields of the configuration with which it is made."""

    layer: Any  # adds to embeddings, or is a class of AttentionPositions
    fields: tuple[str, ...]  # "bidirectional" is true of the source

    @property
    def argument(self) -> str | None:
        """What self-attention gets of them; None if they are added to embeddings."""
        return self.layer.argument if issubclass(self.layer, AttentionPositions) else None


POSITIONS = {  # by `config.POSITIONS`
    "sinusoidal": PositionKind(SinusoidalPositions, ("sinusoids", "first_position")),
    "learned": PositionKind(LearnedPositions, ("max_positions",)),
    "rotary": PositionKind(RotaryPositions, ("d_k",)),
    "relative": PositionKind(
        RelativePositions, ("num_heads", "relative_buckets", "relative_distance", "bidirectional")
    ),
    "alibi": PositionKind(AlibiPositions, ("num_heads",)),
}
