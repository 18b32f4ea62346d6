"""The batcher: which waiting requests are computed next, and how much may wait."""

import asyncio
import gc
import threading
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from export.server.batcher import Batcher, Task, Work, concatenated, repeated, run_together, split
from export.server.errors import Code, RequestError
from export.server.options import ServerOptions
from export.server.signature import Signature, Tensor
from keras_transformer.text.glossary import Glossary

TEXT = {"text": Tensor("text:0", tf.string, (None,))}
SIGNATURE = Signature("echo", TEXT, TEXT, {})


class Held:
    """A version whose batches wait for `allowed`; `ran` has the texts of each."""

    def __init__(self):
        self.ran, self.allowed = [], threading.Event()

    def run(self, signature, outputs, inputs):
        self.ran.append(inputs["text"].tolist())
        self.allowed.wait(10)
        return inputs


def texts(*lines):
    return {"text": np.array(lines, object)}


def computed(requests, **limits):
    """Send requests to one worker in this order, while it computes the first. Returns its batches, and the answers."""
    version = Held()

    async def main():
        batcher = Batcher(**{"workers": 1, "batch_rows": 2, "queue_rows": 100, "answer_bytes": 10_000} | limits)
        tasks = []
        for request in requests:
            tasks.append(asyncio.ensure_future(batcher.compute(version, SIGNATURE, ("text",), request, 10.0)))
            while not version.ran:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        version.allowed.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        batcher.close()
        return answers

    answers = asyncio.run(main())
    return version.ran, answers


def test_the_parts_of_a_long_request_let_others_come_between():
    """A request that comes while the first part is computed waits for one more part."""
    long = texts(*(f"long {number}".encode() for number in range(8)))
    ran, answers = computed([long, texts(b"a", b"b"), texts(b"c", b"d")])
    assert [batch[0] for batch in ran] == [b"long 0", b"long 2", b"a", b"c", b"long 4", b"long 6"]
    assert answers[0]["text"].tolist() == long["text"].tolist()  # in its own order
    assert [answer["text"].tolist() for answer in answers[1:]] == [[b"a", b"b"], [b"c", b"d"]]


def test_waiting_requests_are_joined_up_to_a_full_batch():
    ran, _ = computed([texts(b"first"), texts(b"a"), texts(b"b"), texts(b"c")])
    assert ran == [[b"first"], [b"a", b"b"], [b"c"]]


def test_two_long_requests_take_turns():
    ran, _ = computed([texts(*[b"a"] * 6), texts(*[b"b"] * 6)])
    assert [batch[0] for batch in ran] == [b"a", b"a", b"b", b"a", b"b", b"b"]


def test_a_request_is_refused_if_as_many_rows_wait_as_may_wait_whatever_its_own_size():
    """The first request is computed; the second waits, and the third, which finds 2 rows; the fourth finds 4."""
    line = texts(b"x" * 100, b"y" * 100)
    _, answers = computed([line, line, line, line], queue_rows=3)
    assert [type(answer) for answer in answers] == [dict, dict, dict, RequestError]
    assert answers[3].code is Code.RESOURCE_EXHAUSTED and "4 rows are waiting" in answers[3].message


def test_two_long_requests_at_once_are_answered_with_the_limits_of_a_server():
    options, long = ServerOptions(), texts(*(b"%d" % number for number in range(900)))
    limits = {name: getattr(options, name) for name in ("workers", "batch_rows", "queue_rows", "answer_bytes")}
    _, answers = computed([long, long], **limits)
    assert [answer["text"].tolist() for answer in answers] == [long["text"].tolist()] * 2


class Busy(Held):
    """A version that computes the text `busy` until it is `allowed`, and others at once."""

    def run(self, signature, outputs, inputs):
        if b"busy" in inputs["text"]:
            return super().run(signature, outputs, inputs)
        self.ran.append(inputs["text"].tolist())
        return inputs


def joined(*arrivals, ends_first=False, company=1000.0, **limits):
    """Send texts one by one while a worker of several is busy. Returns the batches that the others then computed.

    ends_first: let that batch end before the answers are awaited.
    """
    version = Busy()

    async def main():
        batcher = Batcher(
            **{"workers": 2, "batch_rows": 3, "queue_rows": 100, "answer_bytes": 10_000} | limits, company=company
        )
        tasks = []
        for text in (b"busy", *arrivals):
            tasks.append(asyncio.ensure_future(batcher.compute(version, SIGNATURE, ("text",), texts(text), 10.0)))
            await asyncio.sleep(0.01)
        if ends_first:
            version.allowed.set()
        answers = await asyncio.wait_for(asyncio.gather(*tasks[1:]), 10)
        version.allowed.set()
        await tasks[0]
        batcher.close()
        assert [answer["text"].tolist() for answer in answers] == [[text] for text in arrivals]

    asyncio.run(main())
    return version.ran[1:]


def test_an_idle_server_waits_for_nobody():
    """Not even the second time: each request finds it idle."""
    version = Busy()

    async def main():
        batcher = Batcher(workers=2, batch_rows=3, queue_rows=100, answer_bytes=10_000, company=1000.0)
        for text in (b"a", b"b"):
            await asyncio.wait_for(batcher.compute(version, SIGNATURE, ("text",), texts(text), 10.0), 5)
        batcher.close()

    asyncio.run(main())
    assert version.ran == [[b"a"], [b"b"]]


def test_an_idle_server_joins_what_has_arrived_together():
    version = Busy()

    async def main():
        batcher = Batcher(workers=2, batch_rows=3, queue_rows=100, answer_bytes=10_000, company=1000.0)
        requests = (batcher.compute(version, SIGNATURE, ("text",), texts(text), 10.0) for text in (b"a", b"b"))
        await asyncio.wait_for(asyncio.gather(*requests), 5)
        batcher.close()

    asyncio.run(main())
    assert version.ran == [[b"a", b"b"]]


def test_while_a_batch_runs_a_full_batch_is_joined_and_begins_at_once():
    assert joined(b"a", b"b", b"c") == [[b"a", b"b", b"c"]]


def test_what_waits_for_company_begins_when_the_other_batch_ends():
    assert joined(b"a", b"b", ends_first=True) == [[b"a", b"b"]]


def test_waiting_for_company_has_an_end_while_the_other_batch_runs():
    assert joined(b"a", company=0.02) == [[b"a"]]


def test_texts_of_different_lengths_wait_together_and_are_computed_apart():
    long = b"x" * 300
    batches = joined(long, b"a", b"b", company=0.1, workers=3, batch_rows=8)
    assert sorted(batches, key=len) == [[long], [b"a", b"b"]]


def test_deadlines_hold_while_a_request_waits_for_company():
    version = Busy()

    async def main():
        batcher = Batcher(workers=2, batch_rows=3, queue_rows=100, answer_bytes=10_000, company=1000.0)
        first = asyncio.ensure_future(batcher.compute(version, SIGNATURE, ("text",), texts(b"busy"), 10.0))
        while not version.ran:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestError) as error:
            await batcher.compute(version, SIGNATURE, ("text",), texts(b"a"), 0.05)
        assert batcher.waiting_rows == 0
        version.allowed.set()
        await first
        batcher.close()
        return error.value

    assert asyncio.run(main()).code is Code.DEADLINE_EXCEEDED
    assert version.ran == [[b"busy"]]


def test_the_parts_of_a_request_with_a_big_answer_are_not_all_computed():
    """Each part has 216 bytes: the third is too much, and ten more are never computed."""
    ran, answers = computed([texts(*[b"x" * 100] * 26)], answer_bytes=2 * 2 * (8 + 100))
    assert answers[0].code is Code.INVALID_ARGUMENT and "432 bytes" in answers[0].message
    assert 3 <= len(ran) <= 5


@pytest.mark.parametrize(("short", "long"), [(1, 256), (64, 256), (65, 260), (200, 800), (2000, 8000)])
def test_in_a_batch_no_text_of_more_than_256_bytes_is_more_than_four_times_as_long_as_another(short, long):
    for lengths, batches in [
        ((short, long, long + 1), [[short, long], [long + 1]]),
        ((long + 1, short, long), [[long + 1, long], [short]]),
        ((long // 2, long + 1, short), [[long // 2, long + 1], [short]]),
    ]:
        ran, _ = computed([texts(b"first"), *(texts(b"x" * length) for length in lengths)], batch_rows=3)
        assert [list(map(len, batch)) for batch in ran[1:]] == batches


class Broken(Held):
    """A version with a fault that nobody foresaw, for the text `fault`."""

    def run(self, signature, outputs, inputs):
        if b"fault" in inputs["text"]:
            raise ZeroDivisionError("a fault of the server")
        return super().run(signature, outputs, inputs)


def test_after_a_fault_of_the_server_its_worker_takes_the_next_request():
    version = Broken()
    version.allowed.set()

    async def main():
        batcher = Batcher(workers=1, batch_rows=1, queue_rows=100, answer_bytes=10_000)
        requests = [batcher.compute(version, SIGNATURE, ("text",), texts(text), 5.0) for text in (b"fault", b"a")]
        answers = await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 5)
        batcher.close()
        return answers

    fault, answer = asyncio.run(main())
    assert fault.code is Code.INTERNAL and answer["text"].tolist() == [b"a"]


def test_what_has_been_given_up_is_not_computed():
    version = Held()

    async def main():
        batcher = Batcher(workers=1, batch_rows=1, queue_rows=100, answer_bytes=10_000)
        first = asyncio.ensure_future(batcher.compute(version, SIGNATURE, ("text",), texts(b"a"), 5.0))
        while not version.ran:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestError) as error:
            await batcher.compute(version, SIGNATURE, ("text",), texts(b"b"), 0.05)
        version.allowed.set()
        await first
        await batcher.compute(version, SIGNATURE, ("text",), texts(b"c"), 5.0)
        batcher.close()
        return error.value

    assert asyncio.run(main()).code is Code.DEADLINE_EXCEEDED
    assert version.ran == [[b"a"], [b"c"]]


def test_splitting_undoes_joining_whatever_the_sizes():
    parts = [{"number": np.arange(first, first + rows)} for first, rows in ((0, 1), (10, 3), (20, 0), (30, 2))]
    again = split(concatenated(parts), [1, 3, 0, 2])
    assert [part["number"].tolist() for part in again] == [[0], [10, 11, 12], [], [30, 31]]


def test_one_who_gives_up_while_a_batch_is_computed_takes_nobody_elses_answer():
    version, turns = Held(), threading.Semaphore(0)
    version.allowed = types.SimpleNamespace(wait=lambda seconds: turns.acquire(timeout=seconds))

    async def main():
        batcher = Batcher(workers=1, batch_rows=3, queue_rows=100, answer_bytes=10_000)
        patience = {b"first": 5.0, b"a": 5.0, b"gone": 0.1, b"b": 5.0}
        tasks = []
        for text, seconds in patience.items():
            tasks.append(asyncio.ensure_future(batcher.compute(version, SIGNATURE, ("text",), texts(text), seconds)))
            while not version.ran:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        turns.release()
        with pytest.raises(RequestError):
            await tasks.pop(2)
        turns.release()
        answers = await asyncio.wait_for(asyncio.gather(*tasks), 5)
        batcher.close()
        return [answer["text"].tolist() for answer in answers]

    assert asyncio.run(main()) == [[b"first"], [b"a"], [b"b"]]
    assert version.ran == [[b"first"], [b"a", b"gone", b"b"]]


@pytest.mark.parametrize(("answer_bytes", "is_refused"), [(108, False), (107, True)])
def test_an_answer_may_have_as_many_bytes_as_are_allowed(answer_bytes, is_refused):
    _, [answer] = computed([texts(b"x" * 100)], answer_bytes=answer_bytes)
    assert isinstance(answer, RequestError) is is_refused


class Refusing:
    """A version whose graph refuses a batch with a text that begins with "bad"; `ran` has the texts of each."""

    def __init__(self):
        self.ran = []

    def run(self, signature, outputs, inputs):
        lines = inputs["text"].tolist()
        self.ran.append(lines)
        if bad := [line for line in lines if line.startswith(b"bad")]:
            raise RequestError(Code.INVALID_ARGUMENT, f"{bad[0].decode()} is refused.")
        return inputs


@pytest.mark.parametrize("bad", [0, 1, 2, 3])
def test_only_the_request_that_the_graph_refuses_gets_the_error(bad):
    lines = [b"bad" if number == bad else b"%d" % number for number in range(4)]
    version = Refusing()
    batch = [Task(Work(version, SIGNATURE, ("text",)), texts(line), 1, None, line) for line in lines]
    results = run_together(batch)
    assert [isinstance(result, RequestError) for result in results] == [number == bad for number in range(4)]
    assert [result["text"].tolist() for result in results if isinstance(result, dict)] == [
        [line] for line in lines if line != b"bad"
    ]
    assert version.ran[0] == lines and max(map(len, version.ran[1:])) == 2


def deep(depth):
    return deep(depth + 1)


RAISED = {  # by what a request raises, the code that it gets
    "recursion": (lambda: deep(0), Code.INTERNAL),
    "memory": (lambda: bytearray(1 << 62), Code.RESOURCE_EXHAUSTED),
    "fault": (lambda: {}["the text of a request"], Code.INTERNAL),
    "mistake": (lambda: int("the text of a request"), Code.INTERNAL),
    "input": (lambda: Glossary.of_lines(["no tab"], "glossary"), Code.INVALID_ARGUMENT),
}


@pytest.mark.parametrize("raised", RAISED)
def test_whatever_a_request_raises_the_others_of_its_batch_are_answered(raised, caplog):
    action, code = RAISED[raised]

    class Raising(Held):
        def run(self, signature, outputs, inputs):
            if b"guilty" in inputs["text"].tolist():
                action()
            return inputs

    lines = [b"guilty" if number in (3, 17) else b"%d" % number for number in range(32)]
    batch = [Task(Work(Raising(), SIGNATURE, ("text",)), texts(line), 1, None, line) for line in lines]
    for line, result in zip(lines, run_together(batch), strict=True):
        if line == b"guilty":
            assert isinstance(result, RequestError) and result.code is code
        else:
            assert result["text"].tolist() == [line]
    assert len(caplog.records) == (0 if code is Code.INVALID_ARGUMENT else 2)
    assert "the text of a request" not in caplog.text


def test_after_its_requests_a_batcher_holds_nothing_and_asyncio_reports_no_error_that_was_answered(caplog):
    version, first, second_ran = Refusing(), Refusing.run, threading.Event()

    def run(signature, outputs, inputs):
        if inputs["text"][0] == b"bad one":  # it fails when the other one has failed
            second_ran.wait(5)
            time.sleep(0.02)
        else:
            second_ran.set()
        return first(version, signature, outputs, inputs)

    version.run = run

    async def main():
        batcher = Batcher(workers=2, batch_rows=1, queue_rows=100, answer_bytes=10_000)
        both = batcher.compute(version, SIGNATURE, ("text",), texts(b"bad one", b"bad two"), 5.0)
        with pytest.raises(RequestError, match="bad one is refused"):
            await both
        while batcher._free < 2:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)
        assert not batcher._running and batcher.waiting_rows == 0
        batcher.close()
        assert batcher._pool._shutdown

    asyncio.run(main())
    gc.collect(1)  # what is young; all objects of TensorFlow would take a second
    assert "never retrieved" not in caplog.text


def test_an_input_of_one_row_is_repeated_as_it_is():
    found = repeated({"pair": np.array([[1, 2]]), "text": np.array([b"a", b"b", b"c"], object)}, 3)
    assert found["pair"].tolist() == [[1, 2]] * 3 and found["text"].tolist() == [b"a", b"b", b"c"]
