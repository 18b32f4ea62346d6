"""DOCX: the paragraphs of a document of Word, its tables, headers, footers, notes and text boxes.

What is written for a part of the file is not yet the file: it is the archive as it was, and each text behind it, which
`packed` puts into its place. So a document may be translated in pieces, and is whole or not there.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.docx_archive import Archive
from keras_transformer.text.formats.docx_runs import DocumentXml
from keras_transformer.text.formats.parts import Field, Part
from keras_transformer.text.formats.xml_events import XmlText

log = logging.getLogger("keras_transformer")

MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml."
MACROS = "application/vnd.ms-word."
TRANSLATED = (  # by the type that the archive tells of a member
    *(f"{MAIN}{kind}+xml" for kind in ("document.main", "header", "footer", "footnotes", "endnotes")),
    f"{MAIN}template.main+xml",
    f"{MACROS}document.macroEnabled.main+xml",
    f"{MACROS}template.macroEnabledTemplate.main+xml",
)
MOST_REPEATED = 64 << 20  # characters of properties of runs
END = "\0"  # behind a text: XML cannot have it


def docx_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the archive, and a field for each stretch of text between tabs, pages and fields of a paragraph.

    Raises InputError if it is damaged, encrypted or no document, or if it is larger unpacked than it may be.
    """
    content = b"".join(stream)
    archive = Archive(content, name)
    archive.check()
    documents = documents_of(archive)
    yield f"{len(content)}\n{content.decode('utf-8', 'surrogateescape')}"
    for member, document in documents.items():
        if document.fields:
            log.warning("%s: a field that begins has no end, so that the text behind it stays as it is", document.name)
        for text in document.divided:
            log.warning(
                "%s: a paragraph stays as it is, since a field divides a link or a tracked change: %.60s",
                document.name,
                text,
            )
        for number, stretch in enumerate(document.stretches, start=1):
            passage = stretch.passage()
            passage.where = f"{name}, {member}, text {number:,}"
            yield Field(passage)
            yield END


def packed(written: bytes) -> bytes:
    """Return the document of what was written for its parts."""
    length, _, rest = written.partition(b"\n")
    content, texts = rest[: int(length)], rest[int(length) :].decode().split(END)[:-1]
    archive = Archive(content, "The document")
    changed, reached = {}, 0
    for member, document in documents_of(archive).items():
        count = len(document.stretches)
        if (new := document.with_texts(texts[reached : reached + count])) is not None:
            changed[member] = new
        reached += count
    return archive.with_members(changed)


def documents_of(archive: Archive) -> dict[str, DocumentXml]:
    """Return the members with text, by name. Raises InputError if there is none."""
    members = [member for member, kind in archive.types().items() if kind in TRANSLATED]
    if not members:
        raise InputError(f"{archive.name} is an archive, but no document of Word.")
    documents: dict[str, DocumentXml] = {}
    room = MOST_REPEATED
    for member in members:
        name = f"{archive.name}, {member}"
        xml = XmlText.read([archive.read(member)], name, takes_declarations=False)
        documents[member] = document = DocumentXml(xml, name, room)
        room -= document.repeated
    return documents
