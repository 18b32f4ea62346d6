"""The branches that ICU messages need for the numbers of another language.

`{n, plural, one {# dog} other {# dogs}}` has no branch for the 2 and the 5 of Polish: `few` and `many`.
"""

import logging
from collections.abc import Iterable, Iterator

from keras_transformer.text.formats.parts import Field, Part
from keras_transformer.text.formats.plurals import EXACTLY, OTHER, categories_of, text_for
from keras_transformer.text.messages import Message, Parts, length_of, lost, messages_in, parts_of_line, written
from keras_transformer.text.passages import Piece

log = logging.getLogger("keras_transformer")


def with_forms(parts: Iterable[Part], name: str, language: str) -> Iterator[Part]:
    """Yield the parts of a file, of whose fields each message has a branch for every category of a language.

    A new branch has the text of `other`. So has `one` if it is for 21 too, as in Russian, and has no number; what it
    said is then in the branch =1, and likewise what `zero` and `two` said. A category beside a branch for its number,
    such as =0, is not added. Ordinal numbers have categories of their own, and keep their branches. How many messages
    got some, or that the language is not known, is logged at the end.
    """
    is_known, changed, are_left = bool(categories_of(language)), 0, False
    for part in parts:
        if isinstance(part, Field) and (found := cardinals_in(part.passage.text)):
            pieces = list(pieces_with_forms(found, language)) if is_known else []
            if any(isinstance(piece, str) for piece in pieces):
                part, changed = part._replace(passage=part.passage.made_of(pieces)), changed + 1
            are_left = are_left or not is_known
        yield part
    if changed:
        log.info("%s: messages with new branches for the numbers of %s: %d", name, language, changed)
    if are_left:
        log.warning("%s: messages with numbers keep their branches: tell the language with --target-language", name)


def cardinals_in(text: str) -> Parts:
    """Return the texts and messages of a text; () if no message is about a number of things."""
    parts = parts_of_line(text)
    return parts if any(map(is_cardinal, messages_in(parts))) else ()


def is_cardinal(message: Message) -> bool:
    """Return whether a message has branches for numbers of things, each of them once."""
    selectors = [branch.selector for branch in message.branches]
    return message.kind == "plural" and OTHER in selectors and len({*selectors}) == len(selectors)


def pieces_with_forms(parts: Parts, language: str, start: int = 0) -> Iterator[Piece]:
    """Yield what parts become in a language: places in the text, of which they begin at `start`, and new selectors."""
    for part in parts:
        stop = start + length_of((part,))
        if isinstance(part, Message):
            yield from pieces_of_message(part, language, start)
        elif part:
            yield start, stop
        start = stop


def pieces_of_message(message: Message, language: str, start: int) -> Iterator[Piece]:
    """Yield the pieces of one message, as `pieces_with_forms`."""
    begin = start + len(message.head)
    yield start, begin
    places = []  # of each branch: where it begins, where its text does, and where this ends
    for opening, inside in message.branches:
        text = begin + len(opening)
        places.append((begin, text, text + length_of(inside)))
        begin = places[-1][2] + 1
    reached = 0  # behind the last branch
    for selector, number in branches_in(message, language):
        (first, text, end), branch = places[number], message.branches[number]
        if reached not in (0, first) and not branch.opening[0].isspace():
            yield " "
        name = first + branch.opening.index(branch.selector)
        if selector == branch.selector:
            yield first, text
        else:
            yield from ((first, name), selector, (name + len(branch.selector), text))
        yield from pieces_with_forms(branch.parts, language, text)
        yield end, end + 1
        reached = end + 1
    yield begin, begin + len(message.tail)


def branches_in(message: Message, language: str) -> list[tuple[str, int]]:
    """Return the selectors that a message has in a language, each with the number of the branch whose text it has."""
    own = [(branch.selector, number) for number, branch in enumerate(message.branches)]
    if not is_cardinal(message):
        return own
    texts = {branch.selector: "".join(written(branch.parts)) for branch in message.branches}
    taken = {each: text_for(each, texts, language, has_same) for each in categories_of(language)}
    numbers, branches = dict(own), []
    for selector, number in own:
        if selector == OTHER:
            lacking = [each for each in taken if numbers.keys().isdisjoint((each, EXACTLY.get(each)))]
            branches += [(each, numbers[taken[each]]) for each in lacking]
        of_category = numbers[taken.get(selector, selector)]
        is_lost = of_category != number and EXACTLY[selector] not in numbers
        if is_lost and not message.has_offset:  # which =1 does not know
            branches.append((EXACTLY[selector], number))
        branches.append((selector, of_category))
    return branches


def has_same(text: str, other: str) -> bool:
    """Return whether the text of a branch has the number and arguments of another."""
    return not lost(text, other)
