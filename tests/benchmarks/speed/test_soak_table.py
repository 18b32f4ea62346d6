"""What a soak takes for a fault, and what its page says."""

import os

import pytest

from benchmarks.speed.soak import add_version
from benchmarks.speed.soak_questions import contents, verdict
from benchmarks.speed.soak_table import as_markdown, faults, summary

GOOD = {
    "minutes": 1.0, "clients": 4, "reload_seconds": 20.0, "seconds": 60.0, "sentences": 2, "command": "soak",
    "behaviours": ["ask", "ask", "die", "ask_slowly"],
    "memory": [(0.0, 100 << 20), (30.0, 300 << 20), (60.0, 200 << 20)],
    "versions": [{"number": 2, "is_bad": False, "at": 20.0}, {"number": 3, "is_bad": True, "at": 40.0}],
    "newest": 2, "served": [2], "code": 0, "died": [7], "ties": [], "wrong": [], "refused": [], "unannounced": [],
    "errors": [], "answers": [("plain", 1.0, 0.010), ("plain", 2.0, 0.030), ("gRPC", 58.0, 0.500)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"ties": ["plain: ..."], "refused": ["no room"]}, []),  # announced, or as good
        ({"wrong": ["plain: a", "plain: b"]}, ["2 wrong, the first: plain: a"]),
        ({"unannounced": ["plain: 500 None"]}, ["1 unannounced, the first: plain: 500 None"]),
        ({"errors": ["slow: OSError"]}, ["1 errors, the first: slow: OSError"]),
        ({"served": [1]}, ["at the end [1] was served, not 2"]),
        ({"served": [2, 3]}, ["at the end [2, 3] was served, not 2"]),
        ({"code": -11}, ["the server ended with -11"]),
    ],
)
def test_a_fault_is_a_wrong_answer_an_error_another_version_or_another_end(changes, expected):
    assert faults(GOOD | changes) == expected
    page = as_markdown(summary(GOOD | changes))
    assert f"Faults: {'; '.join(expected) or 'none'}." in page


def test_the_page_tells_latencies_of_each_kind_and_memory_from_a_third_on():
    numbers = summary(GOOD)
    assert {kind: answers["count"] for kind, answers in numbers["answers"].items()} == {"gRPC": 1, "plain": 2}
    page = as_markdown(numbers).splitlines()
    assert "| memory at the start (MiB) | 100 |" in page
    assert "| memory from a third on, least to most (MiB) | 200 to 300 |" in page
    assert "| new versions, and damaged ones | 1, 1 |" in page
    assert "| connections of clients that died | 7 |" in page
    assert [part["at"] for part in numbers["over_time"]] == [2.5, 57.5]


CONTENT = b"a graph of some bytes"


def test_a_version_has_the_files_of_the_first_and_a_damaged_one_half_of_the_graph(tmp_path):
    """A damaged version leaves the files of the others as they are, although they are links to the same ones."""
    version = tmp_path / "export" / "1"
    (version / "variables").mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(CONTENT)
    (version / "variables" / "index").write_bytes(b"index")
    folder = tmp_path / "soak"
    folder.mkdir()
    add_version(version, folder, 1)
    add_version(version, folder, 3, is_bad=True)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "3"]  # nothing that is half written
    assert os.path.samefile(folder / "1" / "saved_model.pb", version / "saved_model.pb")
    assert os.path.samefile(folder / "3" / "variables" / "index", version / "variables" / "index")
    assert (folder / "3" / "saved_model.pb").read_bytes() == CONTENT[: len(CONTENT) // 2]
    assert (version / "saved_model.pb").read_bytes() == CONTENT


KNOWN = {"translation": ["ein Hund"], "score": [-1.0]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (KNOWN, "right"),
        (KNOWN | {"score": [-1.00005]}, "right"),  # a batch of another size rounds otherwise
        (KNOWN | {"translation": ["der Hund"]}, "tie"),
        (KNOWN | {"score": [-1.001]}, "wrong"),
        ({"translation": ["der Hund"], "score": [-1.1]}, "wrong"),
        ({"score": [-1.0]}, "wrong"),
        (KNOWN | {"is_cut": [False]}, "wrong"),
        (KNOWN | {"score": [-1.0, -1.0]}, "wrong"),
    ],
)
def test_an_answer_is_right_if_its_texts_are_equal_and_its_scores_nearly_so(answer, expected):
    assert verdict(answer, KNOWN) == expected


def test_scores_of_several_translations_are_compared_one_by_one():
    known = {"translations": [["a", "b"]], "scores": [[-1.0, -2.0]], "counts": [2]}
    assert verdict(known, known) == "right"
    assert verdict(known | {"scores": [[-2.0, -1.0]]}, known) == "wrong"
    assert verdict(known | {"counts": [1]}, known) == "tie"


def test_every_sentence_is_asked_and_every_kind_of_question():
    sentences = [f"sentence {number}" for number in range(50)]
    asked = contents(sentences)
    assert [content["inputs"]["text"] for kind, _, content in asked if kind == "plain"] == [
        [each] for each in sentences
    ]
    assert {kind for kind, *_ in asked} == {"plain", "options", "explain", "paragraphs"}
    assert {group for kind, group, _ in asked if kind == "options"} >= {"['alignments']", "['target_prefix']"}
