"""TransformerConfig with the presets of the paper: what the model is."""

import dataclasses
import difflib
import json
import math
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.model_config import BaseModelConfig, is_number

NORMS = ("post", "pre")
NORM_KINDS = ("layer", "rms")
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "alibi")
ADDED_POSITIONS = ("sinusoidal", "learned")  # to embeddings; the others act in self-attention
SINUSOIDS = ("paper", "tensor2tensor")  # see layers.embedding.sinusoidal_encoding
DECODER_STARTS = ("bos", "eos", "pad", "unk")  # see layers.embedding.TokenEmbedding
ENCODER_LAYERS = ("self_attention", "recurrent", "convolutional", "restricted")  # the rows of Table 1
DECODER_LAYERS = ("self_attention", "ssru")
ACTIVATIONS = (  # the activations of Keras that keep the width and need no other argument
    "celu",
    "elu",
    "exponential",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
)
GATED_ACTIVATIONS = ("geglu", "geglu_tanh", "swiglu")  # Shazeer 2020: a third matrix in the feed-forward network
MOST_DISTANCE = 65_536  # of relative positions: each distance has an entry in a table
MEANT_FOR = {  # fields that have a meaning only with this value of this other field
    "kernel_size": ("encoder_layer", "convolutional"),
    "dilated": ("encoder_layer", "convolutional"),
    "neighbourhood": ("encoder_layer", "restricted"),
    "max_positions": ("positions", "learned"),
    "sinusoids": ("positions", "sinusoidal"),
    "first_position": ("positions", "sinusoidal"),
    "relative_buckets": ("positions", "relative"),
    "relative_distance": ("positions", "relative"),
    "tied_logits": ("shared_embeddings", True),
}


@dataclasses.dataclass(frozen=True)
class TransformerConfig(BaseModelConfig):
    """Everything that decides the shape and the function of a Transformer (Vaswani et al. 2017, section 3, Table 3).

    `dropout`, `label_smoothing` and `shift_positions` do not change what the model computes in inference. The first two
    belong to a row of Table 3, and training uses them unless its own configuration sets others.

    Raises ConfigError for a field that makes no sense.
    """

    kind = "transformer"

    vocab_size: int = 37000  # joint source and target vocabulary (section 5.1: about 37,000 BPE tokens)
    encoder_layers: int = 6  # N
    decoder_layers: int = 6  # N
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8  # h
    key_dim: int | None = None  # d_k, width of one head's queries and keys; None: d_model / num_heads
    value_dim: int | None = None  # d_v, width of one head's values; None: d_model / num_heads
    activation: str = "relu"  # of the feed-forward network (eq. 2: max(0, x)), one of ACTIVATIONS or GATED_ACTIVATIONS
    norm: str = "post"  # "post": LayerNorm(x + Sublayer(x)), section 3.1; "pre": x + Sublayer(LayerNorm(x))
    norm_kind: str = "layer"  # LayerNorm, or "rms": RMSNorm (Zhang and Sennrich 2019), without mean and shift
    norm_epsilon: float = 1e-6
    positions: str = "sinusoidal"  # or "learned", Table 3 (E); "rotary", "relative", "alibi": layers/positions.py
    max_positions: int = 1024  # rows of the learned positional embedding; sinusoids have no limit
    sinusoids: str = "paper"  # wavelengths of section 3.5, or "tensor2tensor": of the authors' own code and of Marian
    first_position: int = 0  # whose sinusoids the first token of a sentence gets; fairseq's models begin at 2
    relative_buckets: int = 32  # of distances, each with a learned bias per head: T5's
    relative_distance: int = 128  # from which on all distances share a bucket
    encoder_layer: str = "self_attention"  # what mixes positions in an encoder block, one of ENCODER_LAYERS (Table 1)
    kernel_size: int = 3  # k of the convolutional encoder, odd
    dilated: bool = False  # block n of the convolutional encoder has dilation 2^(n - 1), not 1
    neighbourhood: int = 17  # r of the restricted encoder, odd: a position attends to at most r positions around it
    decoder_start: str = "bos"  # whose embedding the decoder begins with; fairseq's models have "eos", T5 "pad" for BOS
    decoder_layer: str = "self_attention"  # what reads the earlier positions in a decoder block; "ssru": layers/ssru.py
    feed_forward_bias: bool = True  # b_1 and b_2 of eq. 2, which gated networks never have; T5 has none
    attention_bias: bool = False  # the paper's projections are matrices alone (section 3.2.2)
    scale_scores: bool = True  # divide scores by sqrt(d_k), eq. 1; T5 does not
    embedding_norm: bool = False  # a norm after the sum of embeddings and positions, as in mBART
    shared_embeddings: bool = True  # one matrix for source, target and logits (section 3.4)
    tied_logits: bool = True  # the shared matrix is that of the logits too; T5 v1.1 has another one for them
    logits_bias: bool = False  # the paper's logits are a product alone (section 3.4)
    dropout: float = 0.1  # P_drop
    label_smoothing: float = 0.1  # epsilon_ls
    shift_positions: int = 0  # in training, a sentence begins at a random position of 0 to this one (SHAPE)

    def __post_init__(self):
        self._use_python_numbers()
        for name in ("vocab_size", "encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads", "max_positions"):
            self._check_count(name)
        for name in ("kernel_size", "neighbourhood"):
            self._check_count(name)
            self._check(name, getattr(self, name) % 2 == 1, "odd: as many positions before a position as after it")
        for name in ("first_position", "shift_positions"):
            self._check_count(name, least=0)
        self._check_count("relative_buckets", least=4)
        self._check("relative_buckets", self.relative_buckets % 2 == 0, "even: an encoder has half for each direction")
        self._check_count("relative_distance")
        half = self.relative_buckets // 2
        self._check("relative_distance", self.relative_distance > half, f"above {half}, half of relative_buckets")
        self._check("relative_distance", self.relative_distance <= MOST_DISTANCE, f"at most {MOST_DISTANCE:,}")
        truths = ("feed_forward_bias", "attention_bias", "scale_scores", "embedding_norm", "logits_bias", "dilated")
        truths += ("shared_embeddings", "tied_logits")
        for name in truths:
            self._check(name, isinstance(getattr(self, name), bool), "true or false")
        for name in ("dropout", "label_smoothing"):
            self._check(name, is_number(getattr(self, name)) and 0 <= getattr(self, name) < 1, "in [0, 1)")
        self._check("norm_epsilon", is_number(self.norm_epsilon) and 0 < self.norm_epsilon < math.inf, "above 0")
        choices = {"norm": NORMS, "positions": POSITIONS, "encoder_layer": ENCODER_LAYERS}
        choices |= {"activation": ACTIVATIONS + GATED_ACTIVATIONS}
        choices |= {
            "norm_kind": NORM_KINDS,
            "sinusoids": SINUSOIDS,
            "decoder_layer": DECODER_LAYERS,
            "decoder_start": DECODER_STARTS,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                self._refuse_choice(name, choices)
        if self.positions == "sinusoidal":
            self._check("d_model", self.d_model % 2 == 0, "even: sinusoids come in pairs of sine and cosine")
        if (limit := self.position_limit) is not None:
            self._check("shift_positions", self.shift_positions < limit, f"less than max_positions ({limit})")
        for name, (key, value) in MEANT_FOR.items():
            is_meant = getattr(self, key) == value or getattr(self, name) == getattr(type(self), name)
            self._check(name, is_meant, f"left out, unless model.{key} is {json.dumps(value)}")
        for name in ("key_dim", "value_dim"):
            if getattr(self, name) is None:
                expected = f"a multiple of num_heads ({self.num_heads}), or {name} must be given"
                self._check("d_model", self.d_model % self.num_heads == 0, expected)
            else:
                self._check_count(name)
        if self.positions not in ADDED_POSITIONS:
            self._check_positions_in_attention()

    def _refuse_choice(self, name: str, choices: dict[str, tuple[str, ...]]) -> None:
        value, allowed = getattr(self, name), choices[name]
        others = [f"model.{key} may be that" for key in choices if value in choices[key]]
        near = [f"did you mean {text!r}?" for text in difflib.get_close_matches(str(value), allowed, 1)]
        hint = "".join(f" ({text})" for text in [*others, *near][:1])
        self._check(name, False, f"one of {', '.join(allowed)}{hint}")

    def _check_positions_in_attention(self) -> None:
        if self.shift_positions:
            raise ConfigError(
                f'model.positions is "{self.positions}", which tells distances alone, and shift_positions is '
                f"{self.shift_positions}, which changes none: leave shift_positions out."
            )
        for key in ("encoder_layer", "decoder_layer"):
            if getattr(self, key) != "self_attention":
                raise ConfigError(
                    f'model.positions is "{self.positions}", which acts in self-attention, and model.{key} is '
                    f'"{getattr(self, key)}": give model.positions "sinusoidal" or "learned", or leave model.{key} out.'
                )
        if self.positions == "rotary" and self.d_k % 2:
            raise ConfigError(
                f'model.positions is "rotary", which turns pairs of channels, and a head has {self.d_k}: give an even '
                "model.key_dim."
            )

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> "TransformerConfig":
        """As in BaseModelConfig, but skip the fields of an older file that have no meaning beside the others."""

        def is_meant(key: str, value: Any) -> bool:
            return values.get(key, getattr(cls, key)) == value

        read = {name: value for name, value in values.items() if name not in MEANT_FOR or is_meant(*MEANT_FOR[name])}
        return super().from_values(read)

    @property
    def d_k(self) -> int:
        """Width of one head's queries and keys."""
        return self.d_model // self.num_heads if self.key_dim is None else self.key_dim

    @property
    def d_v(self) -> int:
        """Width of one head's values."""
        return self.d_model // self.num_heads if self.value_dim is None else self.value_dim

    @property
    def position_limit(self) -> int | None:
        """The largest number of tokens of a side that the model can read; None if there is none."""
        return self.max_positions if self.positions == "learned" else None

    @property
    def memory_attentions(self) -> int:
        """Number of decoder layers that attend to the source."""
        return self.decoder_layers


base = TransformerConfig()
big = base.replace(d_model=1024, num_heads=16, d_ff=4096, dropout=0.3)
tiny = base.replace(  # Wu et al. 2021: what fits Multi30k
    encoder_layers=4, decoder_layers=4, d_model=128, num_heads=4, d_ff=256, dropout=0.3, vocab_size=10000
)
modern = base.replace(  # what later models have; 2/3 of d_ff keep as many weights, here in a multiple of 64
    norm="pre", norm_kind="rms", activation="swiglu", positions="rotary", d_ff=1344
)

# The rows of Table 3. Each differs from base by what its row prints.
TABLE_3 = {
    "A_1_head": base.replace(num_heads=1, key_dim=512, value_dim=512),
    "A_4_heads": base.replace(num_heads=4, key_dim=128, value_dim=128),
    "A_16_heads": base.replace(num_heads=16, key_dim=32, value_dim=32),
    "A_32_heads": base.replace(num_heads=32, key_dim=16, value_dim=16),
    "B_key_dim_16": base.replace(key_dim=16),
    "B_key_dim_32": base.replace(key_dim=32),
    "C_2_layers": base.replace(encoder_layers=2, decoder_layers=2),
    "C_4_layers": base.replace(encoder_layers=4, decoder_layers=4),
    "C_8_layers": base.replace(encoder_layers=8, decoder_layers=8),
    "C_d_model_256": base.replace(d_model=256, key_dim=32, value_dim=32),
    "C_d_model_1024": base.replace(d_model=1024, key_dim=128, value_dim=128),
    "C_d_ff_1024": base.replace(d_ff=1024),
    "C_d_ff_4096": base.replace(d_ff=4096),
    "D_dropout_0.0": base.replace(dropout=0.0),
    "D_dropout_0.2": base.replace(dropout=0.2),
    "D_label_smoothing_0.0": base.replace(label_smoothing=0.0),
    "D_label_smoothing_0.2": base.replace(label_smoothing=0.2),
    "E_learned_positions": base.replace(positions="learned"),
}

PRESETS = {"tiny": tiny, "base": base, "big": big, "modern": modern, **TABLE_3}


def preset(name: str) -> TransformerConfig:
    """The preset of that name. Raises ConfigError, listing the names, if there is none."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}. The presets are {', '.join(PRESETS)}.")
    return PRESETS[name]
