"""Trees as lines of brackets, and back (Vinyals et al. 2015, "Grammar as a Foreign Language", section 2.2).

    John has a dog .        (S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S

Each word is XX, whatever its part of speech, or /NN if the model writes that too; each phrase is an opening and a
closing bracket with its label. A list of these symbols is a tree over words if

- every bracket that opens is closed by one of its own label, the last opened first,
- one bracket spans everything,
- no bracket is empty,
- and it has one leaf, such as XX, per word.

What a model writes may be no tree. `repaired` makes one of any list of symbols.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.pieces.normalization import is_blank

LEAF = "XX"  # each word, without its part of speech
ROOT = "S"  # the label of the bracket that `repaired` puts around what has none
ROUND = str.maketrans({"(": "-LRB-", ")": "-RRB-"})  # as the Penn Treebank writes brackets of the text,
ESCAPES = ROUND | str.maketrans({"{": "-LCB-", "}": "-RCB-"})  # because they do not belong to the tree
SYMBOL = re.compile(r"[()][^\s()]*|[^\s()]+")


class Constituent(NamedTuple):
    """A phrase: words start .. end - 1, counted from 0."""

    label: str
    start: int
    end: int


def penn_words(sentence: str) -> list[str]:
    """Divide a sentence at its spaces; what is invisible alone is no word.

    A bracket, alone or in a word, is escaped as in the treebank.

    see (x) .   ->   see -LRB-x-RRB- .
    """
    return [word for word in sentence.translate(ESCAPES).split() if not is_blank(word)]


def opening(label: str) -> str:
    return f"({label}"


def closing(label: str) -> str:
    return f"){label}"


def tagged_leaf(tag: str) -> str:
    return f"/{tag}"


def symbols_of(text: str) -> list[str]:
    """Divide a line of brackets into its symbols: "(NP XX )NP" is "(NP", "XX", ")NP". Other texts stay as they are."""
    return SYMBOL.findall(text)


def pieces_of_labels(
    labels: Iterable[str], root_labels: Iterable[str], leaves: Iterable[str] = (LEAF,)
) -> tuple[str, ...]:
    """All symbols as they stand in a line, each with the space before it: what a tokenizer needs as one piece each.

    A line begins without a space, so the opening brackets of roots are there in both forms.
    """
    first = [opening(label) for label in sorted(set(root_labels))]
    labels = sorted(set(labels))
    others = [*sorted(set(leaves)), *map(opening, labels), *map(closing, labels)]
    return (*first, *(f" {symbol}" for symbol in others))


def is_tree(symbols: Sequence[str], words: int) -> bool:
    """Return whether the symbols are a tree over `words` words."""
    is_open, leaves, before = [], 0, ""
    for place, symbol in enumerate(symbols):
        if place and not is_open:
            return False  # something follows the bracket that spans everything
        if is_opening(symbol):
            is_open.append(symbol[1:])
        elif is_closing(symbol):
            if not is_open or is_open.pop() != symbol[1:] or is_opening(before):
                return False
        elif is_leaf(symbol) and is_open:
            leaves += 1
        else:
            return False
        before = symbol
    return bool(symbols) and not is_open and leaves == words


def is_opening(symbol: str) -> bool:
    return symbol.startswith("(") and len(symbol) > 1


def is_closing(symbol: str) -> bool:
    return symbol.startswith(")") and len(symbol) > 1


def is_leaf(symbol: str) -> bool:
    return symbol == LEAF or (symbol.startswith("/") and len(symbol) > 1)


def repaired(symbols: Iterable[str], words: int) -> list[str]:
    """Make a tree over `words` words of any symbols. A tree stays as it is; without words the result is [].

    1. From left to right, a closing bracket closes the last open bracket of its label, and with it every bracket that
       was opened after that one. If no bracket of its label is open, it closes the innermost one; if no bracket is open
       at all, it is dropped. Leaves beyond the last word are dropped too, and symbols that are neither brackets nor
       leaves.
    2. Brackets that are open at the end are closed, and empty ones are dropped.
    3. If no single bracket spans everything, one with the label S is put around it.
    4. Missing leaves are added at the end of the bracket that spans everything.

    So an output without any symbol becomes a flat tree: (S XX XX XX )S.
    """
    if not words:
        return []
    kept = without_empty_brackets(balanced(symbols, words))
    if not is_spanned(kept):
        kept = [opening(ROOT), *kept, closing(ROOT)]
    missing = words - sum(map(is_leaf, kept))
    return [*kept[:-1], *[LEAF] * missing, kept[-1]]


def balanced(symbols: Iterable[str], most_leaves: int) -> list[str]:
    """Steps 1 and 2 of `repaired`, without dropping empty brackets."""
    kept, is_open, leaves = [], [], 0
    for symbol in symbols:
        if is_opening(symbol):
            is_open.append(symbol[1:])
            kept.append(symbol)
        elif is_closing(symbol) and is_open:
            label = symbol[1:] if symbol[1:] in is_open else is_open[-1]
            while (last := is_open.pop()) != label:
                kept.append(closing(last))
            kept.append(closing(label))
        elif is_leaf(symbol) and leaves < most_leaves:
            leaves += 1
            kept.append(symbol)
    return kept + [closing(label) for label in reversed(is_open)]


def without_empty_brackets(symbols: Iterable[str]) -> list[str]:
    """Drop the brackets of balanced symbols that have no leaf."""
    kept = []
    for symbol in symbols:
        if is_closing(symbol) and kept and is_opening(kept[-1]):
            kept.pop()
        else:
            kept.append(symbol)
    return kept


def is_spanned(symbols: Sequence[str]) -> bool:
    """True if one bracket of balanced symbols spans all of them."""
    depth = 0
    for place, symbol in enumerate(symbols):
        depth += is_opening(symbol) - is_closing(symbol)
        if depth == 0:
            return place == len(symbols) - 1 and is_closing(symbol)
    return False


def constituents(symbols: Iterable[str]) -> list[Constituent]:
    """The phrases of a tree, in the order of their closing brackets."""
    phrases, starts, leaves = [], [], 0
    for symbol in symbols:
        if is_opening(symbol):
            starts.append(leaves)
        elif is_closing(symbol):
            phrases.append(Constituent(symbol[1:], starts.pop(), leaves))
        else:
            leaves += 1
    return phrases


def penn_tree(symbols: Iterable[str], words: Iterable[str], tags: Iterable[str] | None = None) -> str:
    """Write a tree with its words in the format of the Penn Treebank, on one line.

    tags: the part of speech of each word; None: those of the symbols, or XX. Round brackets in words are escaped as in
    `penn_words`, so that the result can be read.

        (S (NP (XX John)) (VP (XX has) (NP (XX a) (XX dog))) (XX .))
    """
    symbols = list(symbols)
    tags = tags or [symbol.removeprefix("/") for symbol in symbols if is_leaf(symbol)]
    leaves = zip(tags, (word.translate(ROUND) for word in words), strict=True)
    parts = []
    for symbol in symbols:
        if is_closing(symbol):
            parts[-1] += ")"
        else:
            parts.append(symbol if is_opening(symbol) else "({} {})".format(*next(leaves)))
    return " ".join(parts)
