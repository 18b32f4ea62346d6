"""How far a run is, over all its processes, how fast this process trains, and what is left."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping

from keras_transformer.ground.durations import duration
from keras_transformer.ground.machine import processor_cores

from ..data.batches import batch_number


@dataclasses.dataclass
class Progress:
    """How far the run is, over all its processes; every checkpoint holds it."""

    step: int = 0  # updates done
    seconds: float = 0.0  # spent in `fit`: compilation, validation and checkpoints included
    core_seconds: float = 0.0  # the same, times the processor cores that the process might use then
    target_tokens: float = 0.0  # trained on
    has_learned: bool = False  # the loss of some step was below that of guessing
    skipped: list[int] = dataclasses.field(default_factory=list)  # batches left out of the stream, counted from 0
    best_metric: str = ""  # the measure of validation that the next four go by; empty before the first validation
    best_basis: str = ""  # the text and the search that it is of, as a digest
    best_score: float = 0.0  # of the best validation: the higher, the better
    best_step: int = 0  # after which it was
    validations_since_best: int = 0
    kept_metric: str = ""  # the measure by which the best checkpoint was kept; empty if there is none
    kept_basis: str = ""  # the text and the search that it is of, as a digest
    kept_score: float = 0.0  # of its validation
    kept_step: int = 0  # after which it was
    is_interim: bool = False  # of a checkpoint of a run that was stopped: the next one replaces it

    @property
    def batch(self) -> int:
        """The number of the batch that the next update trains on, counted from 0."""
        return batch_number(self.step, self.skipped)

    def count(self, tokens: float, seconds: float) -> None:
        """Count one update."""
        self.step += 1
        self.target_tokens += tokens
        self.count_time(seconds)

    def count_time(self, seconds: float) -> None:
        """Count time that has been spent."""
        self.seconds += seconds
        self.core_seconds += seconds * processor_cores()


class Stopwatch:
    """Times updates, and what comes between them: validation and checkpoints."""

    def __init__(self):
        self.counted_until = time.perf_counter()
        self.timed = []  # (tokens, seconds) of each update since the last report
        self.is_first = True
        self.last = {}  # from "validation" and "checkpoint" to the seconds that the last one took

    def begin_update(self) -> None:
        self.update_began = time.perf_counter()

    def end_update(self, tokens: float) -> tuple[float, float]:
        """Return the seconds of this update, and those that `uncounted` returns."""
        seconds = time.perf_counter() - self.update_began
        if not self.is_first:  # the first one compiles
            self.timed.append((tokens, seconds))
        self.is_first = False
        return seconds, self.uncounted()

    def uncounted(self) -> float:
        """Return the seconds since this was called last, by the end of an update or otherwise."""
        now = time.perf_counter()
        seconds, self.counted_until = now - self.counted_until, now
        return seconds

    @contextlib.contextmanager
    def timing(self, what: str) -> Iterator[None]:
        """Keep in `last` how long the block takes, unless it raises."""
        began = time.perf_counter()
        yield
        self.last[what] = time.perf_counter() - began

    def report(self) -> tuple[float, float] | None:
        """Return (tokens per second, seconds per update) of the updates since the last report; None without any."""
        if not self.timed:
            return None
        tokens, seconds = (sum(column) for column in zip(*self.timed, strict=True))
        count = len(self.timed)
        self.timed.clear()
        return tokens / seconds, seconds / count


def times_left(step: int, steps: int, every: int) -> int:
    """How often what comes every so many steps, and after the last one, is still to come once update `step` is done.

    It follows the update, so that what is due after this very update counts: steps 7 of 7, every 3, is once.
    """
    return steps // every - (step - 1) // every + (steps % every > 0)


def time_left(seconds_of_updates: float, counts: Mapping[str, int], seconds: Mapping[str, float]) -> str:
    """What is left of a training: time, and how many validations come on top if this process has not timed one yet.

    counts: how many "validation" and "checkpoint" are to come; seconds: how long the last of each took.
    """
    known = seconds_of_updates + sum(count * seconds.get(what, 0.0) for what, count in counts.items())
    validations = counts["validation"]
    if "validation" in seconds or not validations:
        return duration(known)
    return f"{duration(known)} and {validations:,} validation{'s' * (validations > 1)}"
