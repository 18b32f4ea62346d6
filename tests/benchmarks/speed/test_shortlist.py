"""The benchmark of shortlists: its table, and whose time it is."""

import pytest

from benchmarks.speed.shortlist import HEAD, row, translated


def test_a_ratio_is_how_many_times_less_processor_time_a_sentence_takes():
    seconds = {("litert", "off"): 0.0120, ("litert", "on"): 0.0048, ("ctranslate2", "off"): 0.0072}
    seconds |= {("ctranslate2", "on"): 0.0036, ("ctranslate2_int8", "off"): 9.0, ("ctranslate2_int8", "on"): 9.0}
    cells = row("litert", "one a call", seconds).split("|")[1:-1]
    assert [cell.strip() for cell in cells] == ["litert", "one a call", "12.00", "4.80", "2.50", "1.50", "0.75"]
    assert len(cells) == HEAD.splitlines()[0].count("|") - 1


@pytest.mark.parametrize(("batch_size", "calls"), [(1, [["a"], ["b"], ["c"]]), (32, [["a", "b", "c"]])])
def test_a_turn_translates_every_line_once(batch_size, calls):
    made = []
    translated(made.append, ["a", "b", "c"], batch_size)()
    assert made == calls
