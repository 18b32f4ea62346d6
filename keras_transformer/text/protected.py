"""A line with protected spans: what a model reads of it, and its translation with every span."""

import bisect
import dataclasses
import functools
from collections.abc import Sequence

from keras_transformer.pieces.normalization import has_letter, is_blank
from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.text.apart import set_apart
from keras_transformer.text.placeholders import SYMBOL, symbol_of
from keras_transformer.text.placing import Alignment, is_through, placed, text_of
from keras_transformer.text.source import Source, replaced
from keras_transformer.text.spans import MARK, PLACEHOLDERS, TAGS, TERM, Protection, Span, without_overlaps
from keras_transformer.text.tags import Stripped, Tag, tree_of, with_tags, without_tags
from keras_transformer.text.words import LETTER


@dataclasses.dataclass(frozen=True)
class ProtectedLine:
    """A line with its spans. `source` is what a model translates: the line without its tags."""

    line: str
    spans: tuple[Span, ...]
    source: Source
    tags: tuple[Span, ...]
    tree: tuple[Tag, ...]
    symbols: tuple[str, ...] = ()  # what placeholder n + 1 of the source stands for
    keeps_letterless: bool = True
    has_divided: bool = False  # whether a tag stands inside of a term

    @classmethod
    def of(
        cls,
        line: str,
        protection: Protection,
        placeholders: int = 0,
        hides_terms: bool = False,
        keeps_letterless: bool = True,
    ) -> "ProtectedLine":
        """Return a line with its spans, the first of which become the `placeholders` that a model knows.

        hides_terms: whether terms become placeholders too. keeps_letterless: whether a line without a letter outside of
        spans is not translated; else one without letter and digit is not, if it has spans.
        """
        spans = protection.spans(line)
        if placeholders:  # a text may have signs like ours
            ours = [Span(*found.span(), PLACEHOLDERS, found[0]) for found in SYMBOL.finditer(line)]
            spans = list(without_overlaps([*spans, *ours]))
        tags = tuple(span for span in spans if span.kind == TAGS)
        stripped = without_tags(line, tags)
        others = [moved(span, tags, stripped) for span in spans if span.kind != TAGS]
        divided = divided_terms(protection, stripped) if tags else []
        source = Source(stripped.text, tuple(without_overlaps([*divided, *others]) if divided else others))
        tree = tree_of(tags, stripped)
        symbols: tuple[str, ...] = ()
        if placeholders:
            source, symbols, tree = with_placeholders(source, tree, placeholders, hides_terms)
        return cls(line, tuple(spans), source, tags, tree, symbols, keeps_letterless, bool(divided))

    @property
    def has_spans(self) -> bool:
        return bool(self.spans)

    @functools.cached_property
    def is_searched(self) -> bool:
        """Whether there is something to translate: the tags inside of a term go with its words."""
        if self.has_divided:
            return True
        if self.keeps_letterless:
            return has_letter(self.source.outside) or is_blank(self.line)
        return not self.spans or LETTER.search(self.source.outside) is not None

    @property
    def searched(self) -> str:
        """What is searched for: the source; "" if nothing in it is to be translated."""
        return self.source.text if self.is_searched else ""

    def untranslated(self) -> str:
        """Return a line in which nothing is to be translated, with its spans."""
        return replaced(self.line, self.spans, lambda span: span.target)

    def needs_alignment(self, translation: str) -> bool:
        return self.has_spans and self.is_searched and (bool(self.tags) or not is_through(self.source, translation))

    def through(
        self, translation: str, alignment: Alignment | None, required: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Return a translation of `searched` as one of the line, and the spans that have no place in it.

        alignment: None for a translation that needs none. required: as for `restored`.
        """
        if not self.is_searched:
            return self.untranslated(), ()
        if not self.spans:
            return translation, ()
        if alignment is None:
            return set_apart(self.with_targets(translation), self.spans), ()
        text, unplaced = self.restored(translation, alignment, required)
        return set_apart(text, self.spans), unplaced

    def restored(
        self, translation: str, alignment: Alignment, required: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Return a translation with every span, and the spans that have no place in it.

        `alignment` may be empty: then spans that the model did not copy have no place, and tags only at both ends.
        `required`: phrases that no span replaces.
        """
        units, unplaced = placed(self.source, translation, alignment, required)
        text = with_tags(self.source, self.tree, units) if self.tags else text_of(units)
        if not alignment:
            text = MARK.sub("", text)  # the file that has the marks places them as well as it can
        return self.with_targets(text), tuple(self.with_targets(span.target) for span in unplaced)

    def with_targets(self, text: str) -> str:
        """Return a text with what its placeholders stand for.

        A space parts one from a word, or from another one, that the model wrote without, unless the source has none.
        """
        parts, reached, last = [], 0, ""
        for found in SYMBOL.finditer(text) if self.symbols else ():
            number = int(found[1])
            target = self.symbols[number - 1] if number <= len(self.symbols) else found[0]
            before, after = self._neighbours.get(found[0], ("", ""))
            between, reached = text[reached : found.start()], found.end()
            space = joint(target[-1:], text[reached : reached + 1], after)
            parts += [between, joint(between[-1:] or last, target[:1], before), target, space]
            last = space or target[-1:]
        return "".join([*parts, text[reached:]])

    @functools.cached_property
    def _neighbours(self) -> dict[str, tuple[str, str]]:
        """The characters before and after each placeholder in the source."""
        text, found = self.source.text, {}
        for symbol in SYMBOL.finditer(text):
            start, end = symbol.span()
            found.setdefault(symbol[0], (text[max(start - 1, 0) : start], text[end : end + 1]))
        return found


def joint(left: str, right: str, in_source: str) -> str:
    """Return a space if two characters would make one word of two, and the source has none at this place."""
    is_word = LETTER.match(left) and LETTER.match(right) and not UNSPACED_CHARACTER.search(left + right)
    return "" if not is_word or LETTER.match(in_source) or in_source in ("\u27e6", "\u27e7") else " "


def moved(span: Span, tags: Sequence[Span], stripped: Stripped) -> Span:
    """Return a span at its place in the text without tags."""
    last = bisect.bisect_right(tags, span.start, key=lambda tag: tag.end) - 1  # of the tags before it
    shift = 0 if last < 0 else stripped.places[last] + stripped.divides[last] - tags[last].end
    return span._replace(start=span.start + shift, end=span.end + shift)


def divided_terms(protection: Protection, stripped: Stripped) -> list[Span]:
    """Return the terms of a text without tags that had a tag inside: New <b>York</b>."""
    found = []
    for span in protection.terms(stripped.text):
        tag = bisect.bisect_right(stripped.places, span.start)
        if tag < len(stripped.places) and stripped.places[tag] < span.end:
            found.append(span)
    return found


def with_placeholders(
    source: Source, tree: tuple[Tag, ...], placeholders: int, hides_terms: bool
) -> tuple[Source, tuple[str, ...], tuple[Tag, ...]]:
    """Return a source with placeholders for its first spans, what these stand for, and the tags at their new places.

    Terms stay unless `hides_terms`: a placeholder in place of a noun costs a model its gender and case.
    """
    symbols, spans, edits, parts = [], [], [(0, 0)], []  # edits: where each span ends, and how places behind it move
    shift = reached = 0
    for span in source.spans:
        text, target, kind = source.text[span.start : span.end], span.target, span.kind
        if len(symbols) < placeholders and (hides_terms or kind != TERM):
            symbols.append(span.target)
            text, target, kind = symbol_of(len(symbols)), symbol_of(len(symbols)), PLACEHOLDERS
        parts += [source.text[reached : span.start], text]
        start, reached = span.start + shift, span.end
        spans.append(Span(start, start + len(text), kind, target))
        edits.append((span.end, shift := shift + len(text) - (span.end - span.start)))

    def place(old: int) -> int:
        number = bisect.bisect_right(edits, old, key=lambda edit: edit[0]) - 1
        behind = [span.end for span in source.spans[number : number + 1] if span.start < old]  # a tag inside of it
        return max(old, *behind, 0) + edits[number + bool(behind)][1]

    def moved_tag(tag: Tag) -> Tag:
        inside = tuple(moved_tag(each) for each in tag.inside)
        return tag._replace(start=place(tag.start), end=place(tag.end), inside=inside)

    text = "".join([*parts, source.text[reached:]])
    return Source(text, tuple(spans)), tuple(symbols), tuple(moved_tag(tag) for tag in tree)
