"""Sentence pairs from text files: two line-aligned files, or one file with two columns."""

import codecs
import gzip
import itertools
import os
import pathlib

from train.data.corpus import CorpusError, Split


def files_splits(data):
    """FilesData -> (train, validation, test) Splits; test is None where none is given.

    All files are looked for at once, so that a missing test set is named before hours of training. Only those of a
    training split with several shards are not: each worker has its own, and looks for them with `fingerprint`.
    """
    if len(data.train) < data.shards:
        raise CorpusError(
            f"data.shards is {data.shards}, but data.train has {len(data.train)} entries, and a shard is at least one: "
            f"divide the files by lines, each side alike, for example with split -n r/{data.shards} FILE."
        )
    train = [_split("train", data.train[shard :: data.shards]) for shard in range(data.shards)]
    held_out = [_split(name, getattr(data, name)) for name in ("validation", "test")]
    splits_of_all_workers = [*train, *held_out] if data.shards == 1 else held_out
    for split in splits_of_all_workers:
        if split is not None:
            split.fingerprint()
    return Split.of_shards("data.train", train), *held_out


def files_test_split(data):
    """FilesData -> the test Split, or the validation Split if there is no test set. Needs none of the other files."""
    split = _split("test", data.test) or _split("validation", data.validation)
    split.fingerprint()
    return split


def _split(name, entries):
    if not entries:
        return None
    files = [_files(name, entry) for entry in entries]
    return Split(
        f"data.{name}",
        lambda: itertools.chain.from_iterable(map(_pairs, files)),
        lambda: {"source": "files", "entries": [[file_stamp(path, name) for path in paths] for paths in files]},
    )


def _files(name, entry):
    """The paths of one entry of the configuration: source and target, or one TSV file."""
    if not isinstance(entry, str) and len(entry) != 2:
        raise CorpusError(
            f"data.{name} has an entry of {len(entry)} files, {entry}: "
            "expected [source file, target file] or one TSV file."
        )
    return [pathlib.Path(path).expanduser() for path in ([entry] if isinstance(entry, str) else entry)]


def _pairs(paths):
    return read_aligned(*paths) if len(paths) == 2 else read_columns(*paths)


def file_stamp(path, name):
    """[resolved path, bytes, nanosecond of the last change]: a changed file has another stamp.

    Not a hash of the content, which would take a full reading of the corpus at every start. Who writes other text of
    the same length into a file and sets its time back is not found out. Raises CorpusError for a missing file.
    """
    if not path.is_file():
        raise CorpusError(f"data.{name} names {path}, but there is no such file.")
    found = os.stat(path)
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


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
