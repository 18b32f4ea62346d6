"""As many lines out as in, in their order, whatever the batches are and whichever rows are refused."""

import sys
import threading
import types

import pytest

from cluster.engines import Refused
from cluster.formats import LOST, JsonLines, TextLines
from cluster.part import BATCHES_AT_ONCE, Job, computed, cores_of_task, output_lines
from cluster.works import Translate


def job(batch_size=4, format=TextLines()):  # noqa: B008 (it is immutable)
    return Job(Translate(), format, batch_size, "")


def shouted(rows):
    return [{"translation": text.upper()} for (text,) in rows]


class Batches:
    """A model that keeps the batches it gets, and refuses those that have a word, or more than `most` rows."""

    def __init__(self, word="", most=1000):
        self.word, self.most, self.rows, self.lock = word, most, [], threading.Lock()

    def __call__(self, rows):
        with self.lock:
            self.rows.append([text for (text,) in rows])
        if len(rows) > self.most or any(self.word and self.word in text for (text,) in rows):
            raise Refused(f"It has {self.word}.")
        return shouted(rows)


LINES = ["a" * (index * 7 % 23) + str(index) for index in range(4 * BATCHES_AT_ONCE * 2 + 3)]


@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (4, 1), (4, 3), (1000, 2)])
def test_lines_keep_their_order_in_batches_of_any_size(batch_size, threads):
    batches = Batches()
    assert list(output_lines(job(batch_size), batches, LINES, threads)) == [line.upper() for line in LINES]
    assert sorted(text for rows in batches.rows for text in rows) == sorted(LINES)  # nothing twice
    assert max(map(len, batches.rows)) <= batch_size


def test_a_batch_has_lines_of_similar_length():
    batches = Batches()
    list(output_lines(job(), batches, LINES[: 4 * BATCHES_AT_ONCE]))
    lengths = [len(text) for rows in batches.rows for text in sorted(rows, key=len, reverse=True)]
    assert lengths == sorted(lengths, reverse=True)


def test_the_lines_that_the_model_refuses_have_an_error_and_the_others_of_their_batch_do_not():
    expected = [LOST if "9" in line else line.upper() for line in LINES]
    assert list(output_lines(job(64), Batches("9"), LINES)) == expected


def test_the_one_line_that_is_refused_is_found_by_halving():
    batches = Batches("x")
    lines = ["a"] * 100 + ["x"] + ["a"] * 27
    assert list(output_lines(job(128), batches, lines)) == [LOST if line == "x" else "A" for line in lines]
    assert len(batches.rows) == 1 + 2 * 7  # 128 is 2 to the power of 7


def test_a_batch_that_is_too_large_for_the_memory_is_halved():
    batches = Batches(most=3)
    assert list(output_lines(job(8), batches, LINES)) == [line.upper() for line in LINES]
    assert max(map(len, batches.rows)) == 8


def test_a_line_that_cannot_be_read_never_reaches_the_model():
    lines = ['{"text": "one"}', "{", '{"text": "\\ud800"}', '{"text": "two"}']
    batches = Batches()
    written = list(output_lines(job(format=JsonLines(("text",))), batches, lines))
    assert batches.rows == [["one", "two"]]
    assert [JsonLines(()).is_refused(line) for line in written] == [False, True, True, False]


def test_lines_are_read_a_few_batches_ahead_of_what_is_written():
    taken = []

    def source():
        for line in LINES:
            taken.append(line)
            yield line

    next(output_lines(job(2), shouted, source()))
    assert len(taken) == 2 * BATCHES_AT_ONCE


@pytest.mark.parametrize(("task", "cores"), [(None, 1), (types.SimpleNamespace(cpus=lambda: 3), 3)])
def test_a_task_computes_on_the_cores_that_spark_gives_it(monkeypatch, task, cores):
    spark = types.SimpleNamespace(TaskContext=types.SimpleNamespace(get=lambda: task))
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    assert cores_of_task() == cores


def test_the_reason_of_a_line_that_is_refused_is_that_of_the_model():
    first, second = computed(Batches("x"), [("a",), ("x",)])
    assert first == {"translation": "A"} and str(second) == "It has x."


@pytest.mark.parametrize(("rows", "threads", "sizes"), [(5, 2, [2, 3]), (4, 2, [2, 2]), (1, 2, [1]), (9, 4, [3, 3, 3])])
def test_few_rows_are_divided_among_the_threads(rows, threads, sizes):
    batches = Batches()
    list(output_lines(job(100), batches, ["a"] * rows, threads))
    assert sorted(map(len, batches.rows)) == sizes
