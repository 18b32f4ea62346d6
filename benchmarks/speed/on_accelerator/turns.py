"""Contestants of an accelerator, each in a process of its own, which get ready two at a time and answer in turns."""

import contextlib
import functools
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError
from benchmarks.speed.processes import ContestantProcess

SIDE_BY_SIDE = 2  # contestants that get ready at the same time


class Answer(NamedTuple):
    """What a contestant answered to a question.

    question: None for the first answer, which is the number of seconds until it was ready. value: a BenchmarkError if
    the contestant goes no further.
    """

    name: str
    question: Any
    value: Any


def answers_in_turns(
    start: Callable[[str], ContestantProcess], names: Sequence[str], questions: Sequence[Any], deadline: float
) -> Iterator[Answer]:
    """Start the contestants, then ask all of them the method `round` with each question in turn.

    One that fails, or does not answer by the `deadline` of `time.monotonic`, is ended; the others go on.
    """
    running: dict[str, ContestantProcess] = {}

    def answer(name: str, question: Any, ask: Callable[[ContestantProcess], Any]) -> Answer:
        try:
            return Answer(name, question, ask(running[name]))
        except BenchmarkError as error:
            running.pop(name).kill()
            return Answer(name, question, error)

    def wait(process: ContestantProcess, started: float) -> float:
        process.wait_until_ready(seconds_until(deadline))
        return time.monotonic() - started

    with contextlib.ExitStack() as stack:
        for first in range(0, len(names), SIDE_BY_SIDE):
            started, together = time.monotonic(), names[first : first + SIDE_BY_SIDE]
            for name in together:
                running[name] = stack.enter_context(start(name))
            for name in together:
                yield answer(name, None, functools.partial(wait, started=started))
        for question in questions:
            for name in list(running):
                ask = operator.methodcaller("ask", "round", question, patience=seconds_until(deadline))
                yield answer(name, question, ask)


def seconds_until(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)
