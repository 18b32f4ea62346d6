"""Terms in a source, each behind its word, as models that were trained with `data.terms` read them.

    A dog runs.    with the term dog = Hund    A dog¦ Hund¬ runs.

So a model learns to use a term and to inflect it (Dinu et al. 2019; Bergmanis and Pinnis 2021). The two signs are few
bytes in every tokenizer that keeps all text, and leave the words around them in the pieces that they have without them.
"""

import re
from collections.abc import Iterable

from keras_transformer.ground.errors import InputError

BEFORE, AFTER = "\u00a6", "\u00ac"  # around a term: a broken bar and a sign of negation, which hardly any text has
SHOWN = re.compile(f"{BEFORE} [^{BEFORE}{AFTER}]*{AFTER}")
OTHER_SIGNS = str.maketrans({BEFORE: "|", AFTER: "-"})
REFUSAL = (
    "The glossary has soft terms, which this model has not learned to read: leave out the flag soft, or train a model "
    "with data.terms."
)


def shown(word: str, target: str) -> str:
    """Return a word of a source with the term behind it: "dog" and "Hund" give "dog¦ Hund¬"."""
    return f"{word}{BEFORE} {without_signs(target)}{AFTER}"


def without_signs(text: str) -> str:
    """Return a text of the same length in which our signs are other ones."""
    return text.translate(OTHER_SIGNS)


def with_terms(text: str, terms: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with terms, each (start, end, target), from left to right, without overlaps."""
    parts, reached = [], 0
    for start, end, target in terms:
        parts += [without_signs(text[reached:start]), shown(without_signs(text[start:end]), target)]
        reached = end
    return "".join([*parts, without_signs(text[reached:])]) if parts else text


def has_terms(text: str) -> bool:
    return bool(SHOWN.search(text))


def without_terms(text: str) -> str:
    """Return a text without what `with_terms` wrote into it."""
    return SHOWN.sub("", text)


def check_soft(has_soft: bool, knows_terms: bool) -> None:
    """Raises InputError for soft terms and a model that has not learned to read them."""
    if has_soft and not knows_terms:
        raise InputError(REFUSAL)
