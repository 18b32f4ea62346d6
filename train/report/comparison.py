"""Several runs side by side, from what their folders hold: settings that differ, scores, speed."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.files import DAMAGED_ARCHIVE
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.run_folder import CHECKPOINTS, RunFolder

from ..config.recorded import load_recorded
from ..config.settings import effective_settings
from ..scoring.tables import INTERVAL_NOTE, Table
from .curves import read_curves

NO_SCORES = "not evaluated"
NO_VALUE = "-"
VALIDATIONS = {  # from the name of a curve to what it is called
    "loss": "loss",
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact, per cent",
    "bracketing_f1": "F1",
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A run, from what its folder holds."""

    name: str  # the path as it was given
    settings: dict[str, bool | int | float | str]
    curves: dict[str, np.ndarray]  # from each name to (points, 2): steps and values
    scores: dict[str, Any] | None  # what scores.json holds; None if training has not ended, or goes on
    minutes: float | None  # of training, over all its processes; None before the first checkpoint

    @property
    def steps(self) -> int:
        return steps_in(self.curves)

    @property
    def tokens_per_second(self) -> float | None:
        """Target tokens per second: the median of all updates."""
        rates = self.curves.get("train/tokens_per_second")
        return None if rates is None else float(np.median(rates[:, 1]))

    def best(self, name: str) -> tuple[int, float] | None:
        """The step and the value of the best validation by one of VALIDATIONS."""
        points = self.curves.get(f"validation/{name}")
        if points is None:
            return None
        values = points[:, 1]
        step, value = points[values.argmin() if name == "loss" else values.argmax()]
        return int(step), float(value)

    def score(self, name: str, form: str) -> dict[str, Any] | None:
        """A score of the test set, as `Score.as_json` has it."""
        return score_in(self.scores or {"scores": ()}, name, form)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.name,
            "settings": self.settings,
            "scores": self.scores,
            "best_validation": {name: self.best(name) for name in VALIDATIONS},
            "tokens_per_second": self.tokens_per_second,
            "steps": self.steps,
            "minutes": self.minutes,
        }


def read_run(path: pathlib.Path) -> Run:
    """Read a run folder. Raises ConfigError if `path` is not one, InputError if a file in it is damaged."""
    folder = RunFolder(path)
    if not path.is_dir():
        raise ConfigError(
            f"There is no folder {path}. Name run folders, which `keras-transformer train` prints at its end."
        )
    if not folder.config.is_file():
        raise ConfigError(
            f"{path} is no run folder: it has no {folder.config.name}. Name run folders, which `keras-transformer "
            "train` prints at its end."
        )
    settings = effective_settings(load_recorded(folder.config))
    curves = read_curves(folder.metrics)
    return Run(str(path), settings, curves, read_scores(folder, steps_in(curves)), minutes_of(folder))


def steps_in(curves: dict[str, np.ndarray]) -> int:
    """The last step of training that the curves have; 0 without any."""
    return int(curves["train/loss"][-1, 0]) if "train/loss" in curves else 0


def read_scores(folder: RunFolder, steps: int) -> dict[str, Any] | None:
    """What scores.json holds; None if there is no such file, or if it is of a step before `steps`."""
    if not folder.scores.exists():
        return None
    try:
        scores = json_of(folder.scores.read_text(encoding="utf-8"))
        check_scores(scores)
        return scores if scores.get("step", steps) >= steps else None  # older files have no step
    except (ValueError, AttributeError, TypeError, LookupError, OverflowError) as error:
        cause = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{folder.scores} is damaged: {cause}. Remove it, or run the training command again, which writes it."
        ) from None


def check_scores(scores: dict[str, Any]) -> None:
    """Write all that a comparison writes of a scores.json. Raises whatever that raises if something is not there."""
    shown = [scored_text_of(scores), exact_of(scores)]
    for score in scores["scores"]:
        shown += [score["name"] + score["form"] + score["signature"], score_text_of(score)]


def score_in(scores: dict[str, Any], name: str, form: str) -> dict[str, Any] | None:
    """One of the scores that scores.json holds; None if it has none of that name and form."""
    return next((score for score in scores["scores"] if (score["name"], score["form"]) == (name, form)), None)


def minutes_of(folder: RunFolder) -> float | None:
    """The minutes in the Progress of the newest intact checkpoint; None if there is none."""
    for path in sorted(folder.checkpoints.glob(CHECKPOINTS), reverse=True):
        try:
            with np.load(path) as archive:  # reads no weights
                return json_of(str(archive["progress"]))["seconds"] / 60
        except (OSError, *DAMAGED_ARCHIVE):
            continue  # the next start of training names it, and goes on from the checkpoint before
    return None


def differing(runs: Sequence[Run]) -> list[str]:
    """The settings that are not the same in all runs."""
    keys = sorted(set().union(*(run.settings for run in runs)))
    return [key for key in keys if any(run.settings.get(key) != runs[0].settings.get(key) for run in runs)]


def comparison_table(runs: Sequence[Run]) -> Table:
    """One column per run: the settings that differ, the scores of the test set, the best validation, speed."""
    rows = [(key, *(shown(run.settings.get(key)) for run in runs)) for key in differing(runs)]
    rows += score_rows(runs)
    for name, label in VALIDATIONS.items():
        best = [run.best(name) for run in runs]
        if any(best):
            cells = (f"{point[1]:.3f} at step {point[0]:,}" if point else NO_VALUE for point in best)
            rows.append((f"best validation {label}", *cells))
    rows += [
        (
            "target tokens/s, median",
            *(f"{run.tokens_per_second:,.0f}" if run.tokens_per_second else NO_VALUE for run in runs),
        ),
        ("steps", *(f"{run.steps:,}" for run in runs)),
        ("minutes", *(NO_VALUE if run.minutes is None else f"{run.minutes:,.1f}" for run in runs)),
    ]
    return Table(f"{len(runs)} runs", ("", *(run.name for run in runs)), rows)


def score_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """The scores in scores.json, each with half of its confidence interval."""
    scored = [run.scores for run in runs]
    rows = [("scored on", *(scored_text_of(own) if own else NO_SCORES for own in scored))]
    for name, form in score_names(runs):
        rows.append((f"{name}, {form}", *(score_cell(run, name, form) for run in runs)))
    rows.append(("exact, per cent", *(exact_of(own) if own else NO_SCORES for own in scored)))
    return rows if any(scored) else rows[:1]


def scored_text_of(scores: dict[str, Any]) -> str:
    """What was scored, and how many sentences it has."""
    return f"{scores['split']}, {scores['sentences']:,} sentences"


def exact_of(scores: dict[str, Any]) -> str:
    """How many translations are the reference, in per cent."""
    return f"{scores['exact']:.2f}"


def score_names(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The name and the form of each score that any of the runs has."""
    scores = [score for run in runs if run.scores for score in run.scores["scores"]]
    return list(dict.fromkeys((score["name"], score["form"]) for score in scores))


def score_cell(run: Run, name: str, form: str) -> str:
    """A score of a run as a cell of the table: "39.02 ± 1.31"."""
    score = run.score(name, form)
    if score is None:
        return NO_VALUE if run.scores else NO_SCORES
    return score_text_of(score)


def score_text_of(score: dict[str, Any]) -> str:
    """The same of a score as `Score.as_json` has it."""
    if score["value"] is None:
        return f"n/a ({score['undefined']})"
    low, high = score["interval"] or (0.0, 0.0)
    return f"{score['value']:.2f}" + (f" ± {(high - low) / 2:.2f}" if score["interval"] else "")


def signature_lines(runs: Sequence[Run]) -> list[str]:
    """The signature of each score. Runs with different signatures, which cannot be compared, get a line each."""
    runs_of = {}
    for name, form in score_names(runs):
        for run in runs:
            if score := run.score(name, form):
                runs_of.setdefault((name, form, score["signature"]), []).append(run.name)
    scored = sum(run.scores is not None for run in runs)
    return [
        f"{name}, {form}: {signature}" + (f" ({', '.join(names)})" if len(names) < scored else "")
        for (name, form, signature), names in runs_of.items()
    ]


def comparison_lines(runs: Sequence[Run]) -> list[str]:
    """What a person reads: the table, and the signatures of its scores."""
    notes = signature_lines(runs)
    return [*comparison_table(runs).lines(), *([""] if notes else []), *notes, *([INTERVAL_NOTE] if notes else [])]


def shown(value: bool | int | float | str | None) -> str:
    """A setting as config.toml has it."""
    if value is None:
        return NO_VALUE
    return str(value).lower() if isinstance(value, bool) else str(value)
