"""The run configuration: one TOML file, checked where it is read."""

import dataclasses
import functools
import os
import pathlib
import tomllib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import pydantic
import tomli_w

from keras_transformer.batching import BATCH_SIZE
from keras_transformer.config import ConfigError, preset
from keras_transformer.decoding.options import OPTIONS, RUN_OPTIONS, SearchOptions, check_coverage
from keras_transformer.kinds import CONFIGS
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.run_folder import RunFolder

from .data import DataSection, FilesData, NumbersData, PathText, Section, TfdsData, TreebankData
from .errors import sentence, set_by
from .tokenizer import TokenizerConfig, check_tokenizer


class RowLengths(NamedTuple):
    """Positions of one packed row on its source side and on its target side."""

    source: int
    target: int


SET_ELSEWHERE = ("vocab_size", "dropout", "label_smoothing")  # by the tokenizer and by the section [training]
OF_ALL_KINDS = ("kind", "preset")
ModelFields = pydantic.create_model(
    "ModelFields",
    __base__=Section,
    kind=(Literal[tuple(CONFIGS)], "transformer"),
    preset=(str | None, None),
    **{
        field.name: (field.type | None, None)
        for config in CONFIGS.values()
        for field in dataclasses.fields(config)
        if field.name not in SET_ELSEWHERE
    },
)


class ModelConfig(ModelFields):
    """The kind of model, and what differs from a preset of Transformers, or from the defaults of another kind.

    None means the preset's value, or the default.
    """

    @pydantic.model_validator(mode="before")
    @classmethod
    def begin_with_base(cls, values: Any) -> Any:
        """A Transformer that names no preset is "base"; another kind has no presets."""
        if isinstance(values, dict) and values.get("kind", "transformer") == "transformer":
            return {**values, "preset": values.get("preset", "base")}
        return values

    @pydantic.model_validator(mode="after")
    def check_fields(self) -> "ModelConfig":
        allowed = {"kind", *CONFIGS[self.kind].fields()} | ({"preset"} if self.kind == "transformer" else set())
        for name, value in self:
            if value is not None and name not in allowed:
                kinds = [kind for kind, config in CONFIGS.items() if name in config.fields()] or ["transformer"]
                raise ValueError(
                    f"model.{name} is {value!r}, but model.kind is {self.kind!r}: {name} is of the kind {kinds[0]!r}"
                )
        return self

    def resolve(
        self, vocab_size: int, dropout: float | None = None, label_smoothing: float | None = None
    ) -> BaseModelConfig:
        """Combine this section with the tokenizer's vocabulary and the values of the training section."""
        changes = self.model_dump(exclude=set(OF_ALL_KINDS)) | {"dropout": dropout, "label_smoothing": label_smoothing}
        given = {name: value for name, value in changes.items() if value is not None}
        defaults = preset(self.preset) if self.kind == "transformer" else RecurrentConfig()
        return defaults.replace(vocab_size=vocab_size, **given)


class TrainingConfig(Section):
    """How weights are found: batches, schedule, regularisation, checkpoints (Vaswani et al. 2017, section 5)."""

    steps: int = pydantic.Field(100_000, ge=1)  # updates
    tokens_per_batch: int = pydantic.Field(25_000, ge=1)  # target positions per update, in rows of row_length
    micro_batches: int = pydantic.Field(1, ge=1)  # parts in which a device processes its rows, to save memory
    find_micro_batches: bool = False  # before the first step, raise micro_batches until a step fits in memory
    row_length: int = pydantic.Field(128, ge=8)  # positions of one packed row; pairs with a longer side are skipped
    source_row_length: int | None = pydantic.Field(None, ge=8)  # positions of its source side; None: row_length
    seed: int = pydantic.Field(1, ge=0, lt=2**32)  # NumPy takes no larger one
    dropout: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    label_smoothing: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    bpe_dropout: float = pydantic.Field(0.0, ge=0, lt=1)  # merges left out per epoch (Provilkov et al. 2020: 0.1)
    schedule: Literal["paper", "constant"] = "paper"  # constant: plain Adam (Kingma & Ba 2015) with learning_rate
    warmup_steps: int = pydantic.Field(4_000, ge=1)  # of the paper's schedule
    learning_rate_factor: float = pydantic.Field(1.0, gt=0)  # of the paper's schedule
    learning_rate: float = pydantic.Field(1e-3, gt=0)  # of the constant schedule
    cooldown_steps: int = pydantic.Field(0, ge=0)  # at the end of `steps`, in which the rate falls linearly to 0
    clip_norm: float | None = pydantic.Field(None, gt=0)  # largest norm of all gradients together; None: any
    start_from: PathText | None = None  # the run folder whose weights training begins with
    frozen: list[str] | None = pydantic.Field(None, min_length=1)  # layers left as they are: ["embedding", "encoder*"]
    ema_decay: float | None = pydantic.Field(None, gt=0, lt=1)  # of the moving average of weights; None: no average
    checkpoint_every: int = pydantic.Field(1_000, ge=1)  # steps
    keep_checkpoints: int = pydantic.Field(5, ge=1)
    average_checkpoints: int = pydantic.Field(5, ge=1)
    validate_every: int = pydantic.Field(1_000, ge=1)  # steps
    best_metric: Literal["bleu", "chrf", "loss", "f1"] = "bleu"  # by which a validation is better; f1: of a treebank
    patience: int | None = pydantic.Field(None, ge=1)  # validations in a row without a better one that end training
    keep_best: bool = False  # keep the checkpoint of the best validation too, as a candidate for translation
    log_every: int = pydantic.Field(50, ge=1)  # steps
    picture_sentences: int = pydantic.Field(3, ge=0)  # whose attention each validation shows; 0: no pictures, no curves
    histograms_every: int = pydantic.Field(500, ge=0)  # steps between histograms of weights and gradients; 0: none
    profile_steps: list[int] | None = None  # the first and the last step of a profile, for TensorBoard; None: none
    on_divergence: Literal["stop", "rewind"] = "stop"  # rewind: continue from the last checkpoint without that batch
    xla: bool = True
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"

    @pydantic.field_validator("profile_steps")
    @classmethod
    def check_profile(cls, steps: list[int] | None) -> list[int] | None:
        if steps is not None and not (len(steps) == 2 and 1 <= steps[0] <= steps[1]):
            raise ValueError(f"{steps} is not the first and the last step of a profile, such as [20, 25]")
        return steps

    @pydantic.model_validator(mode="after")
    def check_batch(self) -> "TrainingConfig":
        if self.tokens_per_batch < self.row_length:
            raise ValueError(f"tokens_per_batch {self.tokens_per_batch} is less than one row of {self.row_length}")
        if self.keep_checkpoints < self.average_checkpoints:
            raise ValueError(
                f"average_checkpoints {self.average_checkpoints} is more than keep_checkpoints {self.keep_checkpoints}"
            )
        if self.cooldown_steps > self.steps:
            raise ValueError(f"cooldown_steps {self.cooldown_steps} is more than steps {self.steps}")
        if self.profile_steps and self.profile_steps[1] > self.steps:
            raise ValueError(f"profile_steps {self.profile_steps} end after the last of {self.steps} steps")
        return self

    @property
    def row_lengths(self) -> RowLengths:
        return RowLengths(self.source_row_length or self.row_length, self.row_length)

    def positions_at_once(self, replicas: int) -> float:
        """Target positions that one of `replicas` devices processes at once."""
        return self.tokens_per_batch / (self.micro_batches * replicas)


def search_option(name: str, default: float | None = None) -> Any:
    """A field with the limits of that field of SearchOptions, and with its default unless another one is given."""
    option = OPTIONS[name]
    return pydantic.Field(option.default if default is None else default, ge=option.lowest, le=option.highest)


class TranslationConfig(Section):
    """How validation and `report.md` translate."""

    beam_size: int = search_option("beam_size")  # of report.md
    length_penalty: float = search_option("length_penalty")  # the exponent alpha; 0 is none
    coverage_penalty: float = search_option("coverage_penalty")  # beta; 0 is none
    extra_length: int = search_option("extra_length")  # tokens that an output may have more than its source
    batch_size: int = pydantic.Field(BATCH_SIZE, ge=1)  # sentences
    validation_beam_size: int = search_option("beam_size", 1)  # of the BLEU curve
    validation_sentences: int = pydantic.Field(1_000, ge=1)  # of the BLEU curve: at equal distances

    def search_options(self, beam_size: int) -> SearchOptions:
        """How to search with so many hypotheses."""
        return SearchOptions(**{name: getattr(self, name) for name in RUN_OPTIONS} | {"beam_size": beam_size})


class RunConfig(Section):
    """The whole file: two paths and the sections."""

    run_folder: PathText
    cache_folder: PathText | None = None  # encoded text, for several runs; None: `cache_path`
    data: DataSection
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    translation: TranslationConfig = TranslationConfig()

    @property
    def cache_path(self) -> pathlib.Path:
        """`cache_folder`, or the folder "cache" beside the run folder."""
        return pathlib.Path(self.cache_folder or pathlib.Path(self.run_folder).parent / "cache")

    @property
    def effective_tokenizer(self) -> TokenizerConfig:
        """`tokenizer`; if it names no model and training starts from another run, with the tokenizer of that run."""
        if self.tokenizer.model or not self.training.start_from:
            return self.tokenizer
        return self.tokenizer.model_copy(update={"model": str(RunFolder(self.training.start_from).tokenizer)})

    def transformer_config(self, vocab_size: int) -> BaseModelConfig:
        """The model of this run with a vocabulary of `vocab_size` pieces."""
        return self.model.resolve(vocab_size, self.training.dropout, self.training.label_smoothing)

    def with_vocab_size(self, vocab_size: int) -> "RunConfig":
        """The same with the number of pieces that the tokenizer of the run has: one that is given has its own."""
        return self.model_copy(update={"tokenizer": self.tokenizer.model_copy(update={"vocab_size": vocab_size})})

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(exclude_none=True))


SECTIONS = {
    "data": (NumbersData, FilesData, TfdsData, TreebankData),
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


def load_config(path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a TOML file, apply `section.key=value` overrides, check the result.

    Values of overrides are TOML (`training.steps=100`, `model.preset="tiny"`); a bare word is a string.
    Raises ConfigError with one line per key that is unknown, missing or ill-typed.
    """
    values = read_toml(path)
    for override in overrides:
        _apply_override(values, override)
    return check_config(values, path, overrides)


def read_toml(path: str | os.PathLike) -> dict[str, Any]:
    """The values in a TOML file; a byte order mark is skipped. Raises ConfigError with the path and the cause."""
    path = pathlib.Path(path)
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}. See configs/ for examples.") from None
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ConfigError(
            f"{path} is not UTF-8: its byte {error.start + 1} is 0x{byte:02x}. Save it as UTF-8."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def check_config(values: dict[str, Any], path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """The RunConfig of `values`, whose model can be built. `path` and `overrides` tell errors where a key was set."""
    where = functools.partial(set_by, path=path, overrides=overrides)
    try:
        config = RunConfig.model_validate(values)
        _check_model(config)
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(sentence(finding, where, KEYS) for finding in error.errors())) from None
    except ConfigError as error:
        raise ConfigError(f"{where('model')}: {error}") from None
    if config.training.best_metric == "f1" and config.data.source != "treebank":
        raise ConfigError(
            f'{where("training.best_metric")}: training.best_metric is "f1", that of the brackets of trees, but '
            f'data.source is "{config.data.source}" and not "treebank": choose "bleu", "chrf" or "loss".'
        )
    check_tokenizer(config.tokenizer, config.data, where)
    return config


def _check_model(config: RunConfig) -> None:
    """Raises ConfigError for a model that cannot be built or trained, before the corpus is read."""
    training = config.training
    model = config.transformer_config(config.tokenizer.vocab_size)
    check_coverage(model, config.translation.coverage_penalty, "translation.coverage_penalty")
    for key in ("row_length", "source_row_length"):
        length = getattr(training, key) or 0
        if model.position_limit is not None and length > model.position_limit:
            raise ConfigError(
                f"training.{key} {length} is more than model.max_positions {model.position_limit}, the number "
                "of learned positions: lower the one or raise the other."
            )


def _apply_override(values: dict[str, Any], override: str) -> None:
    """Set the key of `override` in `values`. Raises ConfigError if it is not section.key=value."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: expected section.key=value, for example training.steps=100.")
    try:
        value, *more = tomllib.loads(f"value = {text}").values()
        if more:
            raise ConfigError(f"--set {key}: its value has a line break, which begins another key. Give each a --set.")
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *sections, name = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section.")
    values[name] = value
