"""Work that is taken up again: only what was done, whole, and of the same work."""

import logging

import pytest

from train.evaluation.unfinished import Unfinished

OF = {"text": "abc", "beam_size": 8}
RESULTS = [["a", "ä"], ["b\n", '"'], ["", "\u2028"]]


def kept(path, of=OF):
    work = Unfinished(path, of)
    work.close()
    return work.results


@pytest.fixture
def output(tmp_path):
    work = Unfinished(tmp_path / "output", OF)
    work.add(RESULTS[:1])
    work.add(RESULTS[1:])
    work.close()
    return tmp_path / "output"


def test_results_come_back_and_more_can_follow(output, caplog):
    with caplog.at_level(logging.INFO, "train"):
        work = Unfinished(output, OF)
    assert work.results == RESULTS and "3 results already" in caplog.text
    work.add([["c", "d"]])
    work.close()
    assert kept(output) == [*RESULTS, ["c", "d"]]


def test_work_of_another_kind_begins_anew(output, caplog):
    assert kept(output, OF | {"beam_size": 4}) == [] and "another text, model or search" in caplog.text
    assert kept(output) == []


@pytest.mark.parametrize("missing", range(1, 12))
def test_a_line_that_was_not_written_to_its_end_is_done_anew(output, missing):
    path = output.with_name("output.unfinished")
    path.write_bytes(path.read_bytes()[:-missing])
    assert kept(output) == RESULTS[:2]


@pytest.mark.parametrize("content", [b"", b"no JSON\n", b"\xff\n"])
def test_a_damaged_file_begins_anew(output, content):
    output.with_name("output.unfinished").write_bytes(content)
    assert kept(output) == []


def test_nothing_is_left_when_the_output_is_written(output):
    Unfinished(output, OF).finish()
    assert list(output.parent.iterdir()) == []
