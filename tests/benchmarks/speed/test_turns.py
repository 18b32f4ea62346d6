"""Contestants that answer in turns."""

import time

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.speed.on_accelerator.turns import answers_in_turns
from benchmarks.speed.processes import ContestantProcess


class Halving:
    """A contestant that halves the numbers it is asked, and fails at an odd one if it is called strict."""

    def __init__(self, name):
        self.is_strict = name == "strict"
        if name == "absent":
            raise BenchmarkError("it is not installed.")

    def round(self, number):
        if self.is_strict and number % 2:
            raise BenchmarkError(f"{number} is odd.")
        return number / 2


def start(name):
    return ContestantProcess(Halving, name)


@pytest.mark.release
def test_all_answer_a_question_before_the_next_and_one_that_fails_goes_no_further():
    answers = list(answers_in_turns(start, ["easy", "absent", "strict"], [2, 3, 4], time.monotonic() + 100))
    ready = [(name, type(value)) for name, question, value in answers if question is None]
    assert ready == [("easy", float), ("absent", BenchmarkError), ("strict", float)]
    *others, odd, last = [answer for answer in answers if answer.question is not None]
    assert others == [("easy", 2, 1.0), ("strict", 2, 1.0), ("easy", 3, 1.5)] and last == ("easy", 4, 2.0)
    assert odd[:2] == ("strict", 3) and "3 is odd" in str(odd.value)


@pytest.mark.release
def test_nobody_is_waited_for_after_the_deadline():
    (answer,) = answers_in_turns(start, ["easy"], [2], time.monotonic())
    assert answer.question is None and "did not answer within 0 seconds" in str(answer.value)
