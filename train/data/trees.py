"""Bracketed trees of the Penn format, read from text and stripped to words, tags and phrases."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from keras_transformer.parsing.linear import LEAF, closing, is_opening, is_spanned, opening, tagged_leaf

from .corpus import CorpusError, Pair

if TYPE_CHECKING:  # it takes a second, which other text need not wait for
    import nltk

TRACE = "-NONE-"  # the tag of a leaf that is not a word, such as the trace of what has moved
TOP = "TOP"  # the outermost bracket, if it is more than a wrapper of one phrase
TOPS = {"", TOP, "ROOT", "S1"}  # what treebanks and parsers write for it


class Tree(NamedTuple):
    """A sentence and its tree, without traces and functions."""

    words: tuple[str, ...]
    tags: tuple[str, ...]  # the part of speech of each word
    symbols: tuple[str, ...]  # as in keras_transformer/parsing/linear.py

    @property
    def pair(self) -> Pair:
        """What the model reads, and what it shall write."""
        return " ".join(self.words), " ".join(self.symbols)

    @property
    def tagged_pair(self) -> Pair:
        """The same, if the model shall write the tag of each word in place of XX."""
        tags = map(tagged_leaf, self.tags)
        return " ".join(self.words), " ".join(next(tags) if symbol == LEAF else symbol for symbol in self.symbols)


def read_trees(text: str, name: str) -> Iterator[Tree]:
    """Yield the trees of a text that have words. Raises CorpusError, with `name` and the line, for anything else."""
    from nltk.tree import Tree as NltkTree

    for start, bracketed in outermost_brackets(text, name):
        try:
            tree = stripped(NltkTree.fromstring(bracketed))
        except ValueError as error:
            cause = " ".join(str(error).split()).rstrip(".")
            raise CorpusError(
                f"{name}, line {line_of(text, start):,}: what begins here is not a tree: {cause}."
            ) from None
        if tree.words:
            yield tree


def outermost_brackets(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield where each outermost bracket begins, and its text. Raises CorpusError unless brackets are all there is."""
    depth, start, end = 0, 0, 0
    for bracket in re.finditer("[()]", text):
        if depth == 0:
            start = bracket.start()
            if (between := text[end:start].strip()) or bracket[0] == ")":
                raise outside(text, name, end, between or ")")
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            end = bracket.end()
            yield start, text[start:end]
    if depth:
        raise CorpusError(
            f"{name}, line {line_of(text, start):,}: the bracket that opens here is never closed: the file is cut off, "
            "or a closing bracket is missing."
        )
    if rest := text[end:].strip():
        raise outside(text, name, end, rest)


def outside(text: str, name: str, end: int, found: str) -> CorpusError:
    """An error about `found`, the first thing after `end` that belongs to no tree."""
    return CorpusError(
        f"{name}, line {line_of(text, text.index(found[0], end)):,}: found {found.split()[0][:40]!r} outside of any "
        "tree; a file of a treebank has nothing but bracketed trees, such as (S (NP (NN time)) (VP (VBZ flies)))."
    )


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def stripped(tree: "nltk.Tree") -> Tree:
    """Drop traces, functions and an outermost bracket that only wraps a phrase. Raises ValueError for anything else.

    ( (S (NP-SBJ (-NONE- *)) (VP (VB Run))) )   ->   words: Run   tags: VB   symbols: (S (VP XX )VP )S
    """
    leaves = []
    symbols = phrase(tree, leaves)
    while len(symbols) > 2 and symbols[0] == opening(TOP) and is_spanned(symbols[1:-1]):
        symbols = symbols[1:-1]
    if symbols and not is_opening(symbols[0]):
        symbols = [opening(TOP), *symbols, closing(TOP)]
    words, tags = zip(*leaves, strict=True) if leaves else ((), ())
    return Tree(words, tags, tuple(symbols))


def phrase(node: "nltk.Tree", leaves: list[tuple[str, str]]) -> list[str]:
    """The symbols of a bracket, none if it has no word; its words and their tags are added to `leaves`."""
    if len(node) == 1 and isinstance(node[0], str):
        if node.label() == TRACE:
            return []
        leaves.append((node[0], node.label()))
        return [LEAF]
    symbols = []
    for child in node:
        if isinstance(child, str):
            raise ValueError(f"the word {child!r} has no bracket of its own, with its part of speech")
        symbols += phrase(child, leaves)
    label = category(node.label())
    return [opening(label), *symbols, closing(label)] if symbols else []


def category(label: str) -> str:
    """A label without functions and indices: NP of NP-SBJ-1 and of NP=2, ADVP of ADVP|PRT; TOP of the outermost one."""
    return TOP if label in TOPS else re.split("[-=|]", label)[0] or label
