"""Which optimizer `training.optimizer` names, with which constants, and which arguments it takes."""

import difflib
import inspect
import re
from typing import Any

import keras

from keras_transformer.ground.errors import ConfigError
from keras_transformer.optimizers import PAPER_ADAM

from ..config.training import SCHEDULE_FREE, TrainingConfig
from .matrix_optimizers import Adafactor, Muon
from .schedule_free import ScheduleFree

KINGMA_BA_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}
DECAY = {"weight_decay": 0.01}
OPTIMIZERS: dict[str, tuple[type[keras.optimizers.Optimizer], dict[str, Any]]] = {  # class, constants beside Keras' own
    "adam": (keras.optimizers.Adam, {}),
    "adamw": (keras.optimizers.AdamW, DECAY),
    SCHEDULE_FREE: (ScheduleFree, {}),
    "muon": (Muon, DECAY),
    "lion": (keras.optimizers.Lion, {}),
    "adafactor": (Adafactor, {}),
}
OF_ADAM = ("adam", "adamw")  # whose constants are the schedule's
KEY_OF_CLASS = {"ScheduleFreeAdamW": SCHEDULE_FREE} | {kind.__name__: key for key, (kind, _) in OPTIMIZERS.items()}
NO_OPTIMIZERS = ("Optimizer", "LossScaleOptimizer", "MultiOptimizer")  # of keras.optimizers
OWNED = {  # arguments of Keras that training sets itself, and the key to set instead
    "learning_rate": "training.schedule with its keys",
    "relative_step": "training.schedule with its keys",
    "warmup_steps": "training.warmup_steps",
    "clipnorm": "training.clip_norm",
    "clipvalue": "training.clip_norm",
    "global_clipnorm": "training.clip_norm",
    "use_ema": "training.ema_decay",
    "ema_momentum": "training.ema_decay",
    "ema_overwrite_frequency": "training.ema_decay",
    "ema_decay": "training.ema_decay",
    "gradient_accumulation_steps": "training.micro_batches",
    "loss_scale_factor": 'training.precision = "mixed_float16"',
    "adam_weight_decay": "weight_decay",
    "name": "training.optimizer",
}
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
BELOW_1 = re.compile(r"(adam_)?beta_[12]|momentum|rho")  # arguments that are decays of moving averages


def class_of(name: str) -> Any:
    """The class of a key of OPTIMIZERS, or of a name that Keras knows. Raises ConfigError for any other name."""
    if name in OPTIMIZERS:
        return OPTIMIZERS[name][0]
    known = {
        key: kind
        for key, kind in vars(keras.optimizers).items()
        if inspect.isclass(kind) and issubclass(kind, keras.optimizers.Optimizer) and key not in NO_OPTIMIZERS
    }
    kind = known.get(name) or keras.saving.get_registered_object(name)
    if key := next((key for key, (own, _) in OPTIMIZERS.items() if own is kind), KEY_OF_CLASS.get(name)):
        raise ConfigError(f'training.optimizer is "{name}": here it is "{key}".')
    if inspect.isclass(kind) and issubclass(kind, keras.optimizers.Optimizer):
        return kind
    others = [key for key in known if key not in KEY_OF_CLASS]
    likely = difflib.get_close_matches(name, [*OPTIMIZERS, *others], 1)
    hint = f'did you mean "{likely[0]}"? There' if likely else "there"
    raise ConfigError(
        f'training.optimizer is "{name}"; {hint} are {", ".join(OPTIMIZERS)}; of Keras {", ".join(others)}; and what '
        "`keras.saving.register_keras_serializable` has registered."
    )


def name_of(name: str) -> str:
    """The name of the optimizer, and with it of its variables in checkpoints: "adam", or "mine" of "package>Mine"."""
    return name.rpartition(">")[2].lower()


def constants_of(training: TrainingConfig) -> dict[str, Any]:
    """The constants of the optimizer before those of `training.optimizer_options`.

    Adam's are the paper's (section 5.3), or with any other schedule those of Kingma & Ba (2015).
    """
    adam = PAPER_ADAM if training.schedule == "paper" else KINGMA_BA_ADAM
    own = OPTIMIZERS[training.optimizer][1] if training.optimizer in OPTIMIZERS else {}
    return {**(adam if training.optimizer in OF_ADAM else {}), **own}


def arguments_of(kind: type[keras.optimizers.Optimizer]) -> dict[str, Any]:
    """The arguments of a class with their defaults; where it passes on others, those of its base too."""
    found: dict[str, Any] = {}
    for made in [vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base)]:
        parameters = inspect.signature(made).parameters.values()
        found |= {each.name: each.default for each in parameters if each.kind in NAMED and each.name not in found}
        if all(each.kind != inspect.Parameter.VAR_KEYWORD for each in parameters):
            break
    return {name: default for name, default in found.items() if name not in ("self", *OWNED)}


def check_optimizer(training: TrainingConfig) -> None:
    """Raises ConfigError for an optimizer that there is not, and for options that it does not take."""
    kind, options = class_of(training.optimizer), training.optimizer_options or {}
    arguments = arguments_of(kind)
    for name, value in options.items():
        if name in OWNED:
            raise ConfigError(
                f"training.optimizer_options has {name}, which training sets itself: leave it out, and set "
                f"{OWNED[name]} instead."
            )
        if name not in arguments:
            raise ConfigError(
                f'training.optimizer_options has {name}, which "{training.optimizer}" does not take. It takes '
                f"{', '.join(arguments) or 'none'}."
            )
        if expected := expected_of(name, value, arguments[name]):
            raise ConfigError(f"training.optimizer_options.{name} is {value!r}; it must be {expected}.")
    try:
        kind(1.0, **{**constants_of(training), **options})
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f'training.optimizer is "{training.optimizer}", and Keras does not make it with {options}: '
            f"{' '.join(str(error).split())}"
        ) from None


def expected_of(name: str, value: Any, default: Any) -> str:
    """What the value of an argument must be and is not; "" if it is. An argument without a default may be anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, str):
        return "" if isinstance(value, str) else "a text"
    if not isinstance(default, int | float) and name != "weight_decay":
        return ""
    if name.endswith("_steps") and not isinstance(value, int):
        return "a whole number"
    if not is_number:
        return "a number"
    if BELOW_1.fullmatch(name) and not 0 <= value < 1:
        return "at least 0 and less than 1"
    is_size = name == "weight_decay" or name.startswith("epsilon") or name.endswith("_steps")
    return "at least 0" if is_size and value < 0 else ""
