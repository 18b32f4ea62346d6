"""Numbers of a source that its translation must have: the option `require_numbers` of a search."""

import re

from keras_transformer.pieces.scripts import UNSPACED
from keras_transformer.text.placeholders import SYMBOL
from keras_transformer.text.spans import MARK
from keras_transformer.text.whole_numbers import OTHER_DIGITS, whole_numbers

APART = rf"{SYMBOL.pattern}|[{UNSPACED}]"  # what has no digits of a number, and divides words: for re and for RE2


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text as it writes them, in digits 0 to 9; digits of a word, as in B2B, are none.

    export/graph/phrases.py finds the same: `tests/support/text_rules.py` has the cases.
    """
    text = re.sub(APART, " ", MARK.sub(" ", text))
    numbers = dict.fromkeys(text[slice(*number)] for number in whole_numbers(text))
    return [number for number in numbers if not re.search(OTHER_DIGITS, number)]
