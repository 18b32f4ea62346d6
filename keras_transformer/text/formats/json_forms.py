"""What a JSON file is made of, and the keys that i18next has for numbers in another language.

A text that depends on a number has a key for each category of its language, dogs_one and dogs_other in English:
https://www.i18next.com/translation-function/plurals.
"""

import collections
import re
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.ground.notations import json_of
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.plurals import ONE, ORDER, OTHER, categories_of, text_for

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?+|[\[\]{},]|[^"\[\]{},]++')
CATEGORY = re.compile(rf"(.*(?<!_ordinal))_({'|'.join(ORDER)})", re.S)  # ordinal numbers have categories of their own


class Token(NamedTuple):
    """A stretch of a JSON file."""

    raw: str
    kind: str  # "key", with its colon, "text", or "" for all else
    key: str  # its own, or the one before it; "" in a list
    opening: int  # the number of the token that opened the object or list around it

    @property
    def space(self) -> str:
        """The white space that it is; "" if it is something else."""
        return self.raw if self.raw.isspace() else ""


class ByNumber(NamedTuple):
    """The texts that a file has by number. `texts`: by the number of a token, that of the text which takes its place.

    new: by the token of a key, the keys to be written before it, with the number of the token whose text they get.
    """

    texts: dict[int, int]
    new: dict[int, list[tuple[str, int]]]
    are_left: bool  # for want of the categories of the language


def tokens_of(text: str) -> list[Token]:
    """Return all of a JSON file, in which every sign belongs to one token."""
    tokens: list[Token] = []
    keys, openings = [""], [-1]  # of what is open: the key of what follows in it, and its first token
    for found in TOKEN.finditer(text):
        raw, kind = found[0], ""
        if raw[0] == '"':
            kind = "key" if found[1] else "text"
        if kind == "key":
            keys[-1] = json_of(raw[: -len(found[1])])
        elif raw in ("}", "]"):
            keys.pop()
            openings.pop()
        tokens.append(Token(raw, kind, keys[-1], openings[-1]))
        if raw in ("{", "["):
            keys.append("")
            openings.append(len(tokens) - 1)
    return tokens


def names_of(tokens: Sequence[Token], number: int) -> list[str]:
    """Return the keys that a token stands under, "" for the whole file and in lists; the innermost is the last."""
    names = []
    while number >= 0:
        names.append(tokens[number].key)
        number = tokens[number].opening
    return names[::-1]


def by_number(tokens: Sequence[Token], language: str) -> ByNumber:
    """Return which texts and keys i18next needs in a language for those that a file has by number.

    These are the texts of one object whose keys differ in the category alone, if `one` and `other` are among them. A
    category that the language lacks keeps its text: `zero` is for 0 in each.
    """
    groups: dict[tuple[int, str], dict[str, int]] = collections.defaultdict(dict)
    for number, token in enumerate(tokens):
        if token.kind == "text" and (found := CATEGORY.fullmatch(token.key)):
            groups[token.opening, found[1]][found[2]] = number
    found_groups = {place: each for place, each in groups.items() if {ONE, OTHER} <= each.keys()}
    categories = categories_of(language)
    told = ByNumber({}, {}, bool(found_groups) and not categories)
    for (_, name), of_category in found_groups.items() if categories else ():
        texts = {category: json_of(tokens[number].raw) for category, number in of_category.items()}
        taken = {category: of_category[text_for(category, texts, language, has_filled_in)] for category in categories}
        told.texts.update({number: taken.get(category, number) for category, number in of_category.items()})
        lacking = [(f"{name}_{category}", taken[category]) for category in categories if category not in of_category]
        told.new[key_before(tokens, of_category[OTHER])] = lacking
    return told


def key_before(tokens: Sequence[Token], number: int) -> int:
    return next(each for each in range(number, -1, -1) if tokens[each].kind == "key")
