"""Keys of the section `training` that would do nothing: a run that is begun with them is not what its user wants.

A run that has them in its config.toml can be read nevertheless.
"""

from keras_transformer.config import ConfigError

from .run import TrainingConfig

OF_SCHEDULE = {"warmup_steps": "paper", "learning_rate_factor": "paper", "learning_rate": "constant"}


def check_idle_keys(training: TrainingConfig) -> None:
    """Raises ConfigError for a key of the other schedule, and for a metric by which nothing goes."""
    check_schedule(training)
    check_metric(training)


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
