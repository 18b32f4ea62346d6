"""The archive that a document of Office is: its members, read within bounds, and written anew."""

import contextlib
import copy
import io
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping

from keras_transformer.ground.errors import InputError, message_of
from keras_transformer.text.formats.xml_events import XmlText

TYPES = "[Content_Types].xml"
OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins files of older programs, and those with a password
MOST_TEXT = 64 << 20  # bytes of all members that are read
MOST_BYTES = 1 << 30  # of all members, unpacked
MOST_MEMBERS = 10_000
FEWEST_TAGS, TAGS_PER_BYTE = 100_000, 1.25  # that all members that are read may have: of the archive, packed
MOST_TAGS = 2_000_000  # in any archive: an empty element takes a KiB of memory or more
AS_TAGS = b"<", b"&", b"\n", b"\r"  # what is counted: a parser tells of each reference and line break too
COMPRESSIONS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED  # those of Office


class Archive:
    """A document as an archive in memory. Raises InputError if it is none, is encrypted, or too large unpacked."""

    def __init__(self, content: bytes, name: str):
        self.content, self.name, self._read, self._tags = content, name, 0, 0
        if content.startswith(OLE):
            raise InputError(f"{name} has a password, or is of an older program: save it as .docx without a password.")
        with self._damage():
            infos = zipfile.ZipFile(io.BytesIO(content)).infolist()
        self.members = {info.filename: info for info in infos}
        size = sum(info.file_size for info in infos)
        if len(infos) > MOST_MEMBERS or size > MOST_BYTES:
            raise InputError(
                f"{name} has {len(infos):,} members of {size:,} bytes; a document may have {MOST_MEMBERS:,} members of "
                f"{MOST_BYTES:,} bytes."
            )
        if sum(info.compress_size for info in infos) > len(content):
            raise InputError(f"{name} is damaged: its members are larger than it is. Save it again.")
        if len(self.members) < len(infos):
            raise InputError(f"{name} is damaged: it has a member twice. Save it again with the program it is of.")
        if any(info.flag_bits & 1 for info in infos):
            raise InputError(f"{name} has a password: save it without.")
        if others := [info.filename for info in infos if info.compress_type not in COMPRESSIONS]:
            raise InputError(f"{name} has {others[0]!r:.60} in another compression than Deflate: save it again.")
        if TYPES not in self.members:
            raise InputError(f"{name} is an archive, but no document: it has no {TYPES}.")

    @contextlib.contextmanager
    def _damage(self) -> Iterator[None]:
        """Within, errors of a damaged archive are InputError."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
            reason = message_of(error).strip(".") or "it ends too early"
            raise InputError(f"{self.name} is damaged, or no document: {reason}.") from None

    def check(self) -> None:
        """Raises InputError if a member is damaged, also one that is not read."""
        with self._damage(), zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            if member := archive.testzip():
                raise zipfile.BadZipFile(f"{member!r:.60} is not what its sum says")

    def read(self, member: str) -> bytes:
        """Return a member. Raises InputError if it is damaged, or all that are read are larger than they may be."""
        size = self.members[member].file_size
        self._read += size
        if self._read > MOST_TEXT:
            raise InputError(f"{self.name} has more than {MOST_TEXT:,} bytes of text: divide it.")
        with self._damage(), zipfile.ZipFile(io.BytesIO(self.content)) as archive, archive.open(member) as stream:
            read = stream.read(size + 1)
        self._tags += sum(map(read.count, AS_TAGS))
        if self._tags > min(MOST_TAGS, max(FEWEST_TAGS, TAGS_PER_BYTE * len(self.content))):
            raise InputError(
                f"{self.name} has {self._tags:,} tags, references and line breaks in {len(self.content):,} bytes: "
                "divide it."
            )
        return read

    def types(self) -> dict[str, str]:
        """Return the type of each member that the archive tells, by its name or else by its ending."""
        xml = XmlText.read([self.read(TYPES)], f"{self.name}, {TYPES}", takes_declarations=False)
        told = [(event.name, event.attributes) for event in xml.events if event.kind == "start"]
        by_ending, by_name = (
            {of.get(key, "").lstrip("/").lower(): of.get("ContentType", "") for name, of in told if name == element}
            for element, key in (("Default", "Extension"), ("Override", "PartName"))
        )
        return {
            member: by_name.get(member.lower(), by_ending.get(member.rpartition(".")[2].lower(), ""))
            for member in self.members
            if member != TYPES
        }

    def with_members(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with other members; all else is as it was, in its order."""
        if not changed:
            return self.content
        written = io.BytesIO()
        with self._damage(), zipfile.ZipFile(io.BytesIO(self.content)) as old, zipfile.ZipFile(written, "w") as new:
            new.comment = old.comment
            for info in old.infolist():
                if info.filename in changed:
                    new.writestr(copy.copy(info), changed[info.filename])
                else:
                    with old.open(info) as source, new.open(copy.copy(info), "w") as target:
                        shutil.copyfileobj(source, target)
        return written.getvalue()
