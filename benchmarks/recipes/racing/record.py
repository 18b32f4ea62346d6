"""The events of a race: one line of race.jsonl per turn and per checkpoint, from which the race can go on."""

import json
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.errors import BenchmarkError
from keras_transformer.ground.files import write_atomically


class Reached(NamedTuple):
    """A checkpoint, and the seconds for which its contestant had run when it was seen."""

    step: int
    seconds: float
    path: pathlib.Path


class Record:
    """The file race.jsonl. Half a line, as a race that was killed may leave at its end, is taken out.

    A contestant's clock counts the seconds in which it was running, its start included. If its process ends before its
    time is over, what it did since its last checkpoint is lost, and so the clock goes back to that checkpoint.
    """

    def __init__(self, path: pathlib.Path):
        self.path, self.lines = path, []
        if path.exists():
            whole, _, torn = path.read_text(encoding="utf-8").rpartition("\n")  # by a race that was killed
            self.lines = [json.loads(line) for line in whole.splitlines()]
            if torn:
                write_atomically(path, f"{whole}\n" if whole else "")

    def begin(self, settings: Mapping[str, str | int]) -> None:
        """Record the settings of the race. Raises BenchmarkError if it was begun with other settings."""
        begun = next((line["settings"] for line in self.lines if line["event"] == "begun"), None)
        if begun is None:
            self._add({"event": "begun", "settings": settings})
        elif changed := [key for key in settings if begun.get(key) != settings[key]]:
            differences = "; ".join(f"{key} was {begun.get(key)} and is {settings[key]}" for key in changed)
            raise BenchmarkError(
                f"The race in {self.path.parent} was begun with other settings: {differences}. "
                "Remove that folder, or name another one with --folder."
            )

    def checkpoints(self, name: str) -> list[Reached]:
        """Return the checkpoints of a contestant, the oldest first."""
        lines = self._of(name, "checkpoint")
        by_step = {line["step"]: Reached(line["step"], line["seconds"], pathlib.Path(line["path"])) for line in lines}
        return [by_step[step] for step in sorted(by_step)]

    def seconds(self, name: str) -> float:
        """Return for how long a contestant has run until its last checkpoint."""
        return max((reached.seconds for reached in self.checkpoints(name)), default=0.0)

    def memory_bytes(self, name: str) -> int:
        """Return the largest memory that all processes of a contestant were seen to have in a turn."""
        return max((line["memory_bytes"] for line in self._of(name, "turn")), default=0)

    def add_turn(self, name: str, seconds: float, memory_bytes: int) -> None:
        """Record the end of a turn; `seconds`: of the contestant's clock. `memory_bytes`: its peak."""
        self._add({"contestant": name, "event": "turn", "seconds": round(seconds, 2), "memory_bytes": memory_bytes})

    def add_checkpoint(self, name: str, step: int, seconds: float, path: pathlib.Path) -> None:
        self._add(
            {"contestant": name, "event": "checkpoint", "step": step, "seconds": round(seconds, 2), "path": str(path)}
        )

    def _of(self, name: str, event: str) -> list[dict]:
        return [line for line in self.lines if line["event"] == event and line["contestant"] == name]

    def _add(self, line: dict) -> None:
        self.lines.append(line)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def at_marks(checkpoints: list[Reached], every: float, last: float) -> dict[float, Reached]:
    """Return by mark, every so many seconds until `last`, the newest checkpoint that was there by then."""
    reached_at = {}
    for number in range(1, int(last / every) + 1):
        mark = number * every
        if there := [reached for reached in checkpoints if reached.seconds <= mark]:
            reached_at[mark] = there[-1]
    return reached_at


def first_mark_with(scores: dict[float, float], bleu: float) -> float | None:
    """Return the first mark at which the score was at least `bleu`, or None."""
    return next((mark for mark in sorted(scores) if scores[mark] >= bleu), None)
