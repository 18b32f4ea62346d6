"""Phrases by their first word, so that a text is read once, however many they are."""

from collections.abc import Collection, Iterable, Iterator

from keras_transformer.text.words import TOKEN, is_apart


class PhraseIndex:
    """Phrases, each found in a text as whole words, or, if they are `parts`, anywhere: the longest at each place."""

    def __init__(self, phrases: Collection[str], parts: Collection[str] = ()):
        self.phrases, self.parts = set(phrases), set(parts)
        self._lengths = lengths_by_key(
            (first[0], len(phrase)) for phrase in self.phrases if (first := TOKEN.match(phrase))
        )
        self._lengths_of_parts = lengths_by_key((phrase[0], len(phrase)) for phrase in self.parts if phrase)

    def longest(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where phrases are in a text: start and end, from left to right. They may overlap."""
        for token in TOKEN.finditer(text):
            first, end = token.span()
            for start in range(first, end if self.parts else first + 1):
                lengths = self._lengths.get(token[0], ()) if start == first else ()
                if more := self._lengths_of_parts.get(text[start]):
                    lengths = sorted({*lengths, *more}, reverse=True)
                for length in lengths:
                    part = text[start : start + length]
                    if part in self.parts or (part in self.phrases and is_apart(text, start, start + len(part))):
                        yield start, start + len(part)
                        break


def lengths_by_key(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return the different lengths of each key, the longest first."""
    found: dict[str, set[int]] = {}
    for key, length in pairs:
        found.setdefault(key, set()).add(length)
    return {key: sorted(lengths, reverse=True) for key, lengths in found.items()}
