"""Keys of the section `training` that would do nothing: a run that is begun with them is not what its user wants.

A run that has them in its config.toml can be read nevertheless.
"""

from keras_transformer.config import ConfigError
from train.config import RunConfig, TrainingConfig

OF_SCHEDULE = {"warmup_steps": "paper", "learning_rate_factor": "paper", "learning_rate": "constant"}


def check_idle_keys(config: RunConfig) -> None:
    """Raises ConfigError for a key of the other schedule, a metric by which nothing goes, a rate that nothing has."""
    check_schedule(config.training)
    check_metric(config.training)
    check_cooldown_dropout(config)


def check_schedule(training: TrainingConfig) -> None:
    """Raises ConfigError for a key of the other schedule, which would mean nothing."""
    for name, schedule in OF_SCHEDULE.items():
        if training.schedule != schedule and getattr(training, name) != type(training).model_fields[name].default:
            raise ConfigError(
                f'training.{name} is {getattr(training, name)}, which is of schedule "{schedule}", and '
                f'training.schedule is "{training.schedule}": leave it out, or set the other schedule.'
            )


def check_metric(training: TrainingConfig) -> None:
    """Raises ConfigError for a metric by which nothing goes."""
    if training.best_metric != "bleu" and not (training.patience or training.keep_best):
        raise ConfigError(
            f'training.best_metric is "{training.best_metric}", but it is for training.patience and '
            "training.keep_best, and neither is set: set one of them, or leave best_metric out."
        )


def check_cooldown_dropout(config: RunConfig) -> None:
    """Raises ConfigError for a dropout of the cool-down without a cool-down, or of a model without dropout."""
    rate = config.training.cooldown_dropout
    dropout = config.transformer_config(config.tokenizer.vocab_size).dropout
    if rate in (None, dropout):
        return
    if not config.training.cooldown_steps:
        raise ConfigError(
            f"training.cooldown_dropout is {rate}, and training.cooldown_steps is 0: set it, or leave "
            "cooldown_dropout out."
        )
    if not dropout:
        raise ConfigError(
            f"training.cooldown_dropout is {rate}, and the dropout is 0, of the model's layers in the cool-down too: "
            "set training.dropout, or leave cooldown_dropout out."
        )
