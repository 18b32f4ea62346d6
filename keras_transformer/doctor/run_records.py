"""Whether what a run remembers can be read: its configuration, history, text, metrics, scores, and what was fitted."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from keras_transformer.doctor.finding import Finding, missing, ok
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
        folder.history: (objects_in, f"{RESTORE}; without it, report.md does not say how the run was trained"),
        folder.training_text: (objects_in, f"{RESTORE}; without it, train does not see if the text changes"),
        folder.scores: (objects_in, f"{RESTORE}, or run its training command again, which writes it"),
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
    if whole:
        yield ok(f"readable: {', '.join(whole)}")


def check_configuration(path: pathlib.Path) -> None:
    """Raises ValueError if a config.toml is not that of a training."""
    values = toml_of(path.read_text("utf-8-sig"))
    if not values:
        raise ValueError("it is empty")
    if not isinstance(values.get("data"), dict):
        raise ValueError("it has no section [data]")


def check_text(path: pathlib.Path) -> None:
    """Raises InputError if a file is not UTF-8, and ValueError if it has no text, as after a loss of power."""
    if not any([line.strip(" \0") for line in unpacked_lines(path)]):
        raise ValueError("it has no text")


def objects_in(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON, or one per line. Raises ValueError if there is none, or it is damaged."""
    text = path.read_text("utf-8")
    objects = [json_of(part) for part in (text.splitlines() if path.suffix == ".jsonl" else [text])]
    if not objects or not all(isinstance(each, dict) for each in objects):
        raise ValueError("it holds no object of JSON")
    return objects
