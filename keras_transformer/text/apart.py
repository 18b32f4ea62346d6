"""Spaces and commas that part a protected span from what it would be read as one with."""

import bisect
import collections
from collections.abc import Iterator, Sequence

from keras_transformer.text.occurrences import copies_of
from keras_transformer.text.readings import READ, Place, Readings
from keras_transformer.text.spans import MARK, TAGS, Span

MOST_ROUNDS = 3  # a space may bring two numbers beside each other, which a comma then parts
BEFORE_SPACE = ",.;:!?"  # what stands without a space behind a word


def set_apart(text: str, spans: Sequence[Span]) -> str:
    """Return a translation with a space or a comma between spans and what they would be read as one with.

        5 and 600, "5 600"  ->  "5, 600"        7, "-7%"  ->  "- 7 %"

    Each span that stands in the text is then read in it as often as among `spans`: see `Readings.has`.
    """
    wanted = collections.Counter(span.target for span in spans if span.kind in READ)
    kinds = {span.target: span.kind for span in spans if span.kind in READ}
    for _ in range(MOST_ROUNDS if wanted else 0):
        readings = Readings(MARK.sub(lambda mark: "\ue001" * len(mark[0]), text))
        gaps = {gap for place in joined_ones(readings, wanted, kinds) for gap in gaps_of(readings, *place)}
        if not gaps:
            break
        parts, reached = [], 0
        for place, sign in sorted(gaps):
            parts += [text[reached:place], sign]
            reached = place
        text = "".join([*parts, text[reached:]])
    return text


def joined_ones(readings: Readings, wanted: dict[str, int], kinds: dict[str, str]) -> Iterator[tuple[str, Place]]:
    """Yield the kind and place of spans that are read as one with something, as many as are not read otherwise."""
    lacking, taken, reached = dict(wanted), [(0, 0)], 0
    for value, place in copies_of(wanted, readings.text):
        if lacking[value] > 0 and place[0] >= taken[-1][1] and readings.has(kinds[value], place):
            lacking[value] -= 1
            taken.append(place)
    for value, place in copies_of([value for value, count in lacking.items() if count > 0], readings.text):
        others = readings.touching(place, kinds[value])
        before = taken[bisect.bisect_left(taken, place[1], key=lambda each: each[0]) - 1]
        is_taken = before[1] > place[0] or any(
            kind == TAGS or readings.text[slice(*other)] in wanted for kind, other in others
        )
        if lacking[value] > 0 and place[0] >= reached and not is_taken:  # -5 is not 5 too
            lacking[value] -= 1
            reached = place[1]
            yield kinds[value], place


def gaps_of(readings: Readings, kind: str, place: Place) -> Iterator[tuple[int, str]]:
    """Yield where a space or a comma parts a span from what is read as one with it, and which."""
    start, end = place
    before, behind = readings.around(kind, place)
    if before:
        yield (start - 1, ",") if before[-1].isspace() else (start, " ")
    if behind:
        yield (end, ",") if behind[0].isspace() else (end + (behind[0] in BEFORE_SPACE), " ")
