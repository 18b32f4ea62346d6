"""Catalogues of gettext, .mo and .po: their messages, and the pairs of source and target that they give."""

import gettext
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from keras_transformer.ground.errors import first_line_of

from .corpus import CorpusError, Pair

MAGIC = {0x950412DE: "<", 0xDE120495: ">"}  # of .mo files, read as little-endian: the order of their bytes
CONTEXT = "\x04"  # between context and msgid in a .mo file
MOST_COUNTED = 200  # numbers that are tried to learn which plural forms belong together
NUMBERED = re.compile(r"nplurals\s*=\s*\d+\s*;\s*plural\s*=\s*([^;\n]+)")
CHARSET = re.compile(r"charset=([\w.:-]+)")
MARKS = "_&~"  # before the letter that is pressed with Alt: of GTK, of Windows and Qt, of LibreOffice
APPENDED = re.compile(r"\s*\([_&~][A-Za-z0-9]\)")  # such a letter after a text of another script

Key = tuple[str | None, str]  # context and msgid


class Message(NamedTuple):
    """An entry: msgid and its plural, "" if it has none, and the translations, one per plural form."""

    msgid: str
    plural: str
    forms: tuple[str, ...]


class Catalogue(NamedTuple):
    """The translated messages of a file. form_of: the number of the plural form for a count."""

    name: str
    messages: Mapping[Key, Message]
    form_of: Callable[[int], int]


def read_catalogue(content: bytes, name: str, counts: Counter) -> Catalogue:
    """The Catalogue in the bytes of a .mo or .po file, without untranslated, fuzzy and repeated entries.

    Adds to `counts` what was left out, by reason. Raises CorpusError, with the file and the line or byte, if it is
    damaged.
    """
    read = read_po if name.endswith(".po") else read_mo
    header, entries = read(content, name, counts)
    messages: dict[Key, Message] = {}
    for context, message in entries:
        if not all(form.strip() for form in message.forms) or not message.msgid.strip():
            counts["untranslated"] += 1
        elif (context, message.msgid) in messages:
            counts["repeated in a catalogue"] += 1
        else:
            messages[context, message.msgid] = message
    return Catalogue(name, messages, form_of(header, name, counts))


def read_mo(content: bytes, name: str, counts: Counter) -> tuple[str, list[tuple[str | None, Message]]]:
    """The header and the entries of a .mo file: context, or None, and Message. Raises CorpusError if it is damaged."""
    try:
        order = MAGIC[struct.unpack_from("<I", content)[0]]
        number, originals, translations = struct.unpack_from(f"{order}3I", content, 8)
        strings = []
        for place in range(number):
            pair = []
            for table in (originals, translations):
                length, start = struct.unpack_from(f"{order}2I", content, table + 8 * place)
                if start + length > len(content):
                    raise ValueError(f"string {place + 1:,} of {number:,} ends behind the end of the file")
                pair.append(content[start : start + length])
            strings.append(pair)
        header = next((target for source, target in strings if not source), b"").decode("ascii", "replace")
        charset = charset_of(header)
        texts = [(source.decode(charset), target.decode(charset)) for source, target in strings if source]
    except KeyError:
        raise CorpusError(f"{name} is no catalogue: its first four bytes are not those of a .mo file.") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{name} is damaged, or not in its charset {error.encoding}: {error.reason}.") from None
    except LookupError:
        raise CorpusError(f"{name} has the charset {charset}, which Python does not know.") from None
    except (struct.error, ValueError) as error:
        raise CorpusError(f"{name} is damaged: {first_line_of(error)}") from None
    return header, [entry_of(source, target) for source, target in texts]


def entry_of(source: str, target: str) -> tuple[str | None, Message]:
    context, mark, rest = source.rpartition(CONTEXT)
    msgid, _, plural = rest.partition("\0")
    return context if mark else None, Message(msgid, plural, tuple(target.split("\0")))


def charset_of(header: str) -> str:
    match = CHARSET.search(header)
    return match[1] if match and match[1] != "CHARSET" else "utf-8"


def read_po(content: bytes, name: str, counts: Counter) -> tuple[str, list[tuple[str | None, Message]]]:
    """The same of a .po file; fuzzy and obsolete entries are counted and left out."""
    import polib

    charset = charset_of(content[: 1 << 14].decode("ascii", "replace"))
    try:
        catalogue = polib.pofile(content.decode(charset))
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise CorpusError(f"{name}, line {number:,} is not in the charset of the file, {charset}.") from None
    except LookupError:
        raise CorpusError(f"{name} has the charset {charset}, which Python does not know.") from None
    except OSError as error:
        found = re.search(r"\(line (\d+)\)", str(error))
        line = f", line {int(found[1]):,}" if found else ""
        raise CorpusError(f"{name}{line} is no entry of a catalogue.") from None
    entries = []
    for entry in catalogue:
        if entry.obsolete or entry.fuzzy:
            counts["obsolete" if entry.obsolete else "fuzzy"] += 1
            continue
        forms = tuple(entry.msgstr_plural[each] for each in sorted(entry.msgstr_plural)) or (entry.msgstr,)
        entries.append((entry.msgctxt, Message(entry.msgid, entry.msgid_plural or "", forms)))
    header = "".join(f"{key}: {value}\n" for key, value in catalogue.metadata.items())
    return header, entries


def form_of(header: str, name: str, counts: Counter) -> Callable[[int], int]:
    """The plural rule of a header; that of English without one. One that does not parse is counted."""
    match = NUMBERED.search(header)
    if not match:
        return lambda count: int(count != 1)
    try:
        return gettext.c2py(match[1].strip())
    except (ValueError, RecursionError, OverflowError):
        counts["plural rules that do not parse"] += 1
        return lambda count: -1


def pairs_of(target: Catalogue, source: Catalogue | None, counts: Counter) -> Iterator[Pair]:
    """The pairs of a catalogue, in its order. source: the same catalogue in another language; None: the msgids.

    Of a message with plural forms, each two forms that belong to the same number are a pair. Counts what was changed
    and left out.
    """
    for key, message in target.messages.items():
        other = source.messages.get(key) if source else None
        if source and other is None:
            counts["without the source language"] += 1
            continue
        if not message.plural:
            texts = [(other.forms[0] if other else message.msgid, message.forms[0])]
        else:
            counts["messages with plural forms"] += 1
            texts = list(plural_pairs(message, target, other, source))
            if not texts:
                counts["plural forms without a rule"] += 1
        counts["contexts taken away"] += key[0] is not None
        for text in texts:
            yield without_marks(*text, counts)


def plural_pairs(
    message: Message, target: Catalogue, other: Message | None, source: Catalogue | None
) -> Iterator[Pair]:
    """Each two forms that some number has, once."""
    seen = set()
    for count in range(MOST_COUNTED):
        number = target.form_of(count)
        if other and source:
            source_number = source.form_of(count)
            if not 0 <= source_number < len(other.forms):
                continue
            text = other.forms[source_number]
        else:
            text = message.msgid if count == 1 else message.plural
        if 0 <= number < len(message.forms) and (pair := (text, message.forms[number])) not in seen:
            seen.add(pair)
            yield pair


def without_marks(source: str, target: str, counts: Counter) -> Pair:
    """Both texts on one line, single-spaced, without the marks of keys: "_Save as" is "Save as".

    A mark inside a word stays if both sides have the word: file_name, R&D.
    """
    sides = " ".join(source.split()), " ".join(target.split())
    words = [frozenset(side.split()) for side in sides]
    bare = unmarked(sides[0], words[1]), unmarked(sides[1], words[0])
    counts["with keyboard marks taken away"] += bare != sides
    return bare


def unmarked(text: str, others: frozenset[str]) -> str:
    """A text without its mark of a key. others: the words of the other side."""
    text = APPENDED.sub("", text)
    for mark in MARKS:
        if text.count(mark) != 1:
            continue
        before, _, after = text.partition(mark)
        word = before.rpartition(" ")[2] + mark + after.partition(" ")[0]
        if not after[:1].isalnum() or (mark == "&" and re.match(r"#?\w+;", after)):
            continue  # "~ 5", "Save & close", "&amp;"
        inside = before[-1:].isalnum()
        if (inside and word in others) or not (inside or before[-1:] in ("", " ", "(", '"', "'", "„", "«")):
            continue  # a name such as file_name; "/_a", "%_s"
        text = before + after
    return text
