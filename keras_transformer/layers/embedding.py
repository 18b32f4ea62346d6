"""Token embedding with tied logits, and positions (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class TokenEmbedding(keras.layers.Layer):
    """One matrix E that reads tokens and, transposed, scores them (section 3.4).

        embed(ids) = E[ids] * sqrt(d_model)        logits(states) = states @ E^T

    `layer(ids)` embeds; `layer(states, reverse=True)` gives logits, so that a functional graph can use the same
    weights twice. Drawn from a normal distribution of variance 1 / d_model: scaled embeddings then have variance 1,
    as positions have about, and logits of normalised states too.

    Shapes: ids int (B, L) -> (B, L, d_model); states (B, L, d_model) -> logits (B, L, vocab_size).
    """

    def __init__(self, vocab_size, d_model, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.d_model = vocab_size, d_model

    def build(self, input_shape=None):
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )

    def call(self, inputs, reverse=False):
        return self.logits(inputs) if reverse else self.embed(inputs)

    def embed(self, ids):
        embedded = ops.take(ops.convert_to_tensor(self.matrix), ids, axis=0)
        return ops.cast(embedded, self.compute_dtype) * ops.cast(self.d_model**0.5, self.compute_dtype)

    def logits(self, states):
        matrix = ops.cast(ops.convert_to_tensor(self.matrix), self.compute_dtype)
        return ops.matmul(ops.cast(states, self.compute_dtype), ops.transpose(matrix))

    def get_config(self):
        return {**super().get_config(), "vocab_size": self.vocab_size, "d_model": self.d_model}


def sinusoidal_encoding(positions, d_model):
    """Sine and cosine waves of geometrically growing length, interleaved (section 3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i / d_model))        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    Computed in float32 whatever the policy: bfloat16 cannot tell position 256 from 257.
    Shapes: positions (...,), d_model even -> float32 (..., d_model). Raises ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even: waves come in pairs. Received: d_model={d_model}")
    wavelengths = ops.power(10000.0, ops.arange(0, d_model, 2, dtype="float32") / d_model)  # (d_model / 2,)
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) / wavelengths
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # (..., d_model / 2, 2)
    return ops.reshape(pairs, (*ops.shape(angles)[:-1], d_model))


@keras.saving.register_keras_serializable("keras_transformer")
class SinusoidalPositions(keras.layers.Layer):
    """Adds the sinusoidal encoding of each token's position to its embedding (section 3.5). No weights, no end.

    Shapes: embedded (B, L, d_model), positions int (B, L) -> (B, L, d_model).
    """

    def call(self, embedded, positions):
        return embedded + ops.cast(sinusoidal_encoding(positions, embedded.shape[-1]), embedded.dtype)

    def compute_output_shape(self, embedded_shape, positions_shape):
        return embedded_shape


@keras.saving.register_keras_serializable("keras_transformer")
class LearnedPositions(keras.layers.Layer):
    """Adds a learned vector for each position (Gehring et al. 2017; Table 3, E).

    A position past the last row of the table gets the last row: callers that can, refuse such lengths before.
    Shapes: embedded (B, L, d_model), positions int (B, L) -> (B, L, d_model).
    """

    def __init__(self, max_positions, **kwargs):
        super().__init__(**kwargs)
        self.max_positions = max_positions

    def build(self, embedded_shape, positions_shape=None):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, embedded_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def call(self, embedded, positions):
        positions = ops.minimum(positions, self.max_positions - 1)
        return embedded + ops.cast(ops.take(ops.convert_to_tensor(self.table), positions, axis=0), embedded.dtype)

    def compute_output_shape(self, embedded_shape, positions_shape=None):
        return embedded_shape

    def get_config(self):
        return {**super().get_config(), "max_positions": self.max_positions}
