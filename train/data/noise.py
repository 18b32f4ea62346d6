"""Changes of a text as people make them: capitals, punctuation, typing mistakes. Pure functions of (text, Generator).

A text to which a change does not apply stays as it is.
"""

import numpy as np

PUNCTUATION = ".,;:!?…。，、！？"


def in_capitals(text: str) -> str:
    """The text in upper case: "it's a dog" -> "IT'S A DOG"."""
    return text.upper()


def in_title_case(text: str) -> str:
    """The text with a capital at the beginning of each word: "it's a dog" -> "It's A Dog"."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def without_last_stop(text: str) -> str:
    """The text without the punctuation at its end: "A dog." -> "A dog"."""
    return text.rstrip().rstrip(PUNCTUATION).rstrip() or text


def with_other_punctuation(text: str, rng: np.random.Generator) -> str:
    """The text without one of its punctuation marks, or with one twice: "A dog." -> "A dog" or "A dog..".

    A mark between two digits stays as it is: without it, "3.5" would be another number.
    """
    places = [n for n, character in enumerate(text) if character in PUNCTUATION and not is_in_number(text, n)]
    if not places:
        return text
    place, times = places[rng.integers(len(places))], 2 * int(rng.integers(2))
    changed = text[:place] + times * text[place] + text[place + 1 :]
    return changed if changed.strip() else text


def is_in_number(text: str, place: int) -> bool:
    """Whether the character at a place stands between two digits."""
    return text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit()


def with_typing_mistake(text: str, rng: np.random.Generator) -> str:
    """The text with two neighbouring letters exchanged, or with a letter left out, doubled or replaced by another one.

    "A dog" -> "A odg", "A do", "A doog" or "A dAg". The letter is one of a word of at least two letters.
    """
    letters = [place for place, character in enumerate(text) if character.isalpha()]
    followed = [place for place in letters if text[place + 1 : place + 2].isalpha()]
    if not followed:
        return text
    place = followed[rng.integers(len(followed))]
    letter, following = text[place], text[place + 1]
    other = text[letters[rng.integers(len(letters))]]
    mistakes = [following + letter, following, 2 * letter + following, other + following]
    mistakes = [typed for typed in mistakes if typed != letter + following]  # as two equal letters exchanged would be
    return text[:place] + mistakes[rng.integers(len(mistakes))] + text[place + 2 :]
