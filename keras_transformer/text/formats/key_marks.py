"""Signs that mark a key in the text of a menu or button, as in _Open, &Open or ~Open: they are no text."""

import re

from keras_transformer.pieces.scripts import breaks_anywhere
from keras_transformer.text.syntaxes import PLACEHOLDER

MARK = re.compile(r"(?<!\w)[_&~](?=[^\W_])(?!\w*;)|(?<=\b[A-Z])[_&~](?=[a-z])(?!\w*;)|(?<=\b[A-Z][a-z])[_&~](?=[a-z])")
LONGEST_LABEL = 60  # characters of a text in which a sign marks a key


def place_of_mark(text: str, marker: str | None) -> int | None:
    """Return where the sign of an escaped text stands that marks a key, as in _Open; None if there is none or several.

    marker: the sign, if the header of the file tells it; else it is _, & or ~ at the begin of a word, or behind its
    first letters.
    """
    places = [found.start() for found in MARK.finditer(text) if marker in (None, text[found.start()])]
    return places[0] if len(places) == 1 and len(text) <= LONGEST_LABEL else None


def marked(translation: str, mark: str) -> str:
    """Return a translation with a mark and the letter behind it, such as "_O", at its first letter.

    A text of a script without keys of its own has it in parentheses at its end: 開く(_O).
    """
    taken = [found.span() for found in PLACEHOLDER.finditer(translation)]
    for place, character in enumerate(translation):
        if character.isalnum() and not any(start <= place < end for start, end in taken):
            if breaks_anywhere(character):
                content = translation.rstrip(".\u2026:\uff1a ")
                return f"{content}({mark.upper()}){translation[len(content) :]}"
            return f"{translation[:place]}{mark[0]}{translation[place:]}"
    return translation
