"""What came through a translation: the numbers, URLs, addresses, placeholders and tags of the source."""

import collections
from collections.abc import Iterable
from typing import NamedTuple

from keras_transformer.text.occurrences import occurrences
from keras_transformer.text.spans import KINDS, Protection

EVERY_KIND = Protection(KINDS)


class Survival(NamedTuple):
    """Spans of one kind in sources, and how many of them stand in the translations as they are."""

    in_sources: int
    in_translations: int

    @property
    def per_cent(self) -> float:
        return 100 * self.in_translations / self.in_sources


def survival(pairs: Iterable[tuple[str, str]]) -> dict[str, Survival]:
    """Return the Survival of each kind that occurs in the sources; `pairs` are sources and their translations.

    A span counts as often as its source has it, and at most as often as its translation does. A number is there with
    its sign, currency, per cent, degrees, unit and brackets: "5%" is neither in "5" nor in "-5%", but "5" is in "(5)"
    and, with a space, in "5 %".
    """
    wanted, found = collections.Counter(), collections.Counter()
    for source, translation in pairs:
        spans = EVERY_KIND.spans(source)
        places = occurrences(spans, translation)
        for (kind, value), count in collections.Counter((span.kind, span.target) for span in spans).items():
            wanted[kind] += count
            found[kind] += min(count, len(places[value]))
    return {kind: Survival(wanted[kind], found[kind]) for kind in KINDS if wanted[kind]}
