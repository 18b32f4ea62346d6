"""Catalogues of gettext (PO): entries without a translation get one, marked as fuzzy; all else stays byte for byte.

The format: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html. translate-toolkit, which the tests read
these files with, would write each entry anew.
"""

import collections
import gettext
import io
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.text.formats.encodings import declared_text
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.key_marks import marked, place_of_mark
from keras_transformer.text.formats.parts import Field, Notation, Part, located, report
from keras_transformer.text.syntaxes import PLACEHOLDER, SYNTAXES

log = logging.getLogger("keras_transformer")

DECLARATION = re.compile(rb"(Content-Type:[^\n\\]*?charset=)([\w.:-]+)", re.IGNORECASE)
HEAD = 1 << 16  # bytes in which the header stands, behind comments about the licence
QUOTED = re.compile(
    r"[ \t\f\v]*+(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d{1,3})\])?)[ \t\f\v]*+)?"
    r"\"((?:[^\"\\]|\\.)*+)\"[ \t\f\v]*+"
)
ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
MEANINGS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
WRITTEN = {"\\": "\\\\", '"': '\\"'} | {meaning: f"\\{sign}" for sign, meaning in MEANINGS.items()}
LINE = re.compile(r"(?:[^\\]|\\[^n])*+(?:\\n)?")  # of an escaped text, its end included
WIDTH = 79  # columns of a line, unless the file has longer ones
PLURAL = re.compile(r"^Plural-Forms:\s*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;\n]+)", re.MULTILINE)
MARKER = re.compile(r"^X-Accelerator-Marker:\s*(\S)", re.MULTILINE)
NUMBERS = range(200)  # for which a rule of plurals is tried
FUZZY, TRANSLATED = "fuzzy", "translated"
FORMATS = {  # what a flag says about a text: the first words of the names of its syntaxes
    "c-format objc-format python-format perl-format php-format awk-format sh-format lua-format": "printf",
    "python-brace-format csharp-format java-format perl-brace-format rust-format": "Python format|ICU",
    "qt-format kde-format qt-plural-format": "Qt",
}


def meaning_of(escape: str) -> str:
    """Return the character that an escape such as \\n, \\x41 or \\101 means."""
    sign = escape[1:]
    if sign[0] in "01234567":
        return chr(int(sign, 8))
    return chr(int(sign[1:], 16)) if sign[0] == "x" and sign[1:] else MEANINGS.get(sign, sign)


NOTATION = Notation(ESCAPE, meaning_of, lambda text: "".join(WRITTEN.get(character, character) for character in text))


class Entry(NamedTuple):
    """An entry of a catalogue.

    lines: as they are written, comments included; line: the number of its first line with a text. texts: its msgid and
    msgid_plural, escaped; strings: its translations. begin: how many lines are comments; end: and those before the
    first translation.
    """

    lines: list[str]
    line: int
    context: str
    texts: list[str]
    strings: list[str]
    begin: int
    end: int

    @property
    def flags(self) -> set[str]:
        """Those of translators (#,) and those that come with the program's text (#=, sticky ones)."""
        lines = (line[2:].split(",") for line in self.comments if line.startswith(("#,", "#=")))
        return {flag.strip() for flag in itertools.chain.from_iterable(lines)}

    @property
    def comments(self) -> list[str]:
        return self.lines[: self.begin]

    @property
    def is_header(self) -> bool:
        return not self.context and self.texts[0] == ""

    @property
    def state(self) -> str:
        return FUZZY if FUZZY in self.flags and any(self.strings) else TRANSLATED if any(self.strings) else ""

    @property
    def head(self) -> str:
        """What stands before its translations, which are fuzzy."""
        comments = list(self.comments)
        if FUZZY not in self.flags:
            ending = self.lines[self.begin][len(self.lines[self.begin].rstrip("\r\n")) :]
            places = [place for place, line in enumerate(comments) if line.startswith("#,")]
            if places:
                comments[places[0]] = comments[places[0]].replace("#,", f"#, {FUZZY},", 1)
            else:
                previous = (place for place, line in enumerate(comments) if line.startswith("#|"))
                comments.insert(next(previous, len(comments)), f"#, {FUZZY}{ending}")
        return "".join([*comments, *self.lines[self.begin : self.end]])


Plurals = Sequence[set[int]]  # the numbers of things that each form of a language is for


def po_parts(
    stream: Iterable[bytes], name: str, fields: Sequence[str], states: Sequence[str] = (), everything: bool = False
) -> Iterator[Part]:
    """Yield the parts of a catalogue: a field for each translation that an entry lacks.

    states: "fuzzy" or "translated", of entries that are translated anew; everything: both. What was left, and why, is
    logged at the end. Raises InputError, with the line, for what is no catalogue; UserError for another state.
    """
    if unknown := [state for state in states if state not in (FUZZY, TRANSLATED)]:
        raise UserError(f"--state {unknown[0]} is no state of entries of PO: give {FUZZY} or {TRANSLATED}.")
    text = declared_text(stream, name, DECLARATION, head=HEAD)
    blocks = list(blocks_of(text, name))
    check_entries([block for block in blocks if isinstance(block, Entry)], name)
    header = next((block for block in blocks if isinstance(block, Entry) and block.is_header), None)
    head = NOTATION.text(header.strings[0]) if header else ""
    is_folded = all(len(line) <= WIDTH + 2 or line.startswith("#") for line in lines_of(text))
    width = WIDTH if is_folded else len(text)
    marker, count = MARKER.search(head), 0
    left = collections.Counter[str]()

    def stays(entry: Entry) -> bool:
        return entry.is_header or bool(entry.state and not everything and entry.state not in states)

    lines = (block.line for block in blocks if isinstance(block, Entry) and len(block.texts) > 1 and not stays(block))
    first = next(lines, None)
    plurals = plurals_of(head, f"{name}, line {first:,}") if first else ()
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif stays(block):
            yield "".join(block.lines)
            left[block.state] += not block.is_header
        else:
            where = f"{name}, line {block.line:,}"
            yield from located(fields_of(block, plurals, marker and marker[1], width, where), where)
            count += 1
    report(name, ("entry", "entries"), count, left)


def lines_of(text: str) -> Iterable[str]:
    """Return the lines of a text, each with its end, which is a line feed: no other sign ends a line here."""
    return io.StringIO(text, newline="\n")


def blocks_of(text: str, name: str) -> Iterator[str | Entry]:
    """Yield the entries of a catalogue, and what stands between them. Raises InputError, with the line."""
    lines: list[str] = []
    values: list[tuple[str, list[str]]] = []  # each keyword of the entry that is read, and its texts, escaped
    begin = end = first = 0
    for number, line in enumerate(lines_of(text), start=1):
        found, content = QUOTED.fullmatch(line.rstrip("\r\n")), line.strip("\ufeff \t\f\v\r\n")
        is_done = bool(values) and values[-1][0].startswith("msgstr")
        if found and found[1] in ("msgctxt", "msgid") and (is_done or not values):
            if is_done:
                yield entry_of(lines, values, begin, end, first, name)
                lines, values = [], []
            begin, first = len(lines), number
        elif not found and content and not content.startswith("#"):
            raise InputError(f'{name}, line {number:,} is {content[:40]!r}, not such as msgid "text" or # a comment.')
        elif not found and is_done:
            yield entry_of(lines, values, begin, end, first, name)
            lines, values = [], []
        if found and found[1]:
            if found[1].startswith("msgstr") and not is_done:
                end = len(lines)
            values.append((found[1], [found[3]]))
        elif found:
            if not values:
                raise InputError(f"{name}, line {number:,} is a text behind no msgid: {content[:40]!r}.")
            values[-1][1].append(found[3])
        lines.append(line)
        if not values and (not content or content.startswith("#~")):
            yield "".join(lines)
            lines = []
    if values:
        yield entry_of(lines, values, begin, end, first, name)
    else:
        yield "".join(lines)


def entry_of(
    lines: list[str], values: Sequence[tuple[str, list[str]]], begin: int, end: int, first: int, name: str
) -> Entry:
    """Return an Entry. Raises InputError if it lacks a msgid or a msgstr, or has something twice."""
    keywords = [keyword for keyword, _ in values]
    texts = ["".join(content) for keyword, content in values if keyword in ("msgid", "msgid_plural")]
    strings = ["".join(content) for keyword, content in values if keyword.startswith("msgstr")]
    kinds = ["msgid", "msgid_plural"][: len(texts)]
    numbers = [f"msgstr[{number}]" for number in range(len(strings))] if len(texts) > 1 else ["msgstr"]
    if not strings or keywords not in ([*kinds, *numbers], ["msgctxt", *kinds, *numbers]):
        raise InputError(
            f"{name}, line {first:,} has an entry of {', '.join(keywords)}: an entry is msgid and msgstr, or msgid, "
            "msgid_plural, msgstr[0] and so on, and may begin with msgctxt."
        )
    context = "".join(values[0][1]) if keywords[0] == "msgctxt" else ""
    return Entry(lines, first, context, texts, strings, begin, end)


def check_entries(entries: Sequence[Entry], name: str) -> None:
    """Raises InputError if there are none, or for two of the same text and context."""
    if not entries:
        raise InputError(f'{name} is no catalogue of gettext: it has no entry, such as msgid "text" and msgstr "".')
    seen: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = entry.context, entry.texts[0]
        if key in seen:
            raise InputError(
                f"{name}, line {entry.line:,} has the entry of line {seen[key]:,} again, {entry.texts[0][:40]!r}: "
                "msguniq makes one of them."
            )
        seen[key] = entry.line


def plurals_of(head: str, where: str) -> Plurals:
    """Return the rule of a header. Raises InputError if it has none, or one that cannot be read."""
    found = PLURAL.search(head)
    if not found:
        raise InputError(
            f"{where} has forms for several numbers, and the header of the file tells no rule for them: add "
            "Plural-Forms, as msginit does."
        )
    count, rule = int(found[1]), found[2].strip()
    try:
        forms = list(map(gettext.c2py(rule), NUMBERS))
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{where} needs the rule of plurals of the header, {rule!r}, which is none: {error}."
        ) from None
    if max(forms) >= count:
        raise InputError(f"{where} has {count} forms by the header, whose rule {rule!r} gives form {max(forms)}.")
    return [{number for number in NUMBERS if forms[number] == form} for form in range(count)]


def text_of_form(texts: Sequence[str], numbers: set[int], count: int) -> str:
    """Return which of msgid and msgid_plural is translated for a form of these numbers: msgid if it is of one thing."""
    one, many = texts
    is_one = numbers == {1} or (1 in numbers and count > 1 and has_filled_in(one, many))
    return one if is_one else many


def fields_of(entry: Entry, plurals: Plurals, marker: str | None, width: int, where: str) -> Iterator[Part]:
    """Yield the fields of an entry whose translations are new; the last one is laid out as the whole entry.

    A translation that lacks what a program fills in is left out and logged: its form keeps the translation that it had,
    and an entry without any new translation stays as it is.
    """
    ending = "\r\n" if entry.lines[-1].endswith("\r\n") else "\n"
    texts, keywords, syntax = entry.texts, ["msgstr"], syntax_of(entry.flags)
    if len(texts) > 1:
        texts = [text_of_form(texts, numbers, len(plurals)) for numbers in plurals]
        keywords = [f"msgstr[{form}]" for form in range(len(plurals))]
    translations: list[str] = []  # of the forms before, "" for one that is left out

    def written(translation: str) -> str:
        translations.append(translation)
        if len(translations) < len(texts):
            return ""
        if not any(translations):
            return "".join(entry.lines)
        forms = zip(keywords, translations, [*entry.strings, *[""] * len(texts)], strict=False)
        return entry.head + "".join(folded(keyword, new or before, width, ending) for keyword, new, before in forms)

    for text in texts:
        yield field_of(text, marker, syntax, where, written)


def field_of(
    text: str, marker: str | None, syntax: re.Pattern[str] | None, where: str, written: Callable[[str], str]
) -> Field:
    """Return the field of an escaped text. written: of its translation, "" for one that is left out."""
    place = place_of_mark(text, marker)
    plain = text if place is None else text[:place] + text[place + 1 :]

    def laid_out(translation: str) -> str:
        if syntax and not has_filled_in(plain, translation, syntax):
            log.warning("%s stays as it was: %r has not what a program fills in, as %r has", where, translation, plain)
            return written("")
        return written(translation if place is None else marked(translation, text[place : place + 2]))

    return Field(NOTATION.passage(plain), laid_out)


def syntax_of(flags: set[str]) -> re.Pattern[str] | None:
    """Return what the flags of an entry say that its text has: placeholders of some syntax; None: nothing."""
    kinds = {flag for flag in flags if flag.endswith("-format") and not flag.startswith(("no-", "possible-"))}
    if not kinds:
        return None
    begins = [begin for names, begin in FORMATS.items() if kinds & set(names.split())]
    known = [pattern for name, pattern in SYNTAXES.items() if any(re.match(begin, name) for begin in begins)]
    return re.compile("|".join(known)) if known else PLACEHOLDER


def folded(keyword: str, text: str, width: int, ending: str) -> str:
    """Return a keyword and an escaped text in lines of at most so many columns, broken behind spaces."""
    lines = [line for line in LINE.findall(text) if line] or [""]
    if len(lines) == 1 and len(keyword) + len(text) + 3 <= width:
        return f'{keyword} "{text}"{ending}'
    rows = [f'{keyword} ""']
    for line in lines:
        row = ""
        for word in re.findall(r"[^ ]*+ *+", line):
            if row and len(row) + len(word.rstrip(" ")) + 2 > width:
                rows.append(f'"{row}"')
                row = ""
            row += word
        rows.append(f'"{row}"')
    return "".join(f"{row}{ending}" for row in rows)
