"""Catalogues of gettext, .mo and .po: their messages, and the pairs of source and target that they give."""

import io
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError, first_line_of
from keras_transformer.text.formats.encodings import codec_of, declared_text, decoded
from keras_transformer.text.formats.po import (
    DECLARATION,
    FUZZY,
    HEAD,
    NOTATION,
    Entry,
    Plurals,
    blocks_of,
    plurals_of,
    text_of_form,
)

from .corpus import CorpusError, Pair

MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}  # the first bytes of .mo files: the order of all others
CONTEXT = "\x04"  # between context and msgid in a .mo file
CHARSET = re.compile(r"charset=([\w.:-]+)")
SPACES = re.compile(r"[ \t\r\n\f\v]+")
MARKS = "_&~"  # before the letter that is pressed with Alt: of GTK, of Windows and Qt, of LibreOffice
APPENDED = re.compile(r"(?<!\s)\s*+\([_&~][A-Za-z0-9]\)")  # such a letter behind a text of another script
OPENING = ("", *" (\"'„“«[")  # what stands before a mark that begins a word

Key = tuple[str, str]  # context, "" without one, and msgid


class Message(NamedTuple):
    """An entry: its msgid, its plural, "" if it has none, and its translations, one per plural form."""

    msgid: str
    plural: str
    forms: tuple[str, ...]


class Catalogue(NamedTuple):
    """The translated messages of a file. plurals: the numbers that each form is for; () without a rule."""

    name: str
    messages: Mapping[Key, Message]
    plurals: Plurals


def read_catalogue(content: bytes, name: str, counts: Counter) -> Catalogue:
    """The Catalogue in the bytes of a .mo or .po file, without untranslated, fuzzy and repeated entries.

    Adds to `counts` what was left out, by reason. Raises CorpusError, with the file, if it is damaged: of a .po file
    with the line.
    """
    try:
        header, entries = (read_po if name.endswith(".po") else read_mo)(content, name, counts)
    except InputError as error:
        raise CorpusError(str(error)) from None
    messages: dict[Key, Message] = {}
    for key, message in entries:
        if not all(form.strip() for form in message.forms) or not message.msgid.strip():
            counts["untranslated"] += 1
        elif key in messages:
            counts["repeated in a catalogue"] += 1
        else:
            messages[key] = message
    plurals: Plurals = ()
    if any(message.plural for message in messages.values()):
        try:
            plurals = plurals_of(header, name)
        except InputError:
            counts["catalogues without a rule of plurals"] += 1
    return Catalogue(name, messages, plurals)


Entries = Iterable[tuple[Key, Message]]


def read_mo(content: bytes, name: str, counts: Counter) -> tuple[str, Entries]:
    """The header and the entries of a .mo file. Raises CorpusError, or InputError for another charset."""
    order = MAGIC.get(content[:4])
    if not order:
        raise CorpusError(f"{name} is no catalogue: its first four bytes are not those of a .mo file.")
    try:
        number, originals, translations = struct.unpack_from(f"{order}3I", content, 8)
        strings = [
            (string_at(content, order, originals + 8 * place), string_at(content, order, translations + 8 * place))
            for place in range(number)
        ]
    except (struct.error, ValueError) as error:
        raise CorpusError(f"{name} is damaged: {first_line_of(error)} Install its package again.") from None
    header = next((target for source, target in strings if not source), b"").decode("ascii", "replace")
    charset = charset_of(header)
    texts = [(decoded(source, charset, name), decoded(target, charset, name)) for source, target in strings if source]
    return header, [entry_of(source, target) for source, target in texts]


def string_at(content: bytes, order: str, place: int) -> bytes:
    """The string whose length and offset stand at `place` of a .mo file. Raises ValueError if it is not all there."""
    length, start = struct.unpack_from(f"{order}2I", content, place)
    if start + length > len(content):
        raise ValueError(f"a string ends at byte {start + length:,} of {len(content):,}")
    return content[start : start + length]


def entry_of(source: str, target: str) -> tuple[Key, Message]:
    context, _, rest = source.rpartition(CONTEXT)
    msgid, _, plural = rest.partition("\0")
    return (context, msgid), Message(msgid, plural, tuple(target.split("\0")) if plural else (target,))


def charset_of(header: str) -> str:
    match = CHARSET.search(header)
    return match[1] if match and match[1] != "CHARSET" and codec_of(match[1]) != "ascii" else "utf-8"


def read_po(content: bytes, name: str, counts: Counter) -> tuple[str, Entries]:
    """The same of a .po file; fuzzy and obsolete entries are counted.

    Raises InputError, with the line, and CorpusError if it has no entry.
    """
    text = declared_text(io.BytesIO(content), name, DECLARATION, head=HEAD)
    counts["obsolete"] += len(re.findall(r"^#~ msgid ", text, re.MULTILINE))
    header, entries = "", []
    for entry in blocks_of(text, name):
        if not isinstance(entry, Entry):
            continue
        texts, forms = (list(map(NOTATION.text, side)) for side in (entry.texts, entry.strings))
        if entry.is_header:
            header = forms[0]
        elif FUZZY in entry.flags:
            counts["fuzzy"] += 1
        else:
            key = NOTATION.text(entry.context), texts[0]
            entries.append((key, Message(texts[0], texts[1] if texts[1:] else "", tuple(forms))))
    if not header and not entries:
        raise CorpusError(f'{name} is no catalogue of gettext: it has no entry, such as msgid "text" and msgstr "".')
    return header, entries


def pairs_of(target: Catalogue, source: Catalogue | None, counts: Counter) -> Iterator[Pair]:
    """The pairs of a catalogue, in its order. source: the same catalogue in another language; None: the msgids.

    Of a message with plural forms, each two forms for the same number are a pair. Counts what is changed or left out.
    """
    for key, message in target.messages.items():
        other = source.messages.get(key) if source else None
        if source and other is None:
            counts["untranslated in the source language"] += 1
            continue
        if message.plural:
            counts["messages with plural forms"] += 1
            texts = list(plural_pairs(message, target.plurals, other, source.plurals if source else ()))
            counts["messages with plural forms and no rule"] += not texts
        else:
            texts = [(other.forms[0] if other else message.msgid, message.forms[0])]
        counts["contexts taken away"] += bool(key[0])
        for sides in texts:
            pair = single_spaced(sides[0]), single_spaced(sides[1])
            bare = without_marks(*pair)
            counts["with keyboard marks taken away"] += bare != pair
            yield bare


def plural_pairs(message: Message, plurals: Plurals, other: Message | None, other_plurals: Plurals) -> Iterator[Pair]:
    """Each form of a message beside the msgid or the msgid_plural, or beside the forms of `other`, for its numbers."""
    for numbers, form in zip(plurals, message.forms, strict=False):
        if other is None:
            yield text_of_form((message.msgid, message.plural), numbers, len(plurals)), form
        else:
            for other_numbers, text in zip(other_plurals, other.forms, strict=False):
                if numbers & other_numbers:
                    yield text, form


def single_spaced(text: str) -> str:
    """A text on one line, without spaces at its ends and behind others. Those that do not break a line stay."""
    return SPACES.sub(" ", text).strip(" ")


def without_marks(source: str, target: str) -> Pair:
    """Both sides without the marks of keys: "_Save as" is "Save as", "Hori_zontal:" is "Horizontal:".

    A mark inside a word stays if both sides have the word: file_name, R&D.
    """
    words = [frozenset(side.split()) for side in (source, target)]
    return unmarked(source, words[1]), unmarked(target, words[0])


def unmarked(text: str, others: frozenset[str] | Sequence[str] = ()) -> str:
    """A text of single spaces without its mark of a key. others: the words of the other side."""
    text = APPENDED.sub("", text)
    for mark in MARKS:
        if text.count(mark) != 1:
            continue
        before, _, after = text.partition(mark)
        is_inside = before[-1:].isalnum()
        if not after[:1].isalnum() or (mark == "&" and re.match(r"\w+;", after)):
            continue  # "Save & close", "&amp;"
        word = before.rpartition(" ")[2] + mark + after.partition(" ")[0]
        if (is_inside and word in others) or not (is_inside or before[-1:] in OPENING):
            continue  # "file_name", "/_a", "%_s"
        text = before + after
    return text
