"""Token embedding with tied logits, and positions (Vaswani et al. 2017, sections 3.4 and 3.5)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.config import SINUSOIDS
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.layers.gather import rows_at

STARTS = {"bos": BOS, "eos": EOS, "pad": PAD, "unk": UNK}  # by `config.DECODER_STARTS`


class OutputWeights(NamedTuple):
    """What makes logits of states, of C tokens, in the compute dtype of the layer."""

    kernel: Any  # (d_model, C): columns of E^T; (B, d_model, C) if each of B sentences has its own
    bias: Any  # (C,) or (B, C); or None


@keras.saving.register_keras_serializable("keras_transformer")
class TokenEmbedding(keras.layers.Layer):
    """One matrix E that reads tokens and, transposed, scores them (section 3.4).

        embed(ids) = E[ids] * sqrt(d_model)        logits(states) = states @ E^T + b

    `layer(ids)` embeds and `layer(states, reverse=True)` computes logits, as in `keras.layers.ReversibleEmbedding`: one
    layer, so that both uses of the matrix stand in one functional graph. Its entries are drawn from a normal
    distribution of variance 1 / d_model. Scaled embeddings then have variance 1, like the logits of normalised
    states. Sinusoidal positions, whose mean square is 1/2, are of the same order.

    Args:
        vocab_size, d_model: rows and columns of E.
        use_bias: add b, one weight per token, to the logits. Without it, as in the paper, b is 0.
        of_model: the configuration of the model whose logits the layer computes, as a dict. `keras.models.clone_model`
            copies layers alone, so that a clone has its configuration from here.
        starts_with: read BOS as another special token, one of STARTS, as a model without BOS does. The row of BOS is
            then no weight of the model, and b does not train: it keeps BOS from being written.

    Shapes: ids (B, L), whole numbers of any type -> (B, L, d_model); states (B, L, d_model) -> logits (B, L,
    vocab_size).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        use_bias: bool = False,
        of_model: dict | None = None,
        starts_with: str = "bos",
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)  # in bfloat16 the id 257 would be 256
        self.supports_masking = True
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.use_bias = use_bias
        self.of_model = of_model
        self.starts_with = starts_with

    def build(self, input_shape: tuple | None = None):
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
            autocast=False,  # see `rows_in`
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.vocab_size,), initializer="zeros", trainable=self.starts_with == "bos"
            )

    def call(self, inputs, reverse: bool = False):
        if reverse:
            return self.logits(inputs)
        ids = as_ids(inputs)
        return self.embed(ids if self.starts_with == "bos" else ops.where(ids == BOS, STARTS[self.starts_with], ids))

    def embed(self, ids):
        """ids (B, L) -> (B, L, d_model)"""
        rows = rows_in(self.compute_dtype, self.matrix, ids)
        return rows * ops.cast(self.d_model**0.5, self.compute_dtype)

    def logits(self, states):
        """states (B, L, d_model) -> (B, L, vocab_size)"""
        return logits_by(self.output_weights(), ops.cast(states, self.compute_dtype))

    def output_weights(self, tokens=None) -> OutputWeights:
        """Return the weights of the logits of all tokens, or of `tokens` alone, in this order: int (C,) or (B, C).

        Decoding computes them once per search.
        """

        def of_tokens(weight):
            weight = ops.convert_to_tensor(weight)
            return ops.cast(weight if tokens is None else ops.take(weight, tokens, axis=0), self.compute_dtype)

        kernel = ops.swapaxes(of_tokens(self.matrix), -1, -2)
        return OutputWeights(kernel, None if self.bias is None else of_tokens(self.bias))

    def in_compute_dtype(self):
        """E in the compute dtype."""
        return ops.cast(ops.convert_to_tensor(self.matrix), self.compute_dtype)

    def compute_output_shape(self, input_shape: tuple, reverse: bool = False) -> tuple:
        return (*input_shape[:-1], self.vocab_size) if reverse else (*input_shape, self.d_model)

    def compute_output_spec(self, inputs, reverse: bool = False) -> keras.KerasTensor:
        return keras.KerasTensor(self.compute_output_shape(inputs.shape, reverse), self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "use_bias": self.use_bias,
            "of_model": None if self.of_model is None else dict(self.of_model),
            "starts_with": self.starts_with,
        }


def logits_by(weights: OutputWeights, states):
    """The logits of C tokens: states (..., d_model) in the compute dtype -> (..., C)

    If each of B sentences has its own tokens, states are (B * K, d_model), those of a sentence one after the other.
    """
    if len(weights.kernel.shape) == 3:
        sentences, d_model, tokens = weights.kernel.shape
        logits = ops.matmul(ops.reshape(states, (sentences, -1, d_model)), weights.kernel)
        logits = logits if weights.bias is None else logits + ops.expand_dims(weights.bias, 1)
        return ops.reshape(logits, (-1, tokens))
    logits = ops.matmul(states, weights.kernel)
    return logits if weights.bias is None else logits + weights.bias


def rows_in(dtype: str, weight, numbers):
    """Return the rows of a weight (N, d) with these numbers, int (any shape), in `dtype`: (any shape, d).

    The gradient of a row is a sum over all places that read it, thousands in a batch. The weight is read in its own
    dtype and its rows are cast after that. So mixed_bfloat16 sums in float32: bfloat16 stops counting at 256, and on a
    GPU JAX adds it up a hundred times more slowly. For this the weight must be made with `autocast=False`.
    """
    return ops.cast(rows_at(ops.convert_to_tensor(weight), numbers), dtype)


def as_ids(values):
    """Return values as a tensor of integers: integers keep their type, and floats, which hold ids, become int32."""
    values = ops.convert_to_tensor(values)
    return ops.cast(values, "int32") if keras.backend.is_float_dtype(values.dtype) else values


def sinusoidal_encoding(positions, d_model: int, sinusoids: str = "paper"):
    """Sine and cosine waves of geometrically growing length, interleaved (section 3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i / d_model))        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    With sinusoids = "tensor2tensor" the exponent is i / (d_model / 2 - 1), so that the longest wave is 10000 times the
    shortest: the authors' own code (tensor2tensor's `get_timing_signal_1d`) and Marian compute that, and put all sines
    before all cosines, which is another order of the columns of every matrix that reads or writes states.

    Computed in float32, whatever the policy: bfloat16 cannot tell position 256 from 257.
    Shapes: positions (...,), d_model even -> float32 (..., d_model). Raises ValueError for an odd d_model and for other
    sinusoids.
    """
    check_sinusoids(sinusoids)
    if d_model % 2:
        raise ValueError(f"d_model must be even: sinusoids come in pairs. Received: d_model={d_model}")
    if sinusoids == "paper":
        exponents = ops.arange(0, d_model, 2, dtype="float32") / d_model  # (d_model / 2,)
    else:
        exponents = ops.arange(d_model // 2, dtype="float32") / max(d_model // 2 - 1, 1)
    wavelengths = ops.power(10000.0, exponents)
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) / wavelengths
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # (..., d_model / 2, 2)
    return ops.reshape(pairs, (*ops.shape(angles)[:-1], d_model))


def check_sinusoids(sinusoids: str) -> None:
    """Raises ValueError if there are no such sinusoids."""
    if sinusoids not in SINUSOIDS:
        raise ValueError(f"sinusoids must be one of {', '.join(SINUSOIDS)}. Received: sinusoids={sinusoids!r}")


@keras.saving.register_keras_serializable("keras_transformer")
class SinusoidalPositions(keras.layers.Layer):
    """Add the sinusoidal encoding of each token's position to its embedding (section 3.5).

    It has no weights and no longest position. `sinusoids` is that of `sinusoidal_encoding`; position n gets the
    encoding of `first_position` + n.
    Shapes: embedded (B, L, d_model), positions int (B, L) -> (B, L, d_model).
    Raises ValueError for other sinusoids.
    """

    def __init__(self, sinusoids: str = "paper", first_position: int = 0, **kwargs):
        super().__init__(**kwargs)
        check_sinusoids(sinusoids)
        self.sinusoids = sinusoids
        self.first_position = first_position
        self.supports_masking = True

    def call(self, embedded, positions):
        encoding = sinusoidal_encoding(as_ids(positions) + self.first_position, embedded.shape[-1], self.sinusoids)
        return embedded + ops.cast(encoding, embedded.dtype)

    def compute_output_shape(self, embedded_shape: tuple, positions_shape: tuple | None = None) -> tuple:
        return embedded_shape

    def encodings(self, positions: int, d_model: int):
        """Return what is added at the first positions: (positions, d_model)."""
        return sinusoidal_encoding(ops.arange(positions) + self.first_position, d_model, self.sinusoids)

    def get_config(self) -> dict:
        return {**super().get_config(), "sinusoids": self.sinusoids, "first_position": self.first_position}


@keras.saving.register_keras_serializable("keras_transformer")
class LearnedPositions(keras.layers.Layer):
    """Add a learned vector for each position to the embedding (Gehring et al. 2017; Table 3, E).

    A position beyond `max_positions - 1` gets the last vector. The commands of this project refuse or cut longer
    sentences. If you call `fit` with your own data, cut them yourself.

    Shapes: embedded (B, L, d_model), positions int (B, L) -> (B, L, d_model).
    Raises ValueError for fewer than one position.
    """

    def __init__(self, max_positions: int, **kwargs):
        super().__init__(**kwargs)
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1. Received: max_positions={max_positions}")
        self.max_positions = max_positions
        self.supports_masking = True

    def build(self, embedded_shape: tuple, positions_shape: tuple | None = None):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, embedded_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
            autocast=False,  # see `rows_in`
        )

    def call(self, embedded, positions):
        positions = ops.minimum(as_ids(positions), self.max_positions - 1)
        return embedded + rows_in(embedded.dtype, self.table, positions)

    def compute_output_shape(self, embedded_shape: tuple, positions_shape: tuple | None = None) -> tuple:
        return embedded_shape

    def encodings(self, positions: int, d_model: int):
        """Return what is added at each of the positions that have a vector: (max_positions, d_model)."""
        return ops.convert_to_tensor(self.table)

    def get_config(self) -> dict:
        return {**super().get_config(), "max_positions": self.max_positions}


def logits_bias(model: keras.Model):
    """The bias of a model's logits (V,); None if it has none."""
    return next((layer.bias for layer in model.layers if isinstance(layer, TokenEmbedding) and layer.use_bias), None)
