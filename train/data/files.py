"""Text files: their lines, two line-aligned files as pairs, the first two columns of one file as pairs."""

import gzip
import io
import os
import pathlib
from collections.abc import Iterator

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.files import packer_of, read_lines, resolved, undamaged
from keras_transformer.pieces.normalization import is_blank

from .corpus import CorpusError, Pair

MULTI30K = pathlib.Path("data/multi30k")  # `make multi30k` puts the corpus there
CAPTIONS = "captions"  # without the ending of their language; `make multi30k CAPTIONS=1`


def file_stamp(path: pathlib.Path, name: str) -> list:
    """[resolved path, bytes, nanosecond of the last change]: a changed file has another stamp.

    A hash of the content would need a full reading of the corpus at every start. An edit that preserves both size and
    modification time goes unnoticed. Raises CorpusError for a missing file, and for what is none, such as a pipe.
    """
    if not path.is_file():
        option = " CAPTIONS=1" if path.stem == CAPTIONS else ""
        hint = f" Get it with `make multi30k{option}`." if path.parent == MULTI30K else ""
        why = "but there is no such file"
        if path.is_dir():
            why = "which is a folder: name files"
        elif path.exists():
            why = "which is a pipe or a device, and text is read more than once: write it to a file first"
        raise CorpusError(f"data.{name} names {path}, {why}.{hint}")
    status = os.stat(path)
    return [str(resolved(path)), status.st_size, status.st_mtime_ns]


def read_aligned(source_path: pathlib.Path, target_path: pathlib.Path) -> Iterator[Pair]:
    """Yield (line of source_path, line of target_path). Raises CorpusError if one has more lines than the other."""
    sources, targets = lines_of(source_path), lines_of(target_path)
    lines = 0
    while True:
        source, target = next(sources, None), next(targets, None)
        if source is None and target is None:
            return
        if source is None:
            raise _not_aligned(source_path, target_path, lines, lines + 1 + sum(1 for _ in targets))
        if target is None:
            raise _not_aligned(target_path, source_path, lines, lines + 1 + sum(1 for _ in sources))
        lines += 1
        yield source, target


def check_sides(source: pathlib.Path, reference: pathlib.Path) -> None:
    """Raises ConfigError if a command's --source and --reference are one file."""
    if resolved(source) == resolved(reference):
        raise ConfigError(f"--source and --reference are both {source}: name the file of each side.")


def aligned_pairs(source_path: pathlib.Path, target_path: pathlib.Path) -> list[Pair]:
    """All lines of both files, empty ones too. Raises CorpusError if there are none, or not as many of each."""
    pairs = list(read_aligned(source_path, target_path))
    if not pairs:
        raise CorpusError(f"{source_path} and {target_path} are empty: give files with a sentence per line.")
    return pairs


def _not_aligned(shorter: pathlib.Path, longer: pathlib.Path, shorter_lines: int, longer_lines: int) -> CorpusError:
    return CorpusError(
        f"{longer} has {longer_lines:,} lines and {shorter} has {shorter_lines:,}: a pair is one line of each. "
        f"{shorter} ends before line {shorter_lines + 1:,}; a line that is missing earlier shifts all that follow."
    )


def read_columns(path: pathlib.Path, hint: str) -> Iterator[Pair]:
    """Yield the first two tab-separated columns of each line; further columns are ignored. A blank line has two.

    Raises CorpusError, with `hint` at its end, for any other line without a tab.
    """
    return ((columns[0], columns[1]) for columns in _columns(path, 2, f"no tab between source and target. {hint}"))


def read_documents(path: pathlib.Path) -> Iterator[str]:
    """Yield the third column of each line, the name of its document. Raises CorpusError for a line without it."""
    return (columns[2] for columns in _columns(path, 3, 'no third column, which data.documents = "column" needs.'))


def _columns(path: pathlib.Path, least: int, lack: str) -> Iterator[list[str]]:
    for number, line in enumerate(lines_of(path), start=1):
        columns = line.split("\t") if not is_blank(line) else [""] * least
        if len(columns) < least:
            raise CorpusError(f"{path}, line {number:,} has {lack}".rstrip())
        yield columns


def lines_of(path: pathlib.Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as `read_lines` does. A file whose name ends in .gz is decompressed.

    Raises CorpusError, with the file, the line and the cause, for a file that cannot be read.
    """
    is_gzip = path.suffix == ".gz"

    def lines(file: gzip.GzipFile | io.BufferedReader) -> Iterator[str]:
        _check_kind(path, file.peek(10)[:10])
        yield from read_lines(file, path)

    try:
        with gzip.open(path) if is_gzip else open(path, "rb") as file:
            yield from undamaged(lines(file), path, is_gzip)
    except InputError as error:
        raise CorpusError(str(error)) from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from None


def _check_kind(path: pathlib.Path, head: bytes) -> None:
    """Raises CorpusError if `head`, the first bytes of a text, are those of another kind of file."""
    if head.startswith(b"\x1f\x8b"):
        cause = "compressed twice" if path.suffix == ".gz" else "gzip-compressed but not named .gz"
        raise CorpusError(f"{path} is {cause}: decompress it with gunzip, or give it the name that it needs.")
    if program := packer_of(head):
        raise CorpusError(
            f"{path} is compressed: unpack it, for example with `{program} < FILE`. Only .gz is read as it is."
        )
