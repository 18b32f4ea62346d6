"""Candidates of minimum risk training: written, read, and found by the text of a pair."""

import numpy as np
import pytest

from tests.support.candidates import ROWS, Words, encode, pairs_with_candidates, scored_corpus, write_candidates
from train.config import FilesData, RowLengths
from train.data.candidates import Scored, candidates_file, line_of, read_candidates, with_candidates
from train.data.corpus import CorpusError
from train.data.encoding import NO_CANDIDATE


@pytest.fixture(scope="module")
def corpus():
    return scored_corpus()


@pytest.fixture(scope="module")
def pairs():
    return pairs_with_candidates()


def candidates_of(pairs, number):
    """The candidates of one pair as {text: cost}."""
    return {
        " ".join(map(str, side[number][:-1])): pytest.approx(cost, abs=1e-6)
        for side, cost in zip(pairs.candidates.sentences, pairs.candidates.costs[:, number], strict=True)
        if cost != NO_CANDIDATE
    }


# the file


def test_what_is_written_is_read(corpus, tmp_path):
    found = list(read_candidates(write_candidates(tmp_path / "found", *corpus)))
    assert [(source, reference) for source, reference, _ in found] == corpus[0]
    assert [candidates for _, _, candidates in found] == corpus[1]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Ein Hund",
        "[]",
        '{"source": "a", "reference": "b"}',
        '{"source": "a", "reference": 1, "candidates": []}',
        '{"source": "a", "reference": "b", "candidates": [{"text": "b"}]}',
        '{"source": "a", "reference": "b", "candidates": [{"text": "b", "score": "much"}]}',
        '{"source": "a", "reference": "b", "candidates": [{"text": null, "score": 1}]}',
        '{"source": "a", "reference": "b", "candidates": [{"text": "b", "score": 100.1}]}',
        '{"source": "a", "reference": "b", "candidates": [{"text": "b", "score": -1}]}',
        '{"source": "a", "reference": "b", "candidates": [{"text": "b", "score": NaN}]}',
    ],
)
def test_a_line_that_is_none_is_named(tmp_path, line):
    path = tmp_path / "found"
    path.write_text(line_of("a", "b", [Scored("b", 1.0)]) + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="found, line 2 has no source, reference and candidates.*--every-candidate"):
        list(read_candidates(path))


def test_a_file_that_is_not_there_is_one_sentence_and_without_a_key_there_is_none(tmp_path):
    data = FilesData(source="files", train=["a.tsv"], validation=["a.tsv"])
    assert candidates_file(data) is None
    with pytest.raises(CorpusError, match="data.candidates names .*none.jsonl, but there is no such file"):
        candidates_file(data.model_copy(update={"candidates": str(tmp_path / "none.jsonl")}))


# pairs and their candidates


def test_candidates_are_found_by_the_text_of_a_pair_in_any_order(corpus, pairs, tmp_path):
    texts, found = corpus
    backwards = write_candidates(tmp_path / "found", texts[::-1], found[::-1])
    for encoded in (pairs, with_candidates(encode(texts), backwards, Words(), ROWS)):
        for number, scored in enumerate(found):
            assert candidates_of(encoded, number) == {text: 1 - score / 100 for text, score in scored}
        np.testing.assert_array_equal(encoded.source.ids, pairs.source.ids)
        np.testing.assert_array_equal(encoded.target.ids, pairs.target.ids)


def test_a_pair_without_candidates_in_the_file_is_counted(corpus, tmp_path):
    path = write_candidates(tmp_path / "found", corpus[0][3:], corpus[1][3:])
    with pytest.raises(CorpusError, match="found has candidates for 37 pairs, and not for 3 of the 40 training pairs"):
        with_candidates(encode(corpus[0]), path, Words(), ROWS)


def test_of_equal_candidates_the_first_counts_and_one_that_is_too_long_is_left_out(tmp_path):
    scored = [("5 6", 50.0), ("7", 25.0), ("5 6", 10.0), ("5 6 7 8", 80.0), ("8 9 8", 5.0)]
    path = write_candidates(tmp_path / "found", [("4", "5")], [[Scored(*one) for one in scored]])
    pairs = with_candidates(encode([("4", "5")], RowLengths(4, 4)), path, Words(), RowLengths(4, 4))
    assert candidates_of(pairs, 0) == {"5 6": 0.5, "7": 0.75, "8 9 8": 0.95}
    assert pairs.longest_targets.tolist() == [4]


def test_of_lines_with_the_same_pair_the_first_counts(tmp_path):
    scored = [[Scored("5", 50.0), Scored("6", 25.0)], [Scored("7", 10.0), Scored("8", 5.0)]]
    path = write_candidates(tmp_path / "found", [("4", "5")] * 2, scored)
    assert candidates_of(with_candidates(encode([("4", "5")]), path, Words(), ROWS), 0) == {"5": 0.5, "6": 0.75}


def test_where_there_is_nothing_to_choose_between_it_is_one_sentence(tmp_path):
    path = write_candidates(tmp_path / "found", [("4", "5")], [[Scored("5", 100.0), Scored("5", 100.0)]])
    with pytest.raises(CorpusError, match="found has no pair with two candidates to choose between: raise --beam-size"):
        with_candidates(encode([("4", "5")]), path, Words(), ROWS)


def test_other_candidates_are_another_text(corpus, pairs, tmp_path):
    """`keys` are what a run folder records of its training text, and what workers compare."""
    texts, found = corpus
    changed = [[Scored(found[0][0].text, 1.23), *found[0][1:]], *found[1:]]
    other = with_candidates(encode(texts), write_candidates(tmp_path / "found", texts, changed), Words(), ROWS)
    assert (other.keys != pairs.keys).tolist() == [True] + [False] * 39
    assert not set(pairs.keys.tolist()) & set(encode(texts).keys.tolist())
