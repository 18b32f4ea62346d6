"""The result of a trial, and the file that keeps it: what one machine has trained, no other has to train again."""

import gzip
import json
import pathlib
import string
import tomllib
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import write_result
from benchmarks.trials.settings import check_same_settings
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.runs.run_folder import RunFolder
from train.config.recorded import check_recorded
from train.report.comparison import read_run, score_in, score_text_of

MOST_NAMED = 6  # rows that one commit has trained, by name
KEPT = "trials.jsonl.gz"  # one line per trial, in the folder of a table


class Trial(NamedTuple):
    """A configuration, with what this trial changes in it."""

    name: str  # of its run folder
    config: pathlib.Path
    overrides: tuple[str, ...] = ()  # "training.dropout=0.2", as --set takes them
    same_updates_as: str | None = None  # the trial that differs only in what is done after the last step
    label: str = ""  # what it changes, where the overrides are too long to be read

    @property
    def change(self) -> str:
        """What it changes, in a table; nothing if it is the configuration as it stands."""
        return self.label or ", ".join(self.overrides)

    @property
    def settings(self) -> list[str]:
        """What it changes in its configuration, which has no test set for any of them."""
        return [*self.overrides, "data.test=[]"]


class Outcome(NamedTuple):
    """The result of a trial that has ended, on the validation set."""

    machine: str  # that trained it: "AMD EPYC, 2 cores"
    commits: list[str | None]  # of the code that trained it, the first one first
    config: str  # config.toml
    scores: dict[str, Any]  # what scores.json holds
    steps: int
    tokens_per_second: float  # target tokens: the median of all updates
    train_seconds: float  # of all steps: compilation included, validations and checkpoints not
    minutes: float | None  # with validations and checkpoints
    curve: list[list[float]]  # of each validation: the minutes of training steps before it, and its BLEU
    translations: list[str]  # of the validation set
    target_tokens: float | None = None  # that it trained on; rows from before this was kept have none
    measures: dict[str, Any] = {}  # what a benchmark measured of the run beside this, see `trained`

    @property
    def perplexity(self) -> float:
        """Per token of the tokenizer."""
        return self.scores["validation_perplexity"]

    def perplexity_text(self) -> str:
        """The same with half of its 95 per cent interval: "6.84 ± 0.21"; a row of before there was one has none."""
        low, high = self.scores.get("validation_perplexity_interval") or (None, None)
        return f"{self.perplexity:.2f}" + (f" ± {(high - low) / 2:.2f}" if low is not None else "")

    @property
    def parameters(self) -> int:
        return self.scores["parameters"]

    def score(self, name: str, form: str = "raw text") -> dict[str, Any]:
        """A score, as `Score.as_json` has it."""
        return score_in(self.scores, name, form)

    def bleu(self, form: str = "raw text") -> str:
        """BLEU with half of its 95 per cent interval: "38.62 ± 1.31"."""
        return score_text_of(self.score("BLEU", form))


def empty_sentence(outcomes: dict[str, Outcome]) -> str:
    """Return a sentence with the number of empty translations of each trial; "" if there is none.

    A model that is trained with label smoothing and unsure of itself often finds the empty translation most probable
    (Stahlberg and Byrne 2019), and the brevity penalty of BLEU counts all sentences together.
    """
    counts = {name: sum(not text.strip() for text in outcome.translations) for name, outcome in outcomes.items()}
    if not any(counts.values()):
        return ""
    numbers = ", ".join(f"{name} {count}" for name, count in counts.items())
    total = max(len(outcome.translations) for outcome in outcomes.values())
    return (
        f"Empty translations, of {total:,}: {numbers}. A model that is unsure of itself finds nothing more probable "
        "than any long sentence (Stahlberg and Byrne 2019), which costs BLEU."
    )


def commits_sentence(outcomes: dict[str, Outcome]) -> str:
    """Return a sentence with the commits that trained each row; "" if it is the same commit for all.

    Of more than MOST_NAMED rows by one commit it has the number: their names are in the file that keeps them.
    """
    if len({commit for outcome in outcomes.values() for commit in outcome.commits}) < 2:
        return ""
    rows: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        commits = " and ".join(commit[:7] if commit else "an unknown commit" for commit in outcome.commits)
        rows.setdefault(commits, []).append(name)
    named = {
        commits: ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} rows"
        for commits, names in rows.items()
    }
    rows_by_commit = "; ".join(f"{names} by {commits}" for commits, names in named.items())
    return f"Not all rows were trained by the same code: {rows_by_commit}."


def outcome_of_run(path: pathlib.Path, translations: pathlib.Path, measures: dict[str, Any]) -> Outcome:
    """Return the result of the run in that folder, which this machine has trained.

    translations: the file with those of the validation set. measures: what else is kept.
    """
    from train.record.history import history  # which loads Keras: the help of a command does not wait for it

    folder, run = RunFolder(path), read_run(path)
    return Outcome(
        processor_and_cores(),
        list(dict.fromkeys(part.commit for part in history(folder))),
        folder.config.read_text(encoding="utf-8"),
        run.scores,
        run.steps,
        run.tokens_per_second,
        float(step_seconds(run.curves).sum()),
        run.minutes,
        bleu_over_time(run.curves),
        translations.read_text(encoding="utf-8").removesuffix("\n").split("\n"),
        target_tokens_in(run.curves),
        measures,
    )


def write_outcome(outcome: Outcome, name: str, folder: pathlib.Path) -> None:
    """Keep the result of the trial of that name: a line of JSON in the file of its table."""
    rows = kept_rows(folder) | {name: outcome._asdict()}
    lines = "".join(json.dumps({"trial": name} | rows[name], ensure_ascii=False) + "\n" for name in sorted(rows))
    write_result(folder / KEPT, gzip.compress(lines.encode("utf-8"), mtime=0))  # the same rows are the same bytes


def kept_rows(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """The fields of all outcomes that are kept in a folder, by the names of their trials.

    Raises BenchmarkError if the file is damaged.
    """
    path = folder / KEPT
    if not path.exists():
        return {}
    try:
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()]
        return {row.pop("trial"): row for row in rows}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, AttributeError) as error:
        raise BenchmarkError(f"{path} is damaged: {error}. Restore it; without it, all its rows train again.") from None


def read_outcome(trial: Trial, folder: pathlib.Path) -> Outcome | None:
    """Return the result of the trial; None if it has not ended.

    Raises BenchmarkError if the file is damaged, or if the trial was trained with other settings.
    """
    path, row = folder / KEPT, kept_rows(folder).get(trial.name)
    if row is None:
        return None
    try:
        outcome = Outcome(**row)
        before = check_recorded(tomllib.loads(outcome.config), path)
    except (ValueError, TypeError) as error:
        raise BenchmarkError(f"The row {trial.name} of {path} is damaged: {error}. Restore the file.") from None
    remedy = "Name another folder with --results."
    check_same_settings(before, trial.config, trial.settings, f"The row {trial.name} of {path} is of", remedy)
    return outcome


def step_seconds(curves: dict[str, np.ndarray]) -> np.ndarray:
    """Return the seconds of each step of a run, the wait for its batch included: (steps,)."""
    return curves["train/seconds_in_step"][:, 1] + curves["train/seconds_waiting"][:, 1]


def target_tokens_in(curves: dict[str, np.ndarray]) -> float:
    """Return the number of target tokens that all steps of a run trained on."""
    return float(curves["train/tokens_per_second"][:, 1] @ step_seconds(curves))


def bleu_over_time(curves: dict[str, np.ndarray]) -> list[list[float]]:
    """Of each validation, the minutes of training steps before it, and its BLEU."""
    steps, bleu = curves.get("validation/bleu", np.empty((0, 2))).T
    minutes = np.concatenate([[0.0], step_seconds(curves).cumsum() / 60])
    before = np.searchsorted(curves["train/seconds_in_step"][:, 0], steps, side="right")
    return np.stack([minutes[before], bleu], axis=1).tolist()


def machines(outcomes: Iterable[Outcome]) -> str:
    """Return the machines that trained, for a heading: each once, or this one if nothing has been trained.

    If there are several, each is followed by its `mark`.
    """
    outcomes = list(outcomes)
    first = {outcome.machine: outcome for outcome in outcomes}
    return " and ".join(f"{machine}{mark(first[machine], outcomes)}" for machine in first) or processor_and_cores()


def mark(outcome: Outcome, outcomes: Iterable[Outcome]) -> str:
    """Return the letter of the machine of an outcome, such as " (a)"; "" if there is only one machine."""
    every = list(dict.fromkeys(other.machine for other in outcomes))
    return f" ({string.ascii_lowercase[every.index(outcome.machine)]})" if len(every) > 1 else ""
