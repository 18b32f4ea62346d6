"""The history of a run: a line per process that trained it, with its code and what it changed in the configuration."""

import json
import logging
import pathlib
import subprocess
from typing import NamedTuple

from keras_transformer.ground.files import resolved, write_atomically
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.run_folder import RunFolder

from ..config.training import TrainingConfig
from ..loop.best import is_done
from ..loop.checkpoints import last_progress
from ..loop.progress import Progress

CHECKOUT = pathlib.Path(__file__).parents[2]

log = logging.getLogger("train")

Changes = dict[str, tuple[str, str]]  # from each key of the configuration that changed to its values before and after


class Part(NamedTuple):
    """What one process trained."""

    step: int  # updates that had been done before it
    commit: str | None  # of the code; None outside a git checkout
    changes: Changes


def record_part(folder: RunFolder, training: TrainingConfig, commit: str | None, changes: Changes) -> None:
    """Add a line to the history. If nothing is left to train, take out the parts that trained nothing instead.

    A damaged history is kept as history.jsonl.damaged, and begun anew.

    A part that starts at or before the previous part's step replaces it and inherits its changes: that process's steps
    were lost. Before the first step there are no changes.
    """
    progress = last_progress(folder.checkpoints)
    if progress is None and folder.has_begun():
        return  # all checkpoints are damaged, so that training will not start
    progress, parts = progress or Progress(), history(folder)
    if not parts and folder.history.exists() and folder.history.stat().st_size:
        folder.history.replace(folder.history.with_name(f"{folder.history.name}.damaged"))
    while parts and parts[-1].step >= progress.step:
        changes = joined(parts.pop().changes, changes)
    if not is_done(progress, training):
        parts.append(Part(progress.step, commit, changes if progress.step else {}))
    write_atomically(folder.history, "".join(json.dumps(part._asdict()) + "\n" for part in parts))


def joined(first: Changes, then: Changes) -> Changes:
    """The changes of one process and of the next as one; a key that has its old value again has not changed."""
    earliest, latest = then | first, first | then
    ends = {key: (earliest[key][0], latest[key][1]) for key in latest}
    return {key: (before, after) for key, (before, after) in ends.items() if before != after}


def history(folder: RunFolder) -> list[Part]:
    """The parts of a run in their order; none without a file, and none if it is damaged, which is logged."""
    if not folder.history.exists():
        return []
    try:
        return [Part(**json_of(line)) for line in folder.history.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        log.warning("%s cannot be read (%s): how the run was trained so far is not known", folder.history, error)
        return []


def commit(checkout: pathlib.Path = CHECKOUT) -> str | None:
    """The commit that is checked out in the folder, "with uncommitted changes" if it has any; None outside git.

    A folder inside the checkout of another project has no commit of its own.
    """
    top = git(checkout, "rev-parse", "--show-toplevel")
    if top is None or resolved(top) != resolved(checkout):
        return None
    head = git(checkout, "rev-parse", "HEAD")
    changes = git(checkout, "status", "--porcelain", "--untracked-files=no")
    return f"{head} with uncommitted changes" if head and changes else head


def git(checkout: pathlib.Path, *arguments: str) -> str | None:
    """What a git command prints; None if it fails or git is not installed."""
    try:
        process = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
