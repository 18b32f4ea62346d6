"""The benchmark of inspection: it times what it names, and counts shares of the updates."""

import time

import pytest

from benchmarks.inspection_cost import TIMED, stopwatch, table, timed, update_seconds


class Slow:
    """Stands for something that is timed."""

    def wait(self, seconds, fail=False):
        time.sleep(seconds)
        if fail:
            raise ValueError
        return seconds


def test_every_call_within_is_timed_and_none_after_it():
    place = f"{__name__}.Slow.wait"
    with timed({"waiting": place}) as seconds:
        assert Slow().wait(0.01) == 0.01
        with pytest.raises(ValueError):
            Slow().wait(0.0, fail=True)
    Slow().wait(0.0)
    assert len(seconds["waiting"]) == 2 and seconds["waiting"][0] >= 0.01


def test_each_place_that_is_timed_exists():
    for place in TIMED.values():
        assert callable(stopwatch(place, []))


def test_the_first_update_is_left_out_and_made_up_for():
    records = [{"step": 1, "train/seconds_in_step": 90.0}, {"step": 2, "validation/loss": 1.0}]
    records += [{"step": step, "train/seconds_in_step": 1.0} for step in (2, 3, 4)]
    assert update_seconds(iter(records)) == [1.0, 1.0, 1.0]
    text = table({"one": [0.01, 0.03], "other": []}, update_seconds(iter(records)))
    assert "| one | 2 | 0.04 | 1.00% |" in text and "| other | 0 | 0.00 | 0.00% |" in text
    assert "4 updates" in text and "| **all** | | 0.04 | **1.00%** |" in text
