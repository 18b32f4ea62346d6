"""Trees as commands write them: in the format of the Penn Treebank on one line, or drawn."""

import logging
from collections.abc import Sequence

from keras_transformer.parsing.linear import LEAF, is_tree, penn_tree, penn_words, repaired, symbols_of
from keras_transformer.pieces.translation import Translation

log = logging.getLogger("keras_transformer")


def parsed_sentences(lines: Sequence[str]) -> list[str]:
    """The lines as a model of a treebank reads them: words with one space between two, brackets escaped."""
    return [" ".join(penn_words(line)) for line in lines]


def with_trees(
    lines: Sequence[str], outputs: Sequence[Sequence[Translation]], first_line: int
) -> list[list[Translation]]:
    """Replace the text of all outputs of each line by a tree over its words: `(S (NP (XX dogs)) (VP (XX bark)))`.

    An output that is not a tree over the words is repaired; if it is the best of its line, a warning names the line.
    If several outputs become the same tree, the best of them stays.
    """
    trees = []
    for number, (line, hypotheses) in enumerate(zip(lines, outputs, strict=True), first_line):
        words = penn_words(line)
        if words and hypotheses and not is_tree(symbols_of(hypotheses[0].text), len(words)):
            log.warning("line %d: the output was no tree over the %d words, and was repaired", number, len(words))
        best_of_trees = {}
        for hypothesis in hypotheses:
            tree = penn_tree(repaired(symbols_of(hypothesis.text), len(words)), words)
            best_of_trees.setdefault(tree, hypothesis._replace(text=tree))
        trees.append(list(best_of_trees.values()))
    return trees


def drawing(tree: str) -> str:
    """Draw a tree of the Penn format over several lines, without tags that are XX; "" for ""."""
    if not tree:
        return ""
    from nltk.tree import Tree, TreePrettyPrinter

    words = []

    def numbered(node: Tree) -> Tree | int:
        """A tree whose leaves are numbers of words: nltk keeps the order of these, not that of words."""
        if isinstance(node[0], str):
            words.append(node[0])
            return len(words) - 1 if node.label() == LEAF else Tree(node.label(), [len(words) - 1])
        return Tree(node.label(), [numbered(child) for child in node])

    picture = TreePrettyPrinter(numbered(Tree.fromstring(tree)), words).text(unicodelines=True)
    return "\n".join(line.rstrip() for line in picture.splitlines()).strip("\n")
