"""Trees as lines of brackets: what is one, what becomes of what is none, and the way back to words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.parsing.linear import (
    LEAF,
    Constituent,
    constituents,
    is_tree,
    penn_tree,
    penn_words,
    pieces_of_labels,
    repaired,
    symbols_of,
)

DOG = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"  # figure 2 of Vinyals et al. 2015, with XX in place of tags
SYMBOLS = st.lists(
    st.sampled_from(["(S", "(NP", "(VP", ")S", ")NP", ")VP", LEAF, LEAF, LEAF, "(", ")", "dog", "(XX", ")XX"]),
    max_size=30,
)


LABELS = st.sampled_from(["S", "NP", "VP", "XX", "-LRB-"])


@st.composite
def trees(draw):
    """The symbols of any tree, unary chains included."""
    phrases = st.recursive(
        st.just([LEAF]),
        lambda parts: st.builds(phrase, LABELS, st.lists(parts, min_size=1, max_size=3)),
        max_leaves=6,
    )
    inner = draw(phrases)
    return inner if inner != [LEAF] else phrase("S", [inner])


def phrase(label, parts):
    return [f"({label}", *(symbol for part in parts for symbol in part), f"){label}"]


def test_a_line_of_brackets_is_divided_at_spaces_and_at_brackets():
    assert symbols_of("(S (NP XX )NP)S") == ["(S", "(NP", "XX", ")NP", ")S"]
    assert symbols_of("XX(NP  a b(") == ["XX", "(NP", "a", "b", "("]
    assert " ".join(symbols_of(DOG)) == DOG


@pytest.mark.parametrize(
    "text, words",
    [
        ("", 0),
        ("", 1),
        ("XX", 1),  # no bracket
        ("(S )S", 0),  # an empty one
        ("(S XX (NP )NP )S", 1),
        ("(S XX )S", 2),
        ("(S XX XX )S", 1),
        ("(S XX )NP", 1),
        ("(S (NP XX )S )NP", 1),
        ("(S XX", 1),
        ("(S XX )S )S", 1),
        ("(S XX )S XX", 2),
        ("(S XX )S (S XX )S", 2),  # two roots
        ("(S XX dog )S", 1),
        ("( XX )", 1),  # no labels
    ],
)
def test_what_is_no_tree(text, words):
    assert not is_tree(symbols_of(text), words)


@settings(max_examples=40, deadline=None)
@given(trees())
def test_a_tree_is_a_tree_over_its_words_alone(symbols):
    words = symbols.count(LEAF)
    assert is_tree(symbols, words) and not is_tree(symbols, words + 1) and not is_tree(symbols, words - 1)


@settings(max_examples=40, deadline=None)
@given(trees(), st.data())
def test_a_tree_without_one_of_its_symbols_is_no_tree_over_its_words(symbols, data):
    place = data.draw(st.integers(0, len(symbols) - 1))
    assert not is_tree(symbols[:place] + symbols[place + 1 :], symbols.count(LEAF))


@settings(max_examples=40, deadline=None)
@given(trees())
def test_repair_leaves_a_tree_as_it_is(symbols):
    assert repaired(symbols, symbols.count(LEAF)) == symbols


@settings(max_examples=40, deadline=None)
@given(SYMBOLS, st.integers(1, 12))
def test_repair_makes_a_tree_over_the_words_of_anything(symbols, words):
    found = repaired(symbols, words)
    assert is_tree(found, words)
    assert repaired(found, words) == found


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=40), st.integers(1, 5))
def test_repair_makes_a_tree_of_any_text(text, words):
    assert is_tree(repaired(symbols_of(text), words), words)


@pytest.mark.parametrize(
    "text, words, expected",
    [
        ("", 3, "(S XX XX XX )S"),
        ("XX", 1, "(S XX )S"),
        ("(S (NP XX XX )NP (VP XX", 3, "(S (NP XX XX )NP (VP XX )VP )S"),
        ("(S (NP XX )S", 1, "(S (NP XX )NP )S"),  # )S closes the NP too
        ("(S (NP XX )VP XX )S", 2, "(S (NP XX )NP XX )S"),  # no VP is open: )VP closes the NP
        (")S (S XX )S )S", 1, "(S XX )S"),
        ("(S (NP XX )NP )S", 3, "(S (NP XX )NP XX XX )S"),
        ("(S (NP XX XX XX )NP (VP XX )VP )S", 2, "(S (NP XX XX )NP )S"),
        ("(NP XX )NP (VP XX )VP", 2, "(S (NP XX )NP (VP XX )VP )S"),
        ("(NP XX )NP XX", 2, "(S (NP XX )NP XX )S"),
        ("(S (NP the dog )NP XX )S", 1, "(S XX )S"),
        ("(S XX )S", 0, ""),
        ("(S (NP XX ) ( XX )NP )S", 2, "(S (NP XX XX )NP )S"),  # a bracket alone is neither a bracket nor a leaf
    ],
)
def test_how_repair_goes(text, words, expected):
    assert " ".join(repaired(symbols_of(text), words)) == expected


def test_constituents_are_labels_and_the_words_between_their_brackets():
    assert constituents(symbols_of(DOG)) == [
        Constituent("NP", 0, 1),
        Constituent("NP", 2, 4),
        Constituent("VP", 1, 4),
        Constituent("S", 0, 5),
    ]


def test_a_tree_is_written_with_its_words_and_their_tags():
    words = penn_words("John has a dog .")
    assert penn_tree(symbols_of(DOG), words) == "(S (NP (XX John)) (VP (XX has) (NP (XX a) (XX dog))) (XX .))"
    tagged = penn_tree(symbols_of(DOG), words, ["NNP", "VBZ", "DT", "NN", "."])
    assert tagged == "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"


def test_a_leaf_may_be_a_tag():
    tagged = "(S (NP /NNP )NP (VP /VBZ (NP /DT /NN )NP )VP /. )S".split()
    assert is_tree(tagged, 5) and not is_tree(tagged, 4) and repaired(tagged, 5) == tagged
    assert repaired([*tagged, "/NN"], 6) == ["(S", *tagged, "/NN", ")S"] and repaired(tagged, 6)[-2:] == ["XX", ")S"]
    words = penn_words("John has a dog .")
    assert penn_tree(tagged, words) == "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
    assert not is_tree(["(S", "/", ")S"], 1)


def test_brackets_in_a_sentence_are_escaped_as_in_the_treebank():
    assert penn_words("a ( b ) {") == ["a", "-LRB-", "b", "-RRB-", "-LCB-"]
    assert penn_words("a \u200b b\u00a0c \ufeff") == ["a", "b", "c"]
    assert penn_words("thanks :) (x}") == ["thanks", ":-RRB-", "-LRB-x-RCB-"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.sampled_from("a(){}:."), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_written_tree_can_be_read_again_whatever_its_words(words):
    from nltk.tree import Tree as NltkTree  # a second that only this test needs

    escaped = penn_words(" ".join(words))
    assert len(escaped) == len(words) and penn_words(" ".join(escaped)) == escaped
    for written in (words, escaped):
        read = NltkTree.fromstring(penn_tree(["(S", *[LEAF] * len(words), ")S"], written))
        assert penn_words(" ".join(read.leaves())) == escaped and len(read) == len(words)


def test_each_symbol_of_a_line_is_a_piece():
    assert pieces_of_labels(["NP", "S"], ["S"]) == ("(S", " XX", " (NP", " (S", " )NP", " )S")
    assert pieces_of_labels(["S"], ["S"], ["/NN", "/,", "/NN"]) == ("(S", " /,", " /NN", " (S", " )S")
