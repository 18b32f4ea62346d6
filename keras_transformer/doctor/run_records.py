"""Whether what a run remembers can be read: its configuration, history, text, metrics, scores, and what was fitted."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from keras_transformer.doctor.finding import Finding, missing, note, ok
from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.files import unpacked_lines
from keras_transformer.ground.notations import json_of, toml_of
from keras_transformer.runs.confidence import Calibration
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.shortlist.shortlist import Shortlist

RESTORE = "copy it again from where the run was trained"


def records(folder: RunFolder) -> Iterator[Finding]:
    """Yield a finding on each of these files that is damaged, and one on how many of them can be read."""
    checks: dict[pathlib.Path, tuple[Callable[[pathlib.Path], object], str]] = {
        folder.config: (check_configuration, f"{RESTORE}, or let train write it again from your CONFIG"),
        folder.history: (check_history, f"{RESTORE}; without it, report.md does not say how the run was trained"),
        folder.training_text: (check_training_text, f"{RESTORE}; without it, train does not see if the text changes"),
        folder.scores: (check_scores, f"{RESTORE}, or run its training command again, which writes it"),
        folder.calibration: (Calibration.load, f"remove it, or keras-transformer calibrate {folder.path}"),
        folder.shortlist: (Shortlist.load, f"remove it, or keras-transformer shortlist {folder.path}"),
        folder.check_lines: (check_text, f"{RESTORE}, or export the run with --check FILE"),
    }
    whole = []
    for file, (check, remedy) in checks.items():
        if not file.exists():
            continue
        try:
            check(file)
        except UserError as error:
            sentence = first_line_of(error)[:-1]
            yield missing(sentence.rpartition(". ")[0] or sentence, remedy)  # which says what to do in its place
        except OSError as error:
            yield missing(first_line_of(error)[:-1], remedy)
        except ValueError as error:  # neither UTF-8, TOML nor JSON, or not what it must hold
            yield missing(f"{file.name} is damaged: {first_line_of(error).rstrip('.')}", remedy)
        else:
            whole.append(file.name)
    if folder.metrics.exists() and (damaged := damaged_metrics(folder.metrics)):
        yield note(f"{folder.metrics.name} has damaged lines: {damaged}", "train goes on and puts them aside")
    if whole:
        yield ok(f"readable: {', '.join(whole)}")


def check_configuration(path: pathlib.Path) -> None:
    """Raises ValueError if a config.toml is not that of a training."""
    values = toml_of(path.read_text("utf-8-sig"))
    if not values:
        raise ValueError("it is empty")
    if not isinstance(values.get("data"), dict):
        raise ValueError("it has no section [data]")


def check_history(path: pathlib.Path) -> None:
    """Raises ValueError if a line of history.jsonl is no part of a training, or if there is none."""
    lines = path.read_text("utf-8").splitlines()
    if not lines:
        raise ValueError("it is empty")
    for number, line in enumerate(lines, start=1):
        try:
            check_keys(json_of(line), step=int, changes=dict)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None


def check_training_text(path: pathlib.Path) -> None:
    """Raises ValueError if training_text.json is no record of a text, or if one that it holds is none."""
    record = json_of(path.read_text("utf-8"))
    while record is not None:
        check_keys(record, pairs=int, shards=list, files=dict)
        record = record.get("before")


def check_scores(path: pathlib.Path) -> None:
    """Raises ValueError if scores.json has no list of scores with a name each."""
    values = json_of(path.read_text("utf-8"))
    check_keys(values, scores=list)
    for score in values["scores"]:
        check_keys(score, name=str)


def check_text(path: pathlib.Path) -> None:
    """Raises InputError if a file is not UTF-8, and ValueError if it has no text, as after a loss of power."""
    if not any([line.strip(" \0") for line in unpacked_lines(path)]):
        raise ValueError("it has no text")


def check_keys(record: Any, **kinds: type) -> None:
    """Raises ValueError if `record` is no object that has these keys with values of these kinds."""
    if not isinstance(record, dict):
        raise ValueError(f"{json.dumps(record)[:40]} is no object")
    for key, kind in kinds.items():
        if key not in record:
            raise ValueError(f"it has no {key!r}")
        if not isinstance(record[key], kind):
            raise ValueError(f"{key!r} is {json.dumps(record[key])[:40]}")


def damaged_metrics(path: pathlib.Path) -> str:
    """Return the numbers of the lines of metrics.jsonl that are no records, as text; "" if there are none."""
    numbers = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                check_keys(json_of(line), step=int)
            except ValueError:
                numbers.append(number)
    return ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else "")
