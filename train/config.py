"""The run configuration: one TOML file, checked where it is read."""

import pathlib
import tomllib
from typing import Annotated, Literal, NamedTuple

import pydantic
import tomli_w

from keras_transformer.config import ConfigError, preset
from train.config_errors import sentence


class RowLengths(NamedTuple):
    """Positions of one packed row on its source side and on its target side."""

    source: int
    target: int


class Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


class NumbersData(Section):
    """Numbers spelled out in two languages by num2words: needs no download."""

    source: Literal["numbers"]
    source_language: str = "en"
    target_language: str = "de"
    minimum: int = 0
    maximum: int = 999_999
    train_pairs: int = pydantic.Field(20_000, ge=1)
    validation_pairs: int = pydantic.Field(500, ge=1)
    test_pairs: int = pydantic.Field(1_000, ge=1)
    seed: int = pydantic.Field(1, ge=0)
    shards: int = pydantic.Field(1, ge=1)  # see FilesData


class FilesData(Section):
    """Line-aligned text files, or TSV with source and target in the first two columns; `.gz` is unpacked.

    Each split is a list of entries. An entry is [source file, target file], or one TSV file.
    """

    source: Literal["files"]
    source_language: str = "source"
    target_language: str = "target"
    train: list[list[str] | str] = pydantic.Field(min_length=1)
    validation: list[list[str] | str] = pydantic.Field(min_length=1)
    test: list[list[str] | str] = []
    shards: int = pydantic.Field(1, ge=1)  # parts of the training text, each for one worker; entry i is of i mod shards

    @pydantic.field_validator("train", "validation", "test", mode="before")
    @classmethod
    def check_entries(cls, entries):
        is_list = isinstance(entries, list)
        for entry in entries if is_list else []:
            is_list &= (
                isinstance(entry, str) or isinstance(entry, list) and all(isinstance(path, str) for path in entry)
            )
        if not is_list:
            raise ValueError(f"expected a list of [source file, target file] or of TSV files, found {entries!r}")
        return entries


class TfdsData(Section):
    """A TFDS translation set, by name and direction."""

    source: Literal["tfds"]
    name: str  # "wmt14_translate/de-en", "ted_hrlr_translate/pt_to_en"
    source_language: str
    target_language: str
    data_dir: str | None = None
    train_split: str = "train"
    validation_split: str = "validation"
    test_split: str = "test"
    download: bool = True
    shards: int = pydantic.Field(1, ge=1)  # even parts of train_split, each for one worker


Data = Annotated[NumbersData | FilesData | TfdsData, pydantic.Field(discriminator="source")]


class TokenizerConfig(Section):
    vocab_size: int = pydantic.Field(8_000, ge=260)  # 4 special ids and 256 bytes come first
    model: str | None = None  # a SentencePiece .model file to use instead of training one


class ModelConfig(Section):
    """A preset and what differs from it; the vocabulary's size comes from the tokenizer."""

    preset: str = "base"
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    d_model: int | None = None
    d_ff: int | None = None
    num_heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None
    activation: str | None = None
    norm: str | None = None
    norm_epsilon: float | None = None
    positions: str | None = None
    max_positions: int | None = None
    attention_bias: bool | None = None
    shared_embeddings: bool | None = None

    def resolve(self, vocab_size, dropout=None, label_smoothing=None):
        """The TransformerConfig that this section, the tokenizer and the training section make together."""
        changes = self.model_dump(exclude={"preset"}) | {"dropout": dropout, "label_smoothing": label_smoothing}
        given = {name: value for name, value in changes.items() if value is not None}
        return preset(self.preset).replace(vocab_size=vocab_size, **given)


class TrainingConfig(Section):
    steps: int = pydantic.Field(100_000, ge=1)  # updates
    tokens_per_batch: int = pydantic.Field(25_000, ge=1)  # target positions an update, and as many source positions
    micro_batches: int = pydantic.Field(1, ge=1)  # parts in which a device does its share of a batch, to save memory
    row_length: int = pydantic.Field(128, ge=8)  # positions of one packed row; the longest pair that is trained on
    source_row_length: int | None = pydantic.Field(None, ge=8)  # of its source side, where the two differ; None: alike
    seed: int = pydantic.Field(1, ge=0)
    dropout: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    label_smoothing: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    warmup_steps: int = pydantic.Field(4_000, ge=1)
    learning_rate_factor: float = pydantic.Field(1.0, gt=0)
    checkpoint_every: int = pydantic.Field(1_000, ge=1)  # steps
    keep_checkpoints: int = pydantic.Field(5, ge=1)
    average_checkpoints: int = pydantic.Field(5, ge=1)
    validate_every: int = pydantic.Field(1_000, ge=1)  # steps
    log_every: int = pydantic.Field(50, ge=1)  # steps
    on_divergence: Literal["stop", "rewind"] = "stop"  # rewind: to the last checkpoint, and on without that batch
    xla: bool = True
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"

    @pydantic.model_validator(mode="after")
    def check_batch(self):
        if self.tokens_per_batch < self.row_length:
            raise ValueError(f"tokens_per_batch {self.tokens_per_batch} is less than one row of {self.row_length}")
        if self.keep_checkpoints < self.average_checkpoints:
            raise ValueError(
                f"average_checkpoints {self.average_checkpoints} is more than keep_checkpoints {self.keep_checkpoints}"
            )
        return self

    @property
    def row_lengths(self) -> RowLengths:
        return RowLengths(self.source_row_length or self.row_length, self.row_length)


class TranslationConfig(Section):
    """How validation and `report.md` translate."""

    beam_size: int = pydantic.Field(4, ge=1)
    length_penalty: float = pydantic.Field(0.6, ge=0)
    batch_size: int = pydantic.Field(64, ge=1)
    validation_beam_size: int = pydantic.Field(1, ge=1)  # of the BLEU curve; the report uses beam_size
    validation_sentences: int = pydantic.Field(1_000, ge=1)  # of the BLEU curve, the first ones


class RunConfig(Section):
    run_folder: str
    cache_folder: str | None = None  # encoded text that runs share; None: "cache" beside the run folder
    data: Data
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    translation: TranslationConfig = TranslationConfig()

    @property
    def cache_path(self) -> pathlib.Path:
        """Where encoded text is kept."""
        return pathlib.Path(self.cache_folder or pathlib.Path(self.run_folder).parent / "cache")

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(exclude_none=True))


SECTIONS = {
    "data": (NumbersData, FilesData, TfdsData),
    "tokenizer": (TokenizerConfig,),
    "model": (ModelConfig,),
    "training": (TrainingConfig,),
    "translation": (TranslationConfig,),
}
KEYS = [
    "run_folder",
    "cache_folder",
    *(f"{name}.{key}" for name, kinds in SECTIONS.items() for kind in kinds for key in kind.model_fields),
]


def load_config(path, overrides=()):
    """Read a TOML file, apply `section.key=value` overrides, check it.

    Values of overrides are TOML (`training.steps=100`, `model.preset="tiny"`); a bare word is a string.
    Raises ConfigError with one line for each key that is unknown, missing or ill-typed.
    """
    path = pathlib.Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}. See configs/ for examples.") from None
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    for override in overrides:
        _apply_override(values, override)
    return check_config(values, path, overrides)


def check_config(values, path, overrides=()):
    """Values of TOML -> RunConfig, with a model that can be built; `path` and `overrides` say where they are from."""

    def where(key):
        options = [override for override in overrides if f"{override.partition('=')[0].strip()}.".startswith(f"{key}.")]
        return f"--set {options[-1]}" if options else path

    try:
        config = RunConfig.model_validate(values)
        _check_model(config)
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(sentence(finding, where, KEYS) for finding in error.errors())) from None
    except ConfigError as error:
        raise ConfigError(f"{where('model')}: {error}") from None
    return config


def _check_model(config):
    """Raises ConfigError now, not after the corpus is read, for a model that cannot be built or cannot be trained."""
    training = config.training
    model = config.model.resolve(config.tokenizer.vocab_size, training.dropout, training.label_smoothing)
    for key in ("row_length", "source_row_length"):
        length = getattr(training, key) or 0
        if model.positions == "learned" and length > model.max_positions:
            raise ConfigError(
                f"training.{key} {length} is more than model.max_positions {model.max_positions}, the learned "
                "positions that there are; make one of them fit the other."
            )


def _apply_override(values, override):
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: expected section.key=value, for example training.steps=100.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *sections, name = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section.")
    values[name] = value
