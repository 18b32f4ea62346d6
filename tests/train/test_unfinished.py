"""Work that is taken up again: only what was done, whole, and of the same work."""

import errno
import fcntl
import json
import logging

import pytest

from keras_transformer.ground.errors import ConfigError
from train.scoring.unfinished import Unfinished

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
    assert work.results == RESULTS and "has 3 results" in caplog.text
    work.add([["c", "d"]])
    work.close()
    assert kept(output) == [*RESULTS, ["c", "d"]]


def test_results_are_in_the_file_as_soon_as_they_are_added(tmp_path):
    """A process that is killed loses none of them."""
    work = Unfinished(tmp_path / "output", OF)
    for count in range(len(RESULTS) + 1):
        assert [json.loads(line) for line in work.path.read_bytes().splitlines()] == [OF, *RESULTS[:count]]
        work.add(RESULTS[count : count + 1])
    work.close()


def test_work_of_another_kind_is_refused_and_not_lost(output):
    with pytest.raises(ConfigError) as error:
        Unfinished(output, OF | {"beam_size": 4})
    assert kept(output) == RESULTS  # although the error still holds the object
    assert error.match(r"output\.unfinished has 3 results of another text, model or search")


def test_one_process_at_a_time_has_the_work(output):
    first = Unfinished(output, OF)
    with pytest.raises(ConfigError, match="Another process writes to .*output.unfinished"):
        Unfinished(output, OF)
    first.add([["c", "d"]])
    first.close()
    assert kept(output) == [*RESULTS, ["c", "d"]]


def test_a_file_that_is_removed_before_it_is_locked_is_made_anew(output, monkeypatch):
    """As if another process had finished its work between the opening and the locking."""
    lock = fcntl.flock

    def finish_first(file, how):
        monkeypatch.setattr(fcntl, "flock", lock)
        output.with_name("output.unfinished").unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", finish_first)
    work = Unfinished(output, OF)
    assert work.results == []
    work.add(RESULTS)
    work.close()
    assert kept(output) == RESULTS


def test_without_locks_it_is_one_sentence(output, monkeypatch):
    def refuse(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ConfigError, match="output.unfinished cannot be locked against a second process: No locks"):
        Unfinished(output, OF)


@pytest.mark.parametrize("missing", range(1, 12))
def test_a_line_that_was_not_written_to_its_end_is_done_anew(output, missing):
    path = output.with_name("output.unfinished")
    path.write_bytes(path.read_bytes()[:-missing])
    work = Unfinished(output, OF)
    assert work.results == RESULTS[:2]
    work.add([["c", "d"]])
    work.close()
    assert kept(output) == [*RESULTS[:2], ["c", "d"]]  # and not behind half a line


@pytest.mark.parametrize("content", [b"", b"no JSON\n", b"\xff\n"])
def test_a_damaged_file_begins_anew(output, content):
    output.with_name("output.unfinished").write_bytes(content)
    assert kept(output) == []


def test_what_comes_before_a_damaged_line_stays(output, caplog):
    path = output.with_name("output.unfinished")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\xff\n", *lines[2:]]))
    assert kept(output) == RESULTS[:1] and f"{path} is damaged in line 3: only the lines before it" in caplog.text
    assert path.read_bytes() == b"".join(lines[:2])


def test_nothing_is_left_when_the_output_is_written(output):
    work = Unfinished(output, OF)
    work.finish()
    assert list(output.parent.iterdir()) == [] and work._file.closed
