"""Tags of HTML and XML: taken out of a text before it is translated, and put around the words of the translation."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keras_transformer.text.placing import Source, Unit, best_run
from keras_transformer.text.spans import LEFT, RIGHT, Span
from keras_transformer.text.tag_marks import Mark, Punctuation, is_ahead, punctuation_at, serialised

NAME = re.compile(rf"[<{LEFT}]/?([A-Za-z][\w:.-]*|[0-9]+)")
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # HTML closes none of these
BREAKS = frozenset("br div dd dt h1 h2 h3 h4 h5 h6 hr img li ol p table td th tr ul".split())  # they end a word


class Tag(NamedTuple):
    """A tag, or a pair of them with what is inside. Places are those of the text without tags.

    start, end: what it encloses; the same for a tag without partner. divides: whether the tag, and the one that closes
    it, divides two words alone.
    """

    start: int
    end: int
    opening: str
    closing: str
    inside: tuple["Tag", ...]
    divides: tuple[bool, bool]


class Stripped(NamedTuple):
    """A text without its tags: the text, the place of each tag in it, and which tags divide words alone."""

    text: str
    places: list[int]
    divides: list[bool]


def without_tags(text: str, tags: Sequence[Span]) -> Stripped:
    """Take the tags out of a text. A space stands for one that divides two words alone, such as <br>."""
    parts, places, divides, reached = [], [], [], 0
    for number, tag in enumerate(tags):
        parts.append(text[reached : tag.start])
        reached = tag.end
        so_far = "".join(parts)
        after = tags[number + 1].start if number + 1 < len(tags) else len(text)
        is_dividing = (
            name_of(tag.target) in BREAKS
            and so_far[-1:].strip() != ""
            and (reached < after and text[reached].strip() != "" or reached == after and number + 1 < len(tags))
        )
        places.append(len(so_far))
        divides.append(is_dividing)
        parts = [so_far, " "] if is_dividing else [so_far]
    return Stripped("".join([*parts, text[reached:]]), places, divides)


def name_of(tag: str) -> str:
    match = NAME.match(tag)
    return match[1].lower() if match else ""


def closes(tag: str) -> bool:
    return tag.startswith(("</", f"{LEFT}/"))


def is_whole(tag: str) -> bool:
    """Return whether a tag is neither half of a pair: a comment, <br> or <x/>."""
    return not name_of(tag) or tag.endswith(("/>", f"/{RIGHT}")) or name_of(tag) in VOID


def tree_of(tags: Sequence[Span], stripped: Stripped) -> tuple[Tag, ...]:
    """Return the tags as a tree. A tag that nothing closes, and one that closes nothing, stands alone."""
    partner = partners(tags)

    def trees(first: int, last: int) -> Iterator[Tag]:
        number = first
        while number < last:
            place, text = stripped.places[number], tags[number].target
            closing = partner.get(number)
            if closing is None:
                yield Tag(place, place, text, "", (), (stripped.divides[number], False))
                number += 1
            else:
                inside = tuple(trees(number + 1, closing))
                start, divides = place + stripped.divides[number], (stripped.divides[number], stripped.divides[closing])
                end = max(stripped.places[closing], start)
                yield Tag(start, end, text, tags[closing].target, inside, divides)
                number = closing + 1

    return tuple(trees(0, len(tags)))


def partners(tags: Sequence[Span]) -> dict[int, int]:
    """Return the number of the tag that closes each tag that is closed."""
    waiting, found = [], {}
    for number, tag in enumerate(tags):
        text, name = tag.target, name_of(tag.target)
        if closes(text):
            places = [place for place, (_, other) in enumerate(waiting) if other == name]
            if places:
                found[waiting[places[-1]][0]] = number
                del waiting[places[-1] :]
        elif name and not is_whole(text):
            waiting.append((number, name))
    return found


def opening_mark(text: str, tag: Tag) -> Mark:
    """Return the tag that opens a pair as it stands between its neighbours in the source."""
    has_space = text[tag.start - 1 : tag.start].isspace()
    return Mark(
        tag.opening,
        False,
        punctuation_at(text, tag.start, opens=True),
        pair=1,
        divides=tag.divides[0],
        has_space=has_space,
        takes_more=not text[: tag.start].strip(),
    )


def closing_mark(text: str, tag: Tag) -> Mark:
    """Return the tag that closes a pair as it stands between its neighbours in the source."""
    beside = punctuation_at(text, tag.end, opens=False)
    return Mark(tag.closing, True, beside, pair=-1, divides=tag.divides[1], takes_more=not text[tag.end :].strip())


def lone_mark(text: str, tag: Tag) -> Mark:
    """Return a tag that stands alone as it stands between its neighbours in the source."""
    before, after = punctuation_at(text, tag.start, opens=True), punctuation_at(text, tag.start, opens=False)
    has_space = text[tag.start - 1 : tag.start].isspace()
    is_apart = text[tag.start : tag.start + 1].isspace() and not tag.divides[0]
    is_left = tag.start > 0 and not has_space and not tag.divides[0] and not before.begins_word
    beside = Punctuation() if tag.divides[0] else after if is_left else before
    return Mark(
        tag.opening, is_left, beside, divides=tag.divides[0], has_space=has_space, is_apart=is_apart and not is_left
    )


def with_tags(source: Source, tags: Sequence[Tag], units: list[Unit]) -> str:
    """Return the text of units with every tag once, pairs in order and one inside the other as in the source."""
    words = source.words

    def words_of(start: int, end: int) -> set[int]:
        return {number for number, word in enumerate(words) if word[0] < end and start < word[1]}

    def range_of(tag: Tag, parent: set[int], low: int, high: int) -> tuple[int, int]:
        own = words_of(tag.start, tag.end) if tag.closing else set()  # one that stands alone may be inside a word
        if not own:
            place = place_of(tag.start, parent, low, high, closes(tag.opening))
            return place, place
        if own >= parent:
            return low, high
        run = best_run([1 if unit.sources & own else -1 for unit in units[low:high]])
        if run is None:
            place = place_of(tag.start, parent, low, high, False)
            return place, place
        return low + run[0], low + run[1] + 1

    def place_of(place: int, parent: set[int], low: int, high: int, is_behind: bool) -> int:
        after = [number for number in sorted(parent) if is_ahead(source.text, words[number], place)]
        before = [number for number in sorted(parent) if number not in after]
        if not before:
            return low
        if not after:
            return high
        ahead, behind = ((number, False) for number in after), ((number, True) for number in reversed(before))
        for number, is_before in (*behind, *ahead) if is_behind else (*ahead, *behind):
            if near := [n for n in range(low, high) if number in units[n].sources]:
                return near[-1] + 1 if is_before else near[0]
        return high

    def written(tags: Sequence[Tag], parent: set[int], low: int, high: int) -> Iterator[Unit | Mark]:
        ranges, reached, floor = [], low, low
        for number, tag in enumerate(tags):
            start, end = range_of(tag, parent, low, high)
            start = max(start, floor)
            end = max(end, start)
            if not tag.closing and not is_whole(tag.opening):
                # the other half is elsewhere: what was before it stays outside of the pair, and what was behind inside
                start = end = floor = max(start, reached)
            ranges.append((start, end, number))
            reached = max(reached, end)
        ranges, reached = sorted(ranges), low
        for start, end, number in ranges:
            tag, start = tags[number], max(start, reached)
            end = max(end, start)
            yield from units[reached:start]
            yield opening_mark(source.text, tag) if tag.closing else lone_mark(source.text, tag)
            if tag.closing:
                yield from written(tag.inside, words_of(tag.start, tag.end) & parent, start, end)
                yield closing_mark(source.text, tag)
            reached = end
        yield from units[reached:high]

    return serialised(list(written(tags, set(range(len(words))), 0, len(units))))
