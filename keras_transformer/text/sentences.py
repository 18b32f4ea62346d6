"""Where the sentences of a text begin and end. All between is structure: spaces, line breaks, empty lines, bullets."""

import bisect
import itertools
import re
from collections.abc import Iterator

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.files import BYTE_ORDER_MARK
from keras_transformer.pieces.languages import short_code
from keras_transformer.text.messages import without_messages
from keras_transformer.text.spans import PATTERNS, PLACEHOLDERS, TAGS

Span = tuple[int, int]  # start and end in a text

WIDE_SPACE = re.compile(r"[^\S -\x7f](?=\.)")  # of several bytes: sentencex 1.0.32 panics at one behind a capital
LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
BULLET = re.compile(r"[ \t]*(?:[-*+>#|\u2022\u2023\u25e6\u2013\u2014]+[ \t]+)*")
# Of Khmer, but in its "etc.", and of Tibetan, which sentencex does not know, and white space behind them
END = re.compile("(?:(?<!\u17d4\u179b)[\u17d4\u17d5](?!\u179b\u17d4)|[\u0f0d-\u0f12\u0f14])++[\\s\u0f0d-\u0f12]*+")
WHOLE = ("urls", "emails", PLACEHOLDERS, TAGS)  # kinds of spans inside which no sentence ends
NARROWEST = 40  # characters: a paragraph whose lines are all shorter is not wrapped text, but a list, verse or address


def require_sentencex() -> None:
    """Raises UserError if the package that finds sentences is not installed."""
    try:
        import sentencex  # noqa: F401
    except ImportError:
        raise UserError(
            "Paragraphs need the package sentencex, which is not installed: pip install 'keras-transformer-mt[text]'."
        ) from None


def sentences_of(text: str, language: str) -> list[Span]:
    """Return where each sentence of a text begins and ends, without the white space around it.

    A sentence ends where sentencex ends it in this language, a code such as "de" or "deu_Latn", and at each line break
    but that of a wrapped line, but never inside a span of WHOLE, or inside an ICU message with branches. What has no
    letter, such as `1.`, is no sentence.
    """
    from sentencex import segment

    text = without_messages(text)
    spans, code = [], short_code(language)  # sentencex takes another code for English
    for start, end in unwrapped(text):
        run = text[start:end]
        joined = WIDE_SPACE.sub(" ", LINE_END.sub(lambda found: " " * len(found[0]), run))  # as long as the run
        reached = start
        parts = itertools.chain.from_iterable(map(ended, segment(code, joined)))
        for length in undivided(joined, list(map(len, parts))):
            spans.append(trimmed(text, reached, reached + length))
            reached += length
        if reached != end:  # sentencex keeps every character, but is a stranger
            spans = [span for span in spans if span[0] < start] + [trimmed(text, start, end)]
    return [span for span in spans if any(map(str.isalpha, text[slice(*span)]))]


def ended(text: str) -> Iterator[str]:
    """Yield a text in parts, each of which but the last has an END."""
    start = 0
    for found in END.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def undivided(text: str, lengths: list[int]) -> Iterator[int]:
    """Yield the lengths of the parts of a text, two as one if a span of WHOLE would be divided between them."""
    ends = list(itertools.accumulate(lengths))
    inside: set[int] = set()
    for match in itertools.chain.from_iterable(PATTERNS[kind].finditer(text) for kind in WHOLE):
        inside.update(ends[bisect.bisect_right(ends, match.start()) : bisect.bisect_left(ends, match.end())])
    start = 0
    for end in ends:
        if end not in inside or not text[end - 1].isascii():  # a URL may touch a stop of Chinese and what follows
            yield end - start
            start = end


def trimmed(text: str, start: int, end: int) -> Span:
    """Return text[start:end] without white space and byte order marks at its ends."""
    while start < end and (text[start].isspace() or text[start] == BYTE_ORDER_MARK):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def unwrapped(text: str) -> Iterator[Span]:
    """Yield the lines of a text without their bullets. Lines that one line was wrapped into come as one."""
    for paragraph in paragraphs_of(text):
        width = max(len(text[slice(*line)].rstrip()) for line in paragraph)
        start = None
        for line, following in itertools.zip_longest(paragraph, paragraph[1:]):
            start = after_bullet(text, line) if start is None else start
            if following is None or not is_wrapped(text[slice(*line)], text[slice(*following)], width):
                yield start, line[1]
                start = None


def paragraphs_of(text: str) -> Iterator[list[Span]]:
    """Yield the lines of each paragraph, without their line breaks; empty lines part paragraphs."""
    paragraph, start = [], 0
    for end, next_start in [*(found.span() for found in LINE_END.finditer(text)), (len(text), len(text))]:
        if text[start:end].strip():
            paragraph.append((start, end))
        elif paragraph:
            yield paragraph
            paragraph = []
        start = next_start
    if paragraph:
        yield paragraph


def after_bullet(text: str, line: Span) -> int:
    return line[1] - len(without_bullet(text[line[0] : line[1]]))


def without_bullet(line: str) -> str:
    return BULLET.sub("", line, count=1)


def is_wrapped(line: str, following: str, width: int) -> bool:
    """Return whether a line of a paragraph goes on in the next one: its first word did not fit within the width."""
    if width < NARROWEST or len(without_bullet(following)) < len(following.lstrip()):
        return False
    return len(line.rstrip()) + 1 + len(following.split(maxsplit=1)[0]) > width
