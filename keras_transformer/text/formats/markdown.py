"""Markdown: prose is translated where it stands; code, addresses, HTML blocks and front matter stay byte for byte.

The parser (markdown_parser.py) tells the lines of each block; a cursor finds each part of its text there, and what it
cannot find stays as it is and is counted.
"""

import bisect
import collections
import functools
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_transformer.ground.files import read_whole_lines
from keras_transformer.text.formats.entries import Entries
from keras_transformer.text.formats.markdown_parser import parsed, parser
from keras_transformer.text.formats.parts import Field, Notation, Part, located
from keras_transformer.text.passages import Inner, Passage, Token
from keras_transformer.text.spans import places_of_kind

log = logging.getLogger("keras_transformer")

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
FRONT_MATTER = re.compile(
    r"\ufeff?(---|\+\+\+)[ \t]*\r?\n(?=[ \t\r\n]*[\w\"'#-]+[^\r\n]*[:=])[\s\S]*?\n(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
BREAK = re.compile(r"[ \t]*\\?\n[ \t]*")
SIGNS = re.compile(r"[\\`*\[\]]|<(?=[A-Za-z/!?])|(?<!\w)_|_(?!\w)|~~|&(?=#?\w+;)|\A\s*>|\|")
STARTS = re.compile(  # of a list, heading or definition
    r"(?m)^([ \t>]*\d{0,9})((?:[-+*]|(?<=\d)[.)]|#{1,6}|(?<!\d):)(?=[ \t]|$)|(?:=+|-+)(?=[ \t]*$))"
)
PREFIX = re.compile(r"(?:\r\n?|\n)[ \t>]*")  # of a line, in lists and quotes
BLANK = re.compile(rf"({PREFIX.pattern})(?:{PREFIX.pattern})+")  # where a translation is shorter than the lines
CLOSING = re.compile(r"(?:^|(?<=[ \t]))(#+[ \t]*)$")  # of a heading
UNFOUND = "which the parser reads otherwise"
TEXTS = "text", "text_special", "softbreak"


def written(text: str) -> str:
    """Return a text with a backslash before each sign that would be markup."""
    return SIGNS.sub(lambda found: found[0].replace(found[0].lstrip(), "\\" + found[0].lstrip()), text)


def escaped(text: str) -> str:
    """Return a text whose lines begin no list, heading or definition."""
    return STARTS.sub(r"\1\\\2", text)


def written_in_line(text: str) -> str:
    return written(text).replace("\\|", "|")


IN_CELL = Notation(re.compile(r"\\\|"), lambda _: "|", written)
NOTATION = Notation(re.compile(r"\\[!-/:-@\[-`{-~]"), lambda escape: escape[1], written)


def markdown_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a file: a field for each paragraph, heading and cell of a table.

    A translation whose markup would be read otherwise is left out, and logged. Raises UserError if markdown-it-py is
    not installed.
    """
    text = "".join(read_whole_lines(stream, name))
    page = Page(text, name)
    reached = 0
    for start, end, parts in page.texts():
        yield text[reached:start]
        yield from parts
        reached = end
    yield text[reached:]
    page.entries.report()


class Piece(NamedTuple):
    """A part of an inline text: as the file has it, and its token; None between two texts."""

    raw: str
    token: Token | None


class Place(NamedTuple):
    """Where the content of a token stands: of each of its lines, its start in the content, and in the file."""

    starts: tuple[int, ...]
    in_file: tuple[int, ...]

    def of(self, place: int) -> int:
        line = bisect.bisect_right(self.starts, place) - 1
        return self.in_file[line] + place - self.starts[line]


class Page:
    """A file of Markdown."""

    def __init__(self, text: str, name: str):
        self.text, self.name, self.entries = text, name, Entries(name)
        self.lines = LINE.findall(text)
        self.starts = list(itertools.accumulate(map(len, self.lines), initial=0))
        self.env: dict[str, Any] = {}
        front = FRONT_MATTER.match(text)
        hidden = len(LINE.findall(front[0])) if front else 0
        self.tokens = parsed("\n" * hidden + text[front.end() if front else 0 :].removeprefix("\ufeff"), self.env)
        self._cell = 0, 0  # the line of the last cell of a table, and where it ended

    def texts(self) -> Iterator[tuple[int, int, Iterable[Part]]]:
        """Yield where each text begins and ends, and its parts."""
        before: Any = None
        for token in self.tokens:
            if token.type == "inline" and token.content:
                is_cell = before.type in ("th_open", "td_open")
                place = self.place_of(token, is_cell)
                pieces = tokens_of(token, place, self.text) if place else None
                if place is None or pieces is None:
                    self.entries.is_left("", UNFOUND)
                    log.warning("%s, line %s stays as it is: %r", self.name, token.map[0] + 1, token.content[:60])
                elif not self.entries.is_left(text_of(pieces)):
                    start, end = place.of(0), place.of(len(token.content))
                    yield start, end, list(self.parts(pieces, token, is_cell, is_cell or before.markup[:1] == "#"))
            before = token

    def parts(self, pieces: list[Piece], token: Any, is_cell: bool, is_line: bool) -> Iterator[Part]:
        """Yield the parts of a text. is_line: whether it is a line of a heading, or a cell, which has no blocks."""
        where = f"{self.name}, line {token.map[0] + 1:,}"
        for is_text, group in itertools.groupby(pieces, lambda piece: piece.token is not None):
            found = list(group)
            original = "".join(piece.raw for piece in found)
            if not is_text:
                yield original
                continue
            passage = Passage([piece.token for piece in found if piece.token], written if is_cell else written_in_line)
            laid_out = functools.partial(self.checked, passage.raw, original, where, is_line)
            yield from located([Field(passage, laid_out)], where)

    def checked(self, source: str, original: str, where: str, is_line: bool, translation: str) -> str:
        """Return a translation, or what the file has if its markup would be read otherwise.

        source: what the file has, with the names of the links in it.
        """
        if translation == source:
            return original
        text = CLOSING.sub(r"\\\1", translation) if is_line else escaped(translation)
        text = BLANK.sub(r"\1", text)
        text = text if "``" in source else text.replace("``", "` `")  # two pieces of code would be one
        if self.markup(original, is_line) == self.markup(text, is_line):
            return text
        log.warning(
            "%s stays as it is: the markup of %r would be read otherwise than that of %r", where, text, original
        )
        return original

    def markup(self, raw: str, is_line: bool) -> tuple[list[tuple[str, str]], collections.Counter[tuple[str, ...]]]:
        """Return which blocks a text is, and what it has inside of them beside words, each with how often."""
        env = {"references": collections.ChainMap({}, self.env["references"])}
        read = parser().parseInline if is_line else parser().parse
        tokens = read(escaped(PREFIX.sub("\n", raw)), env)
        children = itertools.chain.from_iterable(token.children or () for token in tokens)
        inside = [
            (
                each.type,
                str(each.attrs.get("href", each.attrs.get("src"))),
                "" if each.type == "image" else each.content,
            )
            for each in children
        ]
        blocks = [(token.type, "" if token.type == "inline" else token.content) for token in tokens]
        return blocks, collections.Counter(kind for kind in inside if kind[0] not in TEXTS)

    def place_of(self, token: Any, is_cell: bool) -> Place | None:
        """Return where the content of a token stands; None if it is not found as it is."""
        starts, in_file, reached = list[int](), list[int](), 0
        for number, row in enumerate(token.content.split("\n"), start=token.map[0]):
            if number >= len(self.lines):
                return None
            body = self.lines[number].rstrip("\r\n")
            column = self.column_of_cell(row.replace("|", "\\|"), body, number) if is_cell else column_of(row, body)
            if column is None:
                return None
            behind_bars = [found.end() for found in re.finditer(r"\|", row)] if is_cell else []  # \| in the file
            for count, start in enumerate([0, *behind_bars]):
                starts.append(reached + start)
                in_file.append(self.starts[number] + column + start + count)
            reached += len(row) + 1
        return Place(tuple(starts), tuple(in_file))

    def column_of_cell(self, row: str, body: str, number: int) -> int | None:
        """Return where a cell begins in a line."""
        start = self._cell[1] if self._cell[0] == number else 0
        column = body.find(row, start)
        if column < 0 or not re.search(r"(?:^|\|)[\s>]*$", body[start:column]):
            return None
        end = body.find("|", column + len(row))
        self._cell = number, len(body) if end < 0 else end
        return column


def column_of(row: str, body: str) -> int | None:
    """Return where a row of content begins in a line, whose spaces may be those that a tab stands for."""
    column = body.rfind(row.lstrip())
    return None if column < 0 else column + len(row.lstrip()) - len(row)


def text_of(pieces: Sequence[Piece]) -> str:
    tokens = [piece.token for piece in pieces if piece.token]
    inner = [inner.passage.text for token in tokens for inner in token.inner]
    return " ".join(["".join(token.text for token in tokens), *inner])


def tokens_of(token: Any, place: Place, file: str) -> list[Piece] | None:
    """Return the pieces of an inline text. None if one is not found where it should be."""
    content, at, open_links = token.content, 0, list[int]()
    pieces: list[Piece] = []
    depth, children = 0, iter(token.children)
    for child in children:
        end = end_of(child, content, at)
        if end is None:
            return None
        raw = file[place.of(at) : place.of(end)]
        depth += child.nesting
        if child.type == "text":
            pieces += [Piece(each.raw, each) for each in text_tokens(raw)]
        elif child.type == "text_special":
            pieces.append(Piece(raw, Token(raw, child.content)))
        elif child.type == "hardbreak" and not depth:
            pieces.append(Piece(raw, None))
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append(Piece(raw, Token(raw, " ", True)))
        elif child.type == "image":
            pieces.append(Piece(raw, picture(child, raw)))
        elif child.markup == "autolink":
            pieces.append(Piece(raw, Token(raw, "", True)))
            next(children), next(children)
            depth -= 1
        elif child.type == "link_open":
            open_links.append(end)
            pieces.append(Piece(raw, Token(raw, "", True)))
        elif child.type == "link_close":
            pieces.append(Piece(raw, Token(with_name(raw, content[open_links.pop() : at]), "", True)))
        else:
            pieces.append(Piece(raw, Token(raw, "", True)))
        at = end
    return None if content[at:].strip() else pieces


def picture(child: Any, raw: str) -> Token:
    """Return the mark of a picture, inside of which its alternative text is translated."""
    label = child.content
    if not raw.startswith(f"![{label}]") or any(each.type not in TEXTS[:2] for each in child.children or ()):
        return Token(raw, "", True)
    raw = raw[: 2 + len(label)] + with_name(raw[2 + len(label) :], label)
    inner = (Inner(2, 2 + len(label), NOTATION.passage(label)),) if any(map(str.isalpha, label)) else ()
    return Token(raw, "", True, inner)


def with_name(closing: str, label: str) -> str:
    """Return how a link ends, with the name of its address, which its text was so far: [text] is [text][text]."""
    return f"][{' '.join(label.split())}]" if closing in ("]", "][]") else closing


def end_of(child: Any, content: str, at: int) -> int | None:
    """Return where a part of an inline text ends in its content; None if it does not stand there."""
    raw = child.content
    if child.type in ("softbreak", "hardbreak"):
        found = BREAK.match(content, at)
        return found.end() if found else None
    if child.type == "code_inline":
        found = re.compile(rf"{child.markup}(?!`)[\s\S]*?(?<!`){child.markup}(?!`)").match(content, at)
        return found.end() if found else None
    if "end" in child.meta:
        return child.meta["end"]
    if child.type == "link_open":
        raw = content[at : content.find(">", at) + 1] if child.markup == "autolink" else "["
    elif child.type == "text_special" or child.nesting:
        raw = child.markup
    return at + len(raw) if content.startswith(raw, at) else None


def text_tokens(raw: str) -> Iterator[Token]:
    """Yield the tokens of a text, in which addresses are marks."""
    places = [place for kind in ("urls", "emails") for place in places_of_kind(kind, raw)]
    reached = 0
    for start, end in sorted(places):
        if start >= reached:
            yield from IN_CELL.tokens(raw[reached:start])
            yield Token(raw[start:end], "", True)
            reached = end
    yield from IN_CELL.tokens(raw[reached:])
