"""Parts that are finished stay finished, and nobody's folder is overwritten."""

import pathlib

import pytest

from cluster.errors import ClusterError
from cluster.output import Output
from cluster.storage import Storage
from tests.support.local_hadoop import local_context

PLAN = {"input": [["file:/in", 9, 1]], "parts": 3, "work": "Translate()"}


@pytest.fixture
def output(tmp_path):
    output = Output(Storage(local_context()), f"{tmp_path}/out/")
    output.begin(PLAN)
    return output


def attempt(output, **parts):
    """Write parts, as `part_0="text"`, as an attempt of Spark does that ends before the others."""
    folder = pathlib.Path(output.next_attempt(output.finished_parts()))
    folder.mkdir()
    for name, text in parts.items():
        (folder / name.replace("_", "-0000")).write_text(text)
    (folder / "_temporary").mkdir()  # of the parts that were not finished


def texts(output):
    return {number: pathlib.Path(path).read_text() for number, path in output.finished_parts().items()}


def test_of_each_part_the_earliest_attempt_counts(output):
    assert output.finished_parts() == {}
    attempt(output, part_2="two\n")
    attempt(output, part_0="zero\n", part_2="")
    attempt(output, part_0="", part_1="one\n", part_2="")
    assert texts(output) == {0: "zero\n", 1: "one\n", 2: "two\n"}
    output.publish()
    names = sorted(path.name for path in pathlib.Path(output.folder).iterdir())
    assert names == ["_SUCCESS", "part-00000", "part-00001", "part-00002"]
    assert texts(output) == {0: "zero\n", 1: "one\n", 2: "two\n"}


def test_a_part_that_is_removed_is_missing_again_though_a_later_attempt_left_it_out(output):
    attempt(output, part_0="zero\n", part_1="damag")
    attempt(output, part_0="", part_1="", part_2="")
    pathlib.Path(output.finished_parts()[1]).unlink()
    assert texts(output) == {0: "zero\n", 2: ""}  # a part may be empty
    attempt(output, part_0="", part_1="one\n", part_2="")
    assert texts(output) == {0: "zero\n", 1: "one\n", 2: ""}


def test_a_publication_that_was_interrupted_is_ended_by_the_next_one(output):
    attempt(output, part_0="zero\n", part_1="one\n")
    pathlib.Path(output.finished_parts()[0]).rename(f"{output.folder}/part-00000")
    output.begin(PLAN)
    attempt(output, part_0="", part_1="")
    output.publish()
    assert texts(output) == {0: "zero\n", 1: "one\n"}


def test_the_same_command_goes_on_and_another_is_refused(output):
    output.check(PLAN)
    output.begin(PLAN | {"parts": 4})  # is not written over the plan that is there
    assert output.begun() == PLAN
    with pytest.raises(ClusterError, match="another command began: it differs in parts, work"):
        output.check(PLAN | {"parts": 4, "work": "Score()"})


def test_a_folder_with_something_in_it_is_not_touched(tmp_path):
    (tmp_path / "file").touch()
    for folder, reason in ((tmp_path, "exists already"), (tmp_path / "file", "is a file")):
        with pytest.raises(ClusterError, match=reason):
            Output(Storage(local_context()), str(folder)).check(PLAN)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_empty_folder_is_a_new_one(tmp_path):
    Output(Storage(local_context()), str(tmp_path)).check(PLAN)
    assert list(tmp_path.iterdir()) == []


def test_a_finished_output_is_not_done_again(output):
    attempt(output, part_0="zero\n")
    output.publish()
    with pytest.raises(ClusterError, match="exists already"):
        output.check(PLAN)


def test_of_two_attempts_that_wrote_a_part_the_second_counts_before_the_tenth(output):
    unfinished = pathlib.Path(output.folder) / "_unfinished"
    for number in ("10", "2", "3"):
        (unfinished / number).mkdir()
        (unfinished / number / "part-00000").write_text(number)
    assert texts(output) == {0: "2"}
    assert output.next_attempt([]).endswith("/11")
    (unfinished / "10" / "part-00000").unlink()
    (unfinished / "10").rmdir()
    assert output.next_attempt([]).endswith("/4")  # and not a number that is there


def test_a_part_that_is_in_its_place_is_not_renamed(tmp_path):
    context = local_context()
    output = Output(Storage(context), str(tmp_path))
    output.begin(PLAN)
    (tmp_path / "part-00000").write_text("zero")
    (tmp_path / "_unfinished" / "1").mkdir()
    (tmp_path / "_unfinished" / "1" / "part-00001").write_text("one")
    context.settings["renamed"].clear()
    output.publish()
    assert context.settings["renamed"] == [("part-00001", "part-00001"), ("_SUCCESS.part", "_SUCCESS")]


def test_the_root_of_a_file_system_is_a_folder():
    assert [Output(None, folder).folder for folder in ("/", "hdfs:///out/", "out")] == ["/", "hdfs:///out", "out"]
