"""Sentence pairs from text files: two line-aligned files, or one file with two columns."""

import gzip
import itertools
import os
import pathlib
import zlib
from collections.abc import Iterable, Iterator

from keras_transformer.config import ConfigError
from keras_transformer.errors import InputError
from keras_transformer.files import packer_of, read_lines

from ..config.data import FilesData, FilesEntry
from .corpus import CorpusError, Pair, Split

MULTI30K = pathlib.Path("data/multi30k")  # `make multi30k` puts the corpus there


def files_splits(data: FilesData) -> tuple[Split, Split, Split | None]:
    """The training, validation and test Splits; test is None if no test files are given.

    Checks at once that every file exists, so that a missing test set is reported before hours of training. The files
    of several training shards are an exception: each worker has only its own, which `own_shards` checks.
    """
    if len(data.train) < data.shards:
        raise CorpusError(
            f"data.shards is {data.shards}, but data.train has {len(data.train)} entries, and a shard needs at least "
            f"one: divide the files by lines, both sides alike, for example with split -n r/{data.shards} FILE "
            "(unpack a .gz first)."
        )
    entries = data.entries("train")
    train = [_train_split(entries[shard :: data.shards], data.train_pairs) for shard in range(data.shards)]
    validation = _split("validation", data.entries("validation"))
    test = _split("test", data.entries("test")) if data.test else None
    for split in (train[0] if data.shards == 1 else None, validation, test):
        if split is not None:
            split.fingerprint()
    return Split.of_shards("data.train", train), validation, test


def files_test_split(data: FilesData) -> Split:
    """The test Split, or the validation Split if there is no test set. Needs none of the other files."""
    name = "test" if data.test else "validation"
    split = _split(name, data.entries(name))
    split.fingerprint()
    return split


def _train_split(entries: list[FilesEntry], most_pairs: int | None) -> Split:
    """The Split of training entries, which is mixed from Splits of its entries if any of them has a weight."""
    mixed = ()
    if any(entry.weight is not None for entry in entries):
        parts = [_split("train", [entry], of=f" of {_named(entry)}") for entry in entries]
        mixed = zip(parts, [1.0 if entry.weight is None else entry.weight for entry in entries], strict=True)
    return _split("train", entries, most_pairs, mixed)


def _split(
    name: str,
    entries: list[FilesEntry],
    most_pairs: int | None = None,
    mixed: Iterable[tuple[Split, float]] = (),
    of: str = "",
) -> Split:
    """The Split of these entries, or of their first `most_pairs` pairs. of: what follows its key in messages."""
    paths, tags = [_paths(name, entry.files) for entry in entries], [entry.tag for entry in entries]

    def read() -> Iterator[Pair]:
        texts = (tagged(_read(name, entries, files), tag) for files, tag in zip(paths, tags, strict=True))
        return itertools.islice(itertools.chain.from_iterable(texts), most_pairs)

    def fingerprint() -> dict:
        files = {"source": "files", "files": [[file_stamp(path, name) for path in entry] for entry in paths]}
        return files | ({"tags": tags} if any(tags) else {}) | ({"pairs": most_pairs} if most_pairs else {})

    return Split(f"data.{name}{of}", read, fingerprint, mixed=mixed)


def _named(entry: FilesEntry) -> str:
    """The files of an entry: "a.en and a.de"."""
    return entry.files if isinstance(entry.files, str) else " and ".join(entry.files)


def tagged(pairs: Iterable[Pair], tag: str) -> Iterator[Pair]:
    """Put the tag before every source sentence; an empty one stays empty."""
    if not tag:
        return iter(pairs)
    return ((tag + source if source.strip() else source, target) for source, target in pairs)


def _paths(name: str, files: list[str] | str) -> list[pathlib.Path]:
    """The paths of one entry: source and target, or one TSV file."""
    paths = [pathlib.Path(path).expanduser() for path in ([files] if isinstance(files, str) else files)]
    if not isinstance(files, str) and len(paths) != 2:
        raise CorpusError(
            f"data.{name} has an entry of {len(paths)} files, {files}: an entry is [source file, target file] or one "
            "TSV file."
        )
    if len(paths) == 2 and paths[0].resolve() == paths[1].resolve():
        raise CorpusError(f"data.{name} names {paths[0]} as source and as target: name the file of each side.")
    return paths


def _read(name: str, entries: list[FilesEntry], paths: list[pathlib.Path]) -> Iterator[Pair]:
    if len(paths) == 2:
        return read_aligned(*paths)
    hint, files = "", [entry.files for entry in entries[:2]]
    if len(files) == 2 and isinstance(files[0], str) and isinstance(files[1], str):
        hint = f' If {files[0]} and {files[1]} belong together, write [["{files[0]}", "{files[1]}"]].'
    return read_columns(paths[0], hint=f"data.{name} reads a file that stands alone as TSV.{hint}")


def file_stamp(path: pathlib.Path, name: str) -> list:
    """[resolved path, bytes, nanosecond of the last change]: a changed file has another stamp.

    A hash of the content would need a full reading of the corpus at every start. An edit that preserves both size and
    modification time goes unnoticed. Raises CorpusError for a missing file.
    """
    if not path.is_file():
        hint = " Get it with `make multi30k`." if path.parent == MULTI30K else ""
        raise CorpusError(f"data.{name} names {path}, but there is no such file.{hint}")
    found = os.stat(path)
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


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
    if source.resolve() == reference.resolve():
        raise ConfigError(f"--source and --reference are both {source}: name the file of each side.")


def aligned_pairs(source_path: pathlib.Path, target_path: pathlib.Path) -> list[Pair]:
    """All lines of both files, empty ones too. Raises CorpusError if there are none, or not as many of each."""
    pairs = list(read_aligned(source_path, target_path))
    if not pairs:
        raise CorpusError(f"{source_path} and {target_path} are empty: there is no sentence in them.")
    return pairs


def _not_aligned(shorter: pathlib.Path, longer: pathlib.Path, shorter_lines: int, longer_lines: int) -> CorpusError:
    return CorpusError(
        f"{longer} has {longer_lines:,} lines and {shorter} has {shorter_lines:,}: a pair is one line of each. "
        f"{shorter} ends before line {shorter_lines + 1:,}; a line that is missing earlier shifts all that follow."
    )


def read_columns(path: pathlib.Path, hint: str = "") -> Iterator[Pair]:
    """Yield the first two tab-separated columns of each line; further columns are ignored. A blank line has two.

    Raises CorpusError, with `hint` at its end, for any other line without a tab.
    """
    for number, line in enumerate(lines_of(path), start=1):
        columns = line.split("\t") if line.strip() else ["", ""]
        if len(columns) < 2:
            raise CorpusError(f"{path}, line {number:,} has no tab between source and target. {hint}".rstrip())
        yield columns[0], columns[1]


def lines_of(path: pathlib.Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as `read_lines` does. A file whose name ends in .gz is decompressed.

    Raises CorpusError, with the file, the line and the cause, for a file that cannot be read.
    """
    number, is_gzip = 0, path.suffix == ".gz"
    try:
        with gzip.open(path) if is_gzip else open(path, "rb") as file:
            _check_kind(path, file.peek(10)[:10])
            for line in read_lines(file, path):
                number += 1
                yield line
    except InputError as error:
        raise CorpusError(str(error)) from None
    except EOFError:
        raise CorpusError(f"{path} ends within its gzip stream, after line {number:,}: copy it again.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path} cannot be decompressed after line {number:,}: {error}. It is damaged, or no gzip file."
        ) from None
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
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        raise CorpusError(f"{path} looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.")
