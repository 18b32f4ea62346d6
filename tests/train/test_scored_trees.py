"""The trees that are scored: of which split they are, and what is told of other ones."""

import pytest

from train.data.corpus import CorpusError, Split
from train.data.trees import read_trees
from train.scoring.scored_trees import ScoredTrees


def split_of(name, word):
    split = Split(f"data.{name}", lambda: iter([tree.pair for tree in split.trees]))
    split.trees = list(read_trees(f"(S (NP (NN {word})) (VP (VBZ flies)))", name))
    return split


def test_whether_a_search_was_constrained_is_told():
    assert [ScoredTrees.settings(is_constrained) for is_constrained in (True, False)] == [
        {"constrained": True},
        {"constrained": False},
    ]


def test_another_number_of_trees_is_told_with_the_file(tmp_path):
    split = split_of("test", "time")
    scored = ScoredTrees(split.name, list(split), split.trees, ())
    (tmp_path / "theirs").write_text("(S (NN a))" * 1_234, encoding="utf-8")
    with pytest.raises(CorpusError, match=f"--against {tmp_path}/theirs has 1,234 trees, but there are 1 sentences"):
        scored.read(tmp_path / "theirs")
