"""Sentence pairs from text files: two line-aligned files, or one file with two columns."""

import codecs
import functools
import gzip
import pathlib

from train.sources.split import CorpusError, Split


def files_splits(data):
    """FilesData -> (train, validation, test) Splits; test is None where none is given.

    All files are looked for at once, so that a missing test set is named before hours of training.
    """
    return tuple(_split(name, getattr(data, name)) for name in ("train", "validation", "test"))


def _split(name, entries):
    readers = [_reader(name, entry) for entry in entries]
    return Split(f"data.{name}", lambda: (pair for read in readers for pair in read())) if readers else None


def _reader(name, entry):
    """The function that reads one entry of the configuration, with its files known to exist."""
    paths = [pathlib.Path(path).expanduser() for path in ([entry] if isinstance(entry, str) else entry)]
    for path in paths:
        if not path.is_file():
            raise CorpusError(f"data.{name} names {path}, but there is no such file.")
    if isinstance(entry, str):
        return functools.partial(read_columns, paths[0])
    if len(paths) != 2:
        raise CorpusError(
            f"data.{name} has an entry of {len(paths)} files, {entry}: "
            "expected [source file, target file] or one TSV file."
        )
    return functools.partial(read_aligned, *paths)


def read_aligned(source_path, target_path):
    """Yield (line of source_path, line of target_path). Raises CorpusError if one has more lines than the other."""
    sources, targets = read_lines(source_path), read_lines(target_path)
    lines = 0
    while True:
        source, target = next(sources, None), next(targets, None)
        if source is None and target is None:
            return
        if source is None or target is None:
            shorter, longer, rest = (
                (source_path, target_path, targets) if source is None else (target_path, source_path, sources)
            )
            longer_lines = lines + 1 + sum(1 for _ in rest)
            raise CorpusError(
                f"{longer} has {longer_lines:,} lines and {shorter} has {lines:,}: a pair is one line of each. "
                f"{shorter} ends before line {lines + 1:,}; a line that went missing earlier shifts all that follow."
            )
        lines += 1
        yield source, target


def read_columns(path):
    """Yield the first two tab-separated columns of each line; further columns are ignored."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise CorpusError(
                f"{path}, line {number:,}: expected source and target with a tab between them, found no tab."
            )
        yield columns[0], columns[1]


def read_lines(path):
    r"""Yield the lines of a UTF-8 file, unpacked if its name ends in .gz, each without its "\n" or "\r\n".

    Nothing else ends a line: U+2028 or a form feed inside a sentence must not move all later pairs by one.
    A byte order mark at the very beginning is no part of the first sentence.
    """
    number = 1
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}, line {number:,} is not valid UTF-8: {error.reason}. Convert the file.") from None
    except EOFError:
        raise CorpusError(
            f"{path} ends in the middle of its gzip stream, after line {number:,}: unpack it anew."
        ) from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from None
