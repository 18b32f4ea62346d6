"""Requests are measured by the length of their sentence; a percentile is one of the values, by nearest rank."""

import pytest

from export.certificate.certificate import latencies, percentile


@pytest.mark.parametrize(
    ("times", "percent", "expected"),
    [([3.0, 1.0, 2.0, 4.0], 50, 2.0), (list(range(1, 101)), 95, 95), (list(range(1, 101)), 99, 99), ([7.0], 99, 7.0)],
)
def test_a_percentile_is_the_least_time_that_so_many_do_not_exceed(times, percent, expected):
    assert percentile(times, percent) == expected


class Clock:
    """So many seconds pass with each request; its tokenizer has one token per letter."""

    def __init__(self, monkeypatch, seconds=2.0):
        self.now, self.seconds, self.asked = 0.0, seconds, []
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def translate(self, lines):
        self.now += self.seconds
        self.asked += lines

    def encode_batch(self, lines):
        return [list(line) for line in lines]


@pytest.mark.parametrize(
    ("letters", "of"),
    [(1, "1-8"), (7, "1-8"), (8, "9-16"), (15, "9-16"), (16, "17-32"), (511, "65-512"), (600, "65-512")],
)
def test_the_end_of_the_sentence_is_one_of_its_tokens(monkeypatch, letters, of):
    clock = Clock(monkeypatch)
    assert [row["source_tokens"] for row in latencies(clock.translate, clock, ["x" * letters])] == [of]


def test_latencies_are_of_the_length_of_the_sentence_with_its_end(monkeypatch):
    clock = Clock(monkeypatch)
    found = latencies(clock.translate, clock, ["x" * 7, " ", "x" * 8, "x" * 15, "x" * 600])
    expected = [("1-8", 2), ("9-16", 2), ("65-512", 2)]  # of one sentence each 2 s, until 3 s have passed
    assert [(one["source_tokens"], one["requests"]) for one in found] == expected
    assert all(one["p50"] == one["p99"] == 2_000 for one in found)


def test_half_of_the_requests_take_no_longer_than_p50_and_19_of_20_no_longer_than_p95(monkeypatch):
    clock = Clock(monkeypatch)

    def translate(lines):
        clock.now += 0.001 * (len(clock.asked) + 1)  # 1 to 20 ms
        clock.asked += lines

    monkeypatch.setattr("export.certificate.certificate.MOST_REQUESTS", 20)
    [found] = latencies(translate, clock, ["a"])
    assert {name: found[name] for name in ("p50", "p95", "p99")} == {"p50": 10.0, "p95": 19.0, "p99": 20.0}
