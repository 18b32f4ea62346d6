"""The section `training` of a run configuration: how weights are found."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import pydantic

from keras_transformer.ground.errors import ConfigError

from .augmentation import AugmentationConfig
from .section import PathText, Section

OF_SCHEDULE = {  # which keys belong to which values of `schedule`
    "warmup_steps": ("paper", "warmup", "cosine"),
    "learning_rate_factor": ("paper",),
    "learning_rate": ("constant", "warmup", "cosine"),
    "cooldown_steps": ("paper", "constant", "warmup"),
}
SCHEDULE_FREE = "schedule_free"  # the optimizer that averages instead of lowering the rate
OF_SCHEDULE_FREE = ("constant", "warmup")
LORA = ("lora_alpha", "lora_matrices")  # keys without effect if `lora_rank` is 0
AUTO: Final = "auto"  # a precision that the machine on which a run begins decides
Option = bool | int | float | str | list[str]


LoraName = Literal["query", "key", "value", "output", "ffn", "norms", "embeddings"]


class RowLengths(NamedTuple):
    """Positions of one packed row on its source side and on its target side."""

    source: int
    target: int


class TrainingConfig(Section):
    """How weights are found: batches, schedule, regularisation, checkpoints (Vaswani et al. 2017, section 5)."""

    PATHS = ("start_from",)
    AFTER_TRAINING = (  # they choose among weights, measure them, or write down what happens
        "average_checkpoints",
        "keep_checkpoints",
        "keep_best",
        "checkpoint_every",
        "validate_every",
        "best_metric",
        "patience",
        "log_every",
        "picture_sentences",
        "histograms_every",
        "profile_steps",
        "on_divergence",
        "xla",
    )

    steps: int = pydantic.Field(100_000, ge=1, le=99_999_999)  # updates; a checkpoint's name has 8 digits
    tokens_per_batch: int = pydantic.Field(25_000, ge=1)  # target positions per update, in rows of row_length
    micro_batches: int = pydantic.Field(1, ge=1)  # parts in which a device processes its rows, to save memory
    find_micro_batches: bool = False  # before the first step, raise micro_batches until a step fits in memory
    row_length: int = pydantic.Field(128, ge=8)  # positions of one packed row; pairs with a longer side are skipped
    source_row_length: int | None = pydantic.Field(None, ge=8)  # positions of its source side; None: row_length
    seed: int = pydantic.Field(1, ge=0, lt=2**32)  # NumPy takes no larger one
    dropout: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    label_smoothing: float | None = pydantic.Field(None, ge=0, lt=1)  # None: the preset's
    shift_positions: int | None = pydantic.Field(None, ge=0)  # most random shift of a sentence's positions (SHAPE)
    guided_alignment: float = pydantic.Field(0.0, ge=0, le=1)  # of attention to linked words (Garg et al. 2019)
    bpe_dropout: float = pydantic.Field(0.0, ge=0, lt=1)  # merges left out per epoch (Provilkov et al. 2020: 0.1)
    augment: AugmentationConfig | None = None  # which pairs are changed per epoch, and how; None: none
    optimizer: str = pydantic.Field("adam", min_length=1)  # a key of train/step/optimizer.py, or a class of Keras
    optimizer_options: dict[str, Option] | None = pydantic.Field(None, min_length=1)  # its arguments: {beta_2 = 0.95}
    schedule: Literal["paper", "constant", "warmup", "cosine"] = "paper"
    warmup_steps: int = pydantic.Field(4_000, ge=1)  # in which the rate rises linearly; not of the constant schedule
    learning_rate_factor: float = pydantic.Field(1.0, gt=0)  # of the paper's schedule
    learning_rate: float = pydantic.Field(1e-3, gt=0)  # the highest one, of the other schedules
    cooldown_steps: int = pydantic.Field(0, ge=0)  # at the end of `steps`, in which the rate falls linearly to 0
    clip_norm: float | None = pydantic.Field(None, gt=0)  # largest norm of all gradients together; None: any
    start_from: PathText | None = None  # the run folder whose weights training begins with
    frozen: list[str] | None = pydantic.Field(None, min_length=1)  # layers left as they are: ["embedding", "encoder*"]
    lora_rank: int = pydantic.Field(
        0, ge=0
    )  # width of the adapters that alone are trained, see lora.py; 0: all weights
    lora_alpha: float | None = pydantic.Field(None, gt=0)  # they count alpha / rank times (Hu et al. 2021); None: once
    lora_matrices: list[LoraName] | None = pydantic.Field(None, min_length=1)  # which have one; None: query and value
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
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = AUTO

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
        if self.schedule == "cosine" and self.warmup_steps >= self.steps:
            raise ValueError(f"warmup_steps {self.warmup_steps} is not less than steps {self.steps}")
        if self.profile_steps and self.profile_steps[1] > self.steps:
            raise ValueError(f"profile_steps {self.profile_steps} end after the last of {self.steps} steps")
        return self

    @property
    def row_lengths(self) -> RowLengths:
        return RowLengths(self.source_row_length or self.row_length, self.row_length)

    @property
    def rate_ends(self) -> bool:
        """Whether the learning rate falls to 0 at `steps`: another number of them has other rates before."""
        return self.schedule == "cosine" or self.cooldown_steps > 0

    def positions_at_once(self, replicas: int) -> float:
        """Target positions that one of `replicas` devices processes at once."""
        return self.tokens_per_batch / (self.micro_batches * replicas)


def check_idle_keys(training: TrainingConfig) -> None:
    """Raises ConfigError for keys that do not go with the chosen schedule, optimizer or metric.

    `train` calls this for a run that is to be trained; one that has them in its config.toml can be read nevertheless.
    """
    for name, schedules in OF_SCHEDULE.items():
        if training.schedule not in schedules and is_set(training, name):
            raise ConfigError(
                f"training.{name} is {getattr(training, name)}; it belongs to schedule {one_of(schedules)}, and "
                f'training.schedule is "{training.schedule}". Leave it out, or set another schedule.'
            )
    for name in LORA:
        if not training.lora_rank and is_set(training, name):
            raise ConfigError(
                f"training.{name} is {getattr(training, name)} and has no effect without training.lora_rank: set that "
                f"too, or leave {name} out."
            )
    if training.optimizer == SCHEDULE_FREE:
        check_schedule_free(training)
    if training.best_metric != "bleu" and not (training.patience or training.keep_best):
        raise ConfigError(
            f'training.best_metric is "{training.best_metric}" and has no effect: neither training.patience nor '
            "training.keep_best is set. Set one of them, or leave best_metric out."
        )


def check_schedule_free(training: TrainingConfig) -> None:
    """Raises ConfigError for what would lower the rate, or average once more, beside the average that it takes."""
    if training.schedule not in OF_SCHEDULE_FREE:
        raise ConfigError(
            f'training.optimizer is "{SCHEDULE_FREE}"; it goes with schedule {one_of(OF_SCHEDULE_FREE)}, and '
            f'training.schedule is "{training.schedule}". Set training.schedule = "warmup" with training.learning_rate.'
        )
    for name in ("cooldown_steps", "ema_decay"):
        if is_set(training, name):
            raise ConfigError(
                f"training.{name} is {getattr(training, name)}, and training.optimizer "
                f'"{SCHEDULE_FREE}" averages the weights itself, at a rate that does not fall: leave {name} out.'
            )


def is_set(training: TrainingConfig, name: str) -> bool:
    """Whether a key has another value than its default."""
    return getattr(training, name) != type(training).model_fields[name].default


def one_of(texts: Sequence[str]) -> str:
    """The texts in quotes: "a", "b" or "c"."""
    *others, last = (f'"{text}"' for text in texts)
    return f"{', '.join(others)} or {last}" if others else last
