"""Keys of the section `training` that would do nothing: a run that is begun with them is not what its user wants.

A run that has them in its config.toml can be read nevertheless.
"""

from keras_transformer.config import ConfigError
from train.config import RunConfig, TrainingConfig

OF_SCHEDULE = {"warmup_steps": "paper", "learning_rate_factor": "paper", "learning_rate": "constant"}


def check_idle_keys(config: RunConfig) -> None:
    """Raises ConfigError for a key of the other schedule, a metric by which nothing goes, and a risk of nothing."""
    check_schedule(config.training)
    check_metric(config.training)
    check_risk(config)


def check_risk(config: RunConfig) -> None:
    """Raises ConfigError for keys that the other kind of training does not have."""
    training, has_candidates = config.training, getattr(config.data, "candidates", None) is not None
    if not has_candidates and training.risk_sharpness != type(training).model_fields["risk_sharpness"].default:
        raise ConfigError(
            f"training.risk_sharpness is {training.risk_sharpness}, which is of minimum risk training, and there is no "
            "data.candidates: set that too, or leave it out."
        )
    if has_candidates and training.bpe_dropout:
        raise ConfigError(
            f"training.bpe_dropout is {training.bpe_dropout}, but with data.candidates every epoch has the same "
            "pieces: leave one of them out."
        )


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
