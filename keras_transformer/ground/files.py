"""Reading lines of text, replacing files atomically, stderr into a file: the same for every file of this project."""

import codecs
import contextlib
import errno
import functools
import gzip
import hashlib
import os
import pathlib
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from keras_transformer.ground.errors import InputError

BYTE_ORDER_MARK = "\ufeff"
LONGEST_LINE = 1 << 26  # bytes, its end included; memory would not hold a line that has no end, as that of /dev/zero
DEVICES, PROCESSES = pathlib.Path("/dev"), pathlib.Path("/proc")  # whose entries no file replaces
GZIP = b"\x1f\x8b"  # the first bytes of every gzip file
OFFICE = re.compile(rb"PK\x03\x04.{26}(?:mimetype|\[Content_Types\]|_rels/|docProps/|word/|META-INF/)", re.DOTALL)
DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
DAMAGED_ARCHIVE = (  # what zipfile, and NumPy above it, raise for a .zip or .npz file that was changed
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    RuntimeError,  # encrypted; NotImplementedError: packed in another way, or by a later version
)
MARKED = {  # encodings that begin with a mark; that of UTF-32 begins with one of UTF-16
    "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
COMPRESSED = {b"\xfd7zXZ\x00": "unxz", b"BZh91AY&SY": "bunzip2", b"\x28\xb5\x2f\xfd": "unzstd", b"PK\x03\x04": "funzip"}


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object] | bytes | str) -> None:
    """Replace the file at `path` in one step, so that a reader finds the old content or the new one, never a part.

    `write` is the content (a str is written as UTF-8), or a function that writes it to a binary file. The content is
    flushed to the disk beside `path` under the name `path.part`, which is then renamed. On failure nothing stays. What
    lies at `path.part` is removed first, so a link there is not followed. A link at `path` is replaced: for a file that
    a user names, give `behind_links(path)`. The new file has the permissions of the old one. Raises what the file
    system raises, as OSError with the name of the file, and OSError for a path that is not a file's.
    """
    path = pathlib.Path(path)
    check_replaceable(path)
    part = path.with_name(path.name + ".part")
    permissions = permissions_of(path)

    def create(name: str, flags: int) -> int:
        return os.open(name, flags, 0o666 if permissions is None else permissions)

    part.unlink(missing_ok=True)  # a leftover, or a link that somebody planted
    try:
        with open(part, "xb", opener=create) as file:
            if permissions is not None:  # whatever the umask is
                os.chmod(file.fileno() if os.chmod in os.supports_fd else part, permissions)
            if callable(write):
                write(file)
            else:
                file.write(write.encode("utf-8") if isinstance(write, str) else write)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):  # a full disk names no file
            error.filename = str(path)
        raise


def check_replaceable(path: pathlib.Path) -> None:
    """Raises OSError if there is something at `path` that is no file: root could replace /dev/null by one.

    /dev/stdout and /proc/self/fd/1 count so too, even if they lead to a file: their link would be replaced.
    """
    if path.is_dir():  # so is ".", which has no name
        raise IsADirectoryError(errno.EISDIR, "This is a folder: name a file", str(path))
    place = pathlib.Path(os.path.realpath(path.parent))
    if (path.exists() and not path.is_file()) or place == DEVICES or place.is_relative_to(PROCESSES):
        raise OSError(errno.EINVAL, "This is a device or a pipe, and would be replaced: name a file", str(path))


def behind_links(path: pathlib.Path) -> pathlib.Path:
    """Return the file that a symbolic link leads to, through others, whether it exists or not; else `path` itself.

    A user who names a link as an output expects that file to be replaced. Raises OSError for links in a circle, and as
    `check_replaceable` does.
    """
    if not path.is_symlink():
        return path
    check_replaceable(path)
    target = pathlib.Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def resolved(path: str | os.PathLike) -> pathlib.Path:
    """Return the absolute path behind all links. `Path.resolve` raises RuntimeError for links in a circle."""
    return pathlib.Path(os.path.realpath(path))


def permissions_of(path: pathlib.Path) -> int | None:
    """Return the permissions of a file; None if there is no file at `path`, or a link."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return stat.S_IMODE(mode) if stat.S_ISREG(mode) else None


def sha256_of(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(folder: pathlib.Path, pattern: str = "*") -> list[pathlib.Path]:
    """Return the files in a folder and the folders inside it, by name."""
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def sha256_of_folder(folder: pathlib.Path) -> str:
    """Return one SHA-256 of all files of a folder and their names."""
    names = [f"{path.relative_to(folder)} {sha256_of(path)}" for path in files_in(folder)]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def read_lines(stream: Iterable[bytes], name: str | os.PathLike) -> Iterator[str]:
    r"""Yield the lines of a binary stream of UTF-8, each without its "\n" or "\r\n".

    Nothing else ends a line: U+2028 or a form feed inside a sentence stays inside it. A byte order mark at the very
    beginning is skipped. Raises InputError, with `name` and the number of the line, for bytes that are not UTF-8, and
    for a text whose lines all end in "\r" alone.
    """
    for number, line in enumerate(with_line_feeds(read_whole_lines(stream, name), name), start=1):
        text = line.removesuffix("\n").removesuffix("\r")
        yield text if number > 1 else text.removeprefix(BYTE_ORDER_MARK)


def on_one_line(text: str) -> str:
    """Replace each line break inside a text by a space."""
    return re.sub(r"[\r\n]+", " ", text)


def with_line_feeds(lines: Iterable[str], name: str | os.PathLike) -> Iterator[str]:
    r"""Yield whole lines. Raises InputError for a text whose lines all end in "\r" alone."""
    for number, line in enumerate(lines, start=1):
        if number == 1 and not line.endswith("\n") and (ends := line.rstrip("\r").count("\r")):
            raise InputError(
                f"{name} has {ends + 1:,} lines that end in CR alone, as on old Macs: convert it first, for "
                r"example with `tr '\r' '\n'`."
            )
        yield line


def read_whole_lines(stream: Iterable[bytes], name: str | os.PathLike) -> Iterator[str]:
    r"""Yield the lines of a binary stream of UTF-8 with their ends, and the first one with its byte order mark.

    "\n" alone ends a line. Raises InputError, with `name` and the number of the line, for bytes that are not UTF-8, for
    a first line that is UTF-16 without a mark, and for a line that is longer than LONGEST_LINE.
    """
    for number, line in enumerate(_naming(bounded_lines(stream), name), start=1):
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{name}, line {number:,} is longer than {LONGEST_LINE >> 20} MiB, as no line of text is: give "
                "a file of text, with line breaks."
            )
        if number == 1 and (encoding := _unmarked_utf_16(line)):
            raise InputError(
                f"{name}, line 1 is not UTF-8: every second byte is 0. It is {encoding}: convert it first, for example "
                f"with `iconv -f {encoding} -t UTF-8`."
            )
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            marked = len(codecs.BOM_UTF8) if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
            raise InputError(
                f"{name}, line {number:,} is not UTF-8: its byte {error.start - marked + 1} is "
                f"0x{line[error.start]:02x}. {_remedy(line, number)}"
            ) from None


def bounded_lines(stream: Iterable[bytes]) -> Iterable[bytes]:
    """Return the lines of a stream, of which no more than LONGEST_LINE and a byte are read of a longer one."""
    readline = getattr(stream, "readline", None)
    return stream if readline is None else iter(functools.partial(readline, LONGEST_LINE + 1), b"")


def _naming(stream: Iterable[bytes], name: str | os.PathLike) -> Iterator[bytes]:
    """Yield from `stream`. An error of the system in between gets the name of the file, which it lacks."""
    try:
        yield from stream
    except OSError as error:
        if error.filename is None and error.errno is not None:  # others say themselves what is wrong
            error.filename = os.fspath(name)
        raise


def unpacked_lines(path: str | os.PathLike) -> Iterator[str]:
    """Yield the lines of a file as `read_lines` does, gzip-compressed or not. Raises OSError or InputError."""
    with open(path, "rb") as file:
        is_gzip = file.peek(len(GZIP))[: len(GZIP)] == GZIP
        yield from undamaged(read_lines(gzip.GzipFile(fileobj=file) if is_gzip else file, path), path, is_gzip)


def undamaged(lines: Iterable[str], path: str | os.PathLike, is_gzip: bool) -> Iterator[str]:
    """Yield the lines of a file. Raises InputError, with the line before it, for damage to a file of gzip.

    Damaged text is often no UTF-8 before its checksum is reached: then the rest is read before its encoding is blamed.
    """
    number = 0
    try:
        for line in lines:
            yield line
            number += 1
    except (*DAMAGED_GZIP, InputError) as error:
        if not is_gzip or (isinstance(error, InputError) and not is_damaged_gzip(path)):
            raise
        cause = "what follows is no text" if isinstance(error, InputError) else f"{error}".rstrip(".")
        raise InputError(
            f"{path} cannot be decompressed after line {number:,}: {cause}. It is damaged, or not a gzip file: copy it "
            "again."
        ) from None


def is_damaged_gzip(path: str | os.PathLike) -> bool:
    """Return whether a file cannot be decompressed to its end."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except DAMAGED_GZIP:
        return True
    return False


def packer_of(beginning: bytes) -> str | None:
    """Return the program that unpacks a file that begins so; None if it is of no known form, or gzip's."""
    return next((program for start, program in COMPRESSED.items() if beginning.startswith(start)), None)


def _unmarked_utf_16(line: bytes) -> str | None:
    """Return the encoding of a first line that would be UTF-8 with a NUL at every second place, else None."""
    odd, even = line.removesuffix(b"\n")[1::2], line.removesuffix(b"\n")[::2]
    for encoding, high, low in (("UTF-16LE", odd, even), ("UTF-16BE", even, odd)):
        if min(len(high), len(low)) > 1 and not any(high) and all(low):
            return encoding
    return None


def _remedy(line: bytes, number: int) -> str:
    """Return what to do about a line that is not UTF-8."""
    if number == 1 and OFFICE.match(line):
        return "It is a document of an office program, or an e-book: save it as text or HTML first."
    if number == 1 and (program := packer_of(line)):
        return f"It is compressed: unpack it first, for example with `{program} < FILE`."
    if number == 1 and line.startswith(GZIP):
        return "It is compressed with gzip: unpack it first, for example with `gunzip -c`."
    for encoding, marks in MARKED.items():
        if number == 1 and line.startswith(marks):
            return f"It is {encoding}: convert it first, for example with `iconv -f {encoding} -t UTF-8`."
    if b"\0" in line:
        return "It has bytes that are 0, as no text has: give a file of text."
    return "Convert it first, for example with `iconv -f WINDOWS-1252 -t UTF-8`."


@contextlib.contextmanager
def stderr_into(file: BinaryIO) -> Iterator[None]:
    """Within, what is written to stderr, by native libraries too, goes into a file. Without a stderr nothing does.

    A process has one stderr: threads must not do this at once.
    """
    try:
        stderr = os.dup(2)
    except OSError:  # a service manager closed it
        yield
        return
    _flush_stderr()
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        _flush_stderr()
        os.dup2(stderr, 2)
        os.close(stderr)


def _flush_stderr() -> None:
    if sys.stderr is not None:  # as after a start without one
        sys.stderr.flush()


def lines_of(path: pathlib.Path) -> list[str]:
    """Return the lines of a file in UTF-8. Raises OSError or InputError if it cannot be read."""
    with path.open("rb") as stream:
        return list(read_lines(stream, path))
