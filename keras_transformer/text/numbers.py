"""Numbers of a source that its translation must have: the option `require_numbers` of a search."""

import re

from keras_transformer.pieces.scripts import UNSPACED
from keras_transformer.text.placeholders import SYMBOL
from keras_transformer.text.spans import MARK

# What has no digits of a number, and divides words
APART = rf"{SYMBOL.pattern}|[{UNSPACED}]"  # for re and for RE2
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
WORD = re.compile(r"\w*[^\W\d]\w*")  # that is no number


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text as it writes them, in digits 0 to 9; digits of a word, as in B2B, are none.

    export/graph/phrases.py finds the same: `tests/support/text_rules.py` has the cases.
    """
    others = WORD.sub("x", re.sub(APART, " ", MARK.sub(" ", text)))
    return [number for number in dict.fromkeys(NUMBER.findall(others)) if number.isascii()]
