"""What a program fills into its texts: whether a translation has it too, so that the program goes on working."""

import collections
import re

from keras_transformer.text.formats.plurals import EXACTLY, ORDER, OTHER
from keras_transformer.text.messages import is_sentence, parts_of_line, written
from keras_transformer.text.syntaxes import PLACEHOLDER

ADDED = {f"{selector}{{" for selector in {*ORDER, *EXACTLY.values()} - {OTHER}}  # what message_forms.py adds
BY_NAME = re.compile(r"[({$]\w|%\d")  # what may stand in another order


def has_filled_in(source: str, translation: str, syntax: re.Pattern[str] = PLACEHOLDER) -> bool:
    """Return whether a translation has the placeholders of a source, those without name or number in their order.

    Of ICU messages with branches it has the same arguments and selectors, and perhaps more categories of numbers.
    """
    messages, translated = structure_of(source), structure_of(translation)
    if messages or translated:
        return messages <= translated and translated - messages <= ADDED and bool(messages)
    theirs, ours = (
        [found[0].replace(" ", "") for found in syntax.finditer(text) if found[0] != "%%"]
        for text in (source, translation)
    )
    named = [collections.Counter(filter(BY_NAME.search, texts)) for texts in (theirs, ours)]
    others = [[each for each in texts if not BY_NAME.search(each)] for texts in (theirs, ours)]
    return named[0] == named[1] and others[0] == others[1]


def structure_of(text: str) -> set[str]:
    """Return what messages in a text consist of beside texts: "{n,plural," and "one{"; nothing without one."""
    parts = parts_of_line(text)
    pieces = written(parts) if len(parts) > 1 else ()
    return {"".join(piece.split()) for piece in pieces if not is_sentence(piece) and "{" in piece}
