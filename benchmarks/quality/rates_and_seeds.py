"""Series of trainings with several learning rates of one seed, then with other seeds at the rate that was best."""

import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.quality.variants_table import Training, best_rate
from benchmarks.trials.outcome import Trial, read_outcome
from train.config.run import RunConfig

TrialOf = Callable[[str, float, int], Trial]  # of a name, a part of the configuration's learning rate, and a seed


def ended(
    trial_of: TrialOf, names: Iterable[str], rates: Sequence[float], seeds: int, kept: pathlib.Path
) -> list[Training]:
    """All trainings of a series that have ended."""
    asked = [(name, rate, seed) for seed in range(1, seeds + 1) for rate in rates for name in names]
    found = ((key, read_outcome(trial_of(*key), kept)) for key in asked)
    return [Training(*key, outcome) for key, outcome in found if outcome]


def order(
    trial_of: TrialOf, names: Sequence[str], rates: Sequence[float], seeds: int, kept: pathlib.Path
) -> Iterator[Trial]:
    """What to train, one after the other: a stop after any of them leaves rows that can be compared.

    First come all names at one rate, then at the others, then with the other seeds at their best rate.
    """
    yield from (trial_of(name, rate, 1) for rate in rates for name in names)
    for seed in range(2, seeds + 1):
        for name in names:
            yield trial_of(name, best_rate(ended(trial_of, [name], rates, 1, kept), name), seed)


def of_length(base: RunConfig, steps: int) -> tuple[str, ...]:
    """The settings with which the configuration has so many updates, and all that is counted in them in proportion."""
    share = steps / base.training.steps
    counted = ("steps", "warmup_steps", "cooldown_steps", "checkpoint_every", "validate_every")
    return tuple(f"training.{name}={max(1, round(share * getattr(base.training, name)))}" for name in counted)
