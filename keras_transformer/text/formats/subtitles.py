"""Subtitles: SubRip (SRT) and WebVTT (https://www.w3.org/TR/webvtt1/).

Only the texts of cues change. pysubs2, which the tests read these files with, would write every cue, number and time
anew, and leave out notes, styles and settings.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import BYTE_ORDER_MARK, read_whole_lines
from keras_transformer.text.formats.html import HTML
from keras_transformer.text.formats.parts import PLAIN, Field, Notation, Part, located
from keras_transformer.text.passages import Passage, Token

LONGEST_LINE = 42  # characters of a line, unless the cue has longer ones: what is usual on a screen
CLOCK = r"(?:(\d{1,9}):)?([0-5]?\d):([0-5]?\d)[,.](\d{1,3})"
LOOSE_CLOCK = r"(?:(\d{1,9}):)?([0-5]?\d):([0-5]?\d)(?:[,.](\d{1,3}))?(?![\d:,.])"  # as players read it in SRT
SPEAKER = re.compile(r"\s*[-\u2013\u2014]\s*(?=\S)")  # a line of somebody else
VOICE = re.compile(r"\s*<v[ \t.]")  # of WebVTT
LINE_END = re.compile(r"\r\n?|\n")
LINE_BREAK = re.compile(
    rf"(?<![ \t])[ \t]*+(?:{LINE_END.pattern}|<[bB][rR][ \t]*/?>|(?<!:)\\N)[ \t]*"
)  # <br>: of HTML; \N: of SubStation Alpha
BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)\b")  # of WebVTT, that is no cue
WORD = re.compile(r"(?:<[^<>]*>|\{[^{}]*\}|\S)+")


class Dialect(NamedTuple):
    """times: of a cue; tags: what is no text in it; notation: how its text is written; example: of a line of times."""

    times: re.Pattern[str]
    tags: re.Pattern[str]
    notation: Notation
    example: str


SRT = Dialect(
    re.compile(rf"\ufeff?\s*{LOOSE_CLOCK}\s*-->\s*{LOOSE_CLOCK}(?:\s.*)?"),
    re.compile(r"</?(?:[biusBIUS]|font\b[^<>]*|FONT\b[^<>]*)>|\{(?:[\\/][^{}]*|[biusBIUS])\}"),
    PLAIN,
    "00:00:01,000 --> 00:00:02,500",
)
VTT = Dialect(
    re.compile(rf"\s*{CLOCK}\s*-->\s*{CLOCK}(?:\s.*)?"),
    re.compile(r"<[^<>]*>"),
    HTML,
    "00:01.000 --> 00:02.500",
)


def srt_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an SRT file. Raises InputError, with the number of the line, for times that are broken."""
    return cue_parts(lines_of_any_end(read_whole_lines(stream, name)), name, SRT)


def vtt_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a WebVTT file. Raises InputError, with the line, for times that are broken, or no WEBVTT."""
    lines = lines_of_any_end(read_whole_lines(stream, name))
    first = next(lines, "")
    if not re.match(r"\ufeff?WEBVTT(?:\s|$)", first):
        raise InputError(f"{name}, line 1 is {first.strip()[:40]!r}; a WebVTT file begins with WEBVTT.")
    yield first
    yield from cue_parts(lines, name, VTT, first_line=2, in_block=True)


def lines_of_any_end(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, each with its end, which may be CR alone."""
    for line in lines:
        yield from re.split(r"(?<=\r)(?!\n|\Z)", line)


def cue_parts(
    lines: Iterator[str], name: str, dialect: Dialect, first_line: int = 1, in_block: bool = False
) -> Iterator[Part]:
    """Yield the parts of the blocks of a file. in_block: whether the first lines belong to a block that is no cue.

    Raises InputError for an SRT file that has text and no cue, after all its parts.
    """
    label, cue, is_cue = "", [], False  # the line before the times of this block, and the lines after them
    begin = first_line  # the line of the first text of the cue
    stray, has_cues, count = "", False, 0  # the first line outside of a cue, whether there is one, and how many
    for number, line in enumerate(lines, first_line):
        where = f"{name}, line {number:,}"
        is_numbered = dialect is SRT and is_number(label) and (not has_cues or (line.strip() and is_next(label, count)))
        if is_cue and dialect.times.fullmatch(line.rstrip("\r\n")):  # no empty line parts two cues
            label = cue.pop() if cue and is_number(cue[-1]) else ""
            yield from located(fields_of("".join(cue), dialect), f"{name}, line {begin:,}")
            yield label
            cue, is_cue = [], False
        if is_cue and line.strip():
            cue.append(line)
            continue
        if line.strip() and not label:
            in_block = in_block or (dialect is VTT and BLOCK.match(line) is not None)
        if not in_block and not is_cue and "-->" in line:
            check_times(line, where, dialect)
            begin = number + 1
            is_cue = has_cues = True
            count += 1
        elif not in_block and not is_cue and is_numbered:
            raise InputError(
                f"{where} is {line.strip()[:40]!r}, not the times of cue {label.strip()}, such as {dialect.example}."
            )
        elif dialect is SRT and has_cues and line.strip() and not is_number(line):  # a cue with an empty line
            cue, is_cue, begin = [line], True, number
            continue
        elif line.strip():
            label = line
            stray = stray or line.strip().strip(BYTE_ORDER_MARK)
        else:
            yield from located(fields_of("".join(cue), dialect), f"{name}, line {begin:,}")
            label, cue, is_cue, in_block = "", [], False, False
        yield line
    yield from located(fields_of("".join(cue), dialect), f"{name}, line {begin:,}")
    if dialect is SRT and stray and not has_cues:
        raise InputError(f"{name} has no cue: after its first line, {stray[:40]!r}, none is such as {dialect.example}.")


def is_number(line: str) -> bool:
    """Return whether a line is the number of a cue."""
    return line.strip(BYTE_ORDER_MARK + " \t\r\n").isdecimal()


def is_next(label: str, count: int) -> bool:
    """Return whether a line is the number of the cue behind this one."""
    return label.strip(BYTE_ORDER_MARK + " \t\r\n") == str(count + 1)


def check_times(line: str, where: str, dialect: Dialect) -> None:
    """Raises InputError for a line that is not two times, the second of which is not before the first."""
    found = dialect.times.fullmatch(line.rstrip("\r\n"))
    if not found:
        raise InputError(f"{where} has broken times: {line.strip()[:60]!r}; they are such as {dialect.example}.")
    start, end = (
        [int(part or 0) for part in clock[:3]] + [int((clock[3] or "").ljust(3, "0"))]
        for clock in (found.groups()[:4], found.groups()[4:])
    )
    if end < start:
        raise InputError(f"{where} has a cue that ends before it begins: {line.strip()[:60]!r}.")


def fields_of(cue: str, dialect: Dialect) -> Iterator[Part]:
    """Yield the parts of a cue's lines: a field for each speaker, who begins a line with a dash or <v Name>."""
    speech = ""
    for line in cue.splitlines(keepends=True):
        if dialect is VTT and VOICE.match(line):
            yield from field_of(speech, dialect)
            speech = line
        elif dash := SPEAKER.match(line):
            yield from field_of(speech, dialect)
            yield dash[0]
            speech = line[dash.end() :]
        else:
            speech += line
    yield from field_of(speech, dialect)


def field_of(speech: str, dialect: Dialect) -> Iterator[Part]:
    """Yield lines of one speaker as a field, whose line breaks and tags are marks."""
    if not speech:
        return
    tokens, reached = [], 0
    content = speech.rstrip()
    pattern = re.compile(f"{LINE_BREAK.pattern}|{dialect.tags.pattern}")
    for found in pattern.finditer(content):
        tokens += dialect.notation.tokens(content[reached : found.start()])
        tokens.append(Token(found[0], " " if LINE_BREAK.fullmatch(found[0]) else "", True))
        reached = found.end()
    tokens += dialect.notation.tokens(content[reached:])
    most = max(LONGEST_LINE, *map(shown_length, LINE_BREAK.split(content)))
    first_break = LINE_BREAK.search(content) or LINE_END.search(speech)
    line_break = first_break[0].strip(" \t") if first_break else "\n"
    yield Field(Passage(tokens, dialect.notation.written), lambda text: laid_out(text, most, line_break))
    yield speech[len(content) :]


def laid_out(text: str, most: int, line_break: str) -> str:
    """Return lines, or as few of equal length as hold the text if one of them has more than `most` characters."""
    if all(shown_length(line) <= most for line in LINE_BREAK.split(text)):
        return text
    words, count = WORD.findall(LINE_BREAK.sub(" ", text)), 1
    while True:
        count += 1
        lines = balanced(words, count)
        if max(map(shown_length, lines)) <= most or count >= len(words):
            return line_break.join(lines)


def balanced(words: Sequence[str], count: int) -> list[str]:
    """Return words in `count` lines, each as long as its share of what is left."""
    lines, left = [], list(words)
    for remaining in range(count, 0, -1):
        share, line = shown_length(" ".join(left)) / remaining, []
        while left and (not line or shown_length(" ".join([*line, left[0]])) <= share + len(left[0]) / 2):
            line.append(left.pop(0))
        lines.append(" ".join(line))
    return [line for line in lines if line]


def shown_length(line: str) -> int:
    """Return how many characters of a line are shown: without tags, and `&amp;` is one."""
    return len(re.sub(r"&#?\w+;", "&", re.sub(r"<[^<>]*>|\{[^{}]*\}", "", line)).strip())
