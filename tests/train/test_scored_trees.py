"""The trees that are scored: of which split they are, and what is told of other ones."""

import types

import pytest

from train.data.corpus import Corpus, CorpusError, Split
from train.data.trees import read_trees
from train.scoring import scored_trees
from train.scoring.scored_trees import ScoredTrees


def split_of(name, word):
    split = Split(f"data.{name}", lambda: iter([tree.pair for tree in split.trees]))
    split.trees = list(read_trees(f"(S (NP (NN {word})) (VP (VBZ flies)))", name))
    return split


@pytest.mark.parametrize("has_test", [True, False])
def test_the_trees_are_those_of_the_test_set_or_else_of_the_validation_set(monkeypatch, has_test):
    train, validation, test = (split_of(name, name) for name in ("train", "validation", "test"))
    corpus = Corpus(train, validation, test if has_test else None, "en", "trees")
    monkeypatch.setattr(scored_trees, "load_corpus", lambda data: corpus)
    split = test if has_test else validation
    for scored in (
        ScoredTrees.of_run("data"),
        ScoredTrees.of_split(split, None, types.SimpleNamespace(corpus=corpus)),
    ):
        assert (scored.name, scored.pairs, scored.trees) == (split.name, list(split), split.trees)
        assert scored.training_trees == train.trees


def test_whether_a_search_was_constrained_is_told():
    assert [ScoredTrees.settings(is_constrained) for is_constrained in (True, False)] == [
        {"constrained": True}, {"constrained": False},
    ]  # fmt: skip


def test_another_number_of_trees_is_told_with_the_file(tmp_path):
    split = split_of("test", "time")
    scored = ScoredTrees(split.name, list(split), split.trees, ())
    (tmp_path / "theirs").write_text("(S (NN a))" * 1_234, encoding="utf-8")
    with pytest.raises(CorpusError, match=f"--against {tmp_path}/theirs has 1,234 trees, but there are 1 sentences"):
        scored.read(tmp_path / "theirs")
