"""What a Transformer is made of, with the presets of the paper, and how it searches: two frozen configurations."""

import dataclasses
import json
import math
import pathlib

from keras_transformer.errors import UserError
from keras_transformer.files import write_atomically

NORMS = ("post", "pre")
POSITIONS = ("sinusoidal", "learned")


class ConfigError(UserError):
    """A configuration that makes no sense; the message says which field, what was found and what is allowed."""


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Everything that decides the shape and the function of a Transformer (Vaswani et al. 2017, section 3, Table 3).

    `key_dim` and `value_dim` are the widths of one head, d_k and d_v; None means d_model / num_heads.
    `dropout` and `label_smoothing` do not change what the model computes; they belong to a row of Table 3
    and are what `train` uses unless it is told otherwise.
    """

    vocab_size: int = 37000  # joint source and target vocabulary (section 5.1: about 37,000 BPE tokens)
    encoder_layers: int = 6  # N
    decoder_layers: int = 6  # N
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8  # h
    key_dim: int | None = None  # d_k
    value_dim: int | None = None  # d_v
    activation: str = "relu"  # of the feed-forward network, any Keras activation by name (eq. 2: max(0, x))
    norm: str = "post"  # "post": LayerNorm(x + Sublayer(x)), section 3.1; "pre": x + Sublayer(LayerNorm(x))
    norm_epsilon: float = 1e-6
    positions: str = "sinusoidal"  # or "learned", Table 3 (E)
    max_positions: int = 1024  # rows of the learned positional embedding; the sinusoids have no end
    attention_bias: bool = False  # the paper's projections are matrices alone (section 3.2.2)
    shared_embeddings: bool = True  # one matrix for source, target and logits (section 3.4)
    dropout: float = 0.1  # P_drop
    label_smoothing: float = 0.1  # epsilon_ls

    def __post_init__(self):
        for name in ("vocab_size", "encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads", "max_positions"):
            self._check_count(name)
        for name in ("attention_bias", "shared_embeddings"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "true or false")
        for name in ("dropout", "label_smoothing"):
            value = getattr(self, name)
            _check(isinstance(value, int | float) and 0.0 <= value < 1.0, name, value, "in [0, 1)")
        epsilon = self.norm_epsilon
        _check(isinstance(epsilon, int | float) and epsilon > 0, "norm_epsilon", epsilon, "above 0")
        _check(self.norm in NORMS, "norm", self.norm, f"one of {NORMS}")
        _check(self.positions in POSITIONS, "positions", self.positions, f"one of {POSITIONS}")
        _check(_is_activation(self.activation), "activation", self.activation, "the name of a Keras activation")
        if self.positions == "sinusoidal":
            _check(self.d_model % 2 == 0, "d_model", self.d_model, "even: sinusoids come in pairs of sine and cosine")
        for name in ("key_dim", "value_dim"):
            if getattr(self, name) is None:
                _check(
                    self.d_model % self.num_heads == 0, "d_model", self.d_model,
                    f"a multiple of num_heads ({self.num_heads}), or {name} must be given",
                )  # fmt: skip
                object.__setattr__(self, name, self.d_model // self.num_heads)
            self._check_count(name)

    def _check_count(self, name):
        value = getattr(self, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        _check(is_whole and value >= 1, name, value, "a whole number of at least 1")

    def replace(self, **changes):
        """The same configuration with some fields changed.

        Head widths that follow from d_model and num_heads follow them again, unless they are given.
        """
        if "d_model" in changes or "num_heads" in changes:
            derived = self.d_model // self.num_heads
            for name in ("key_dim", "value_dim"):
                if getattr(self, name) == derived:
                    changes.setdefault(name, None)
        return dataclasses.replace(self, **changes)

    def to_json(self):
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text):
        """Raises ConfigError for text that is no JSON object and for fields that this version does not know."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"model.json is not valid JSON: {error}.") from None
        if not isinstance(fields, dict):
            raise ConfigError(f"model.json holds {text.strip()[:40]!r}; it must hold an object of named fields.")
        unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise ConfigError(f"model.json has fields that this version does not know: {', '.join(unknown)}.")
        return cls(**fields)

    def save(self, path):
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path):
        return cls.from_json(pathlib.Path(path).read_text(encoding="utf-8"))


def _is_activation(name):
    """Keras is asked only about names that the literature of Transformers does not use: its import takes seconds."""
    if name in ("relu", "gelu", "silu"):
        return True
    import keras

    try:
        return isinstance(name, str) and callable(keras.activations.get(name))
    except ValueError:
        return False


def _check(is_right, name, found, expected):
    if not is_right:
        raise ConfigError(f"model.{name} is {found!r}; it must be {expected}.")


base = TransformerConfig()
big = base.replace(d_model=1024, num_heads=16, d_ff=4096, dropout=0.3)
tiny = base.replace(  # Wu et al. 2021: what fits Multi30k
    encoder_layers=4, decoder_layers=4, d_model=128, num_heads=4, d_ff=256, dropout=0.3, vocab_size=10000
)

# The rows of Table 3: each differs from base by what its row prints.
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

PRESETS = {"tiny": tiny, "base": base, "big": big, **TABLE_3}


def preset(name):
    """The preset of that name. Raises ConfigError, with the names there are, for any other."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[name]


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search (Vaswani et al. 2017, section 6.1). Raises ConfigError for values that make no sense."""

    beam_size: int = 4  # 1: greedy
    length_penalty: float = 0.6  # alpha
    extra_length: int = 50  # longest output: as many tokens as the source, and these
    n_best: int = 1  # how many translations of a sentence to return, at most beam_size

    def __post_init__(self):
        if self.beam_size < 1:
            raise ConfigError(f"beam_size is {self.beam_size}; it must be at least 1 (1 is greedy search).")
        if not 0 <= self.length_penalty < math.inf:
            raise ConfigError(f"length_penalty is {self.length_penalty}; it must be 0 (none) or more.")
        if self.extra_length < 1:
            raise ConfigError(f"extra_length is {self.extra_length}; it must be at least 1 token.")
        if not 1 <= self.n_best <= self.beam_size:
            raise ConfigError(f"n_best is {self.n_best}; it must be from 1 to beam_size ({self.beam_size}).")
