"""Sentence pairs from text files: the entries of `data.train`, `data.validation` and `data.test`."""

import itertools
import pathlib
from collections.abc import Iterable, Iterator

from keras_transformer.ground.files import resolved
from keras_transformer.pieces.normalization import is_blank

from ...config.sources.files import FilesData, FilesEntry
from ..corpus import Corpus, CorpusError, Pair, Split
from ..files import file_stamp, read_aligned, read_columns, read_documents


def read_corpus(data: FilesData) -> Corpus:
    """The Corpus of the files, whose tags are symbols of the tokenizer.

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
    shards = [_train_split(data, entries[shard :: data.shards]) for shard in range(data.shards)]
    validation = _split(data, "validation", data.entries("validation"))
    test = _split(data, "test", data.entries("test")) if data.test else None
    for split in (shards[0] if data.shards == 1 else None, validation, test):
        if split is not None:
            split.fingerprint()
    train = Split.of_shards("data.train", shards)
    return Corpus(train, validation, test, data.source_language, data.target_language, data.tags)


def read_test_split(data: FilesData) -> Split:
    """The test Split, or the validation Split if there is no test set. Needs none of the other files."""
    name = "test" if data.test else "validation"
    split = _split(data, name, data.entries(name))
    split.fingerprint()
    return split


def _train_split(data: FilesData, entries: list[FilesEntry]) -> Split:
    """The Split of training entries, which is mixed from Splits of its entries if any of them has a weight."""
    mixed: Iterable[tuple[Split, float]] = ()
    if any(entry.weight is not None for entry in entries):
        parts = [_split(data, "train", [entry], of=f" of {entry.names}") for entry in entries]
        mixed = zip(parts, [1.0 if entry.weight is None else entry.weight for entry in entries], strict=True)
    return _split(data, "train", entries, data.train_pairs, mixed)


def _split(
    data: FilesData,
    name: str,
    entries: list[FilesEntry],
    most_pairs: int | None = None,
    mixed: Iterable[tuple[Split, float]] = (),
    of: str = "",
) -> Split:
    """The Split of these entries, or of their first `most_pairs` pairs. of: what follows its key in messages."""
    paths, tags = [_paths(name, entry.files) for entry in entries], [entry.tag for entry in entries]
    told = map(data.codes_of, entries)

    def read() -> Iterator[Pair]:
        texts = (tagged(_read(name, entries, files), tag) for files, tag in zip(paths, tags, strict=True))
        return itertools.islice(itertools.chain.from_iterable(texts), most_pairs)

    def fingerprint() -> dict:
        files = {"source": "files", "files": [[file_stamp(path, name) for path in entry] for entry in paths]}
        return files | ({"tags": tags} if any(tags) else {}) | ({"pairs": most_pairs} if most_pairs else {})

    def counts() -> Iterator[int]:
        return (sum(1 for _ in _read(name, entries, files)) for files in paths)

    def parts() -> Iterator[str]:
        return itertools.chain.from_iterable(map(itertools.repeat, (entry.part for entry in entries), counts()))

    def documents() -> Iterator[str]:
        names = itertools.chain.from_iterable(_documents(data, name, entries, files) for files in paths)
        return itertools.islice(names, most_pairs)

    key = f"data.{name}{of}"
    split = Split(key, read, fingerprint, mixed=mixed, parts=parts, told=told, counts=counts, documents=documents)
    split.ends_documents = data.documents == "blank line"
    return split


def _documents(data: FilesData, name: str, entries: list[FilesEntry], paths: list[pathlib.Path]) -> Iterator[str]:
    """The name of the document of each pair of an entry: its third column, or its file and its number there."""
    if data.documents == "column":
        yield from read_documents(paths[0])
    elif data.documents:
        number = 1
        for source, target in _read(name, entries, paths):
            yield f"{paths[0]}, document {number}"
            number += is_blank(source) and is_blank(target)


def tagged(pairs: Iterable[Pair], tag: str) -> Iterator[Pair]:
    """Put the tag before every source sentence, once if it is there already; an empty one stays empty."""
    if not tag:
        return iter(pairs)
    texts = ((source.removeprefix(f"{tag} ").removeprefix(tag), target) for source, target in pairs)
    return ((text if is_blank(text) else tag + text, target) for text, target in texts)


def _paths(name: str, files: list[str] | str) -> list[pathlib.Path]:
    """The paths of one entry: source and target, or one TSV file."""
    paths = [pathlib.Path(path).expanduser() for path in ([files] if isinstance(files, str) else files)]
    if not isinstance(files, str) and len(paths) != 2:
        raise CorpusError(
            f"data.{name} has {files!r}, an entry of {len(paths)} file{'s' * (len(paths) != 1)}: an entry is [source "
            "file, target file] or one TSV file."
        )
    if len(paths) == 2 and resolved(paths[0]) == resolved(paths[1]):
        raise CorpusError(f"data.{name} names {paths[0]} as source and as target: name the file of each side.")
    return paths


def _read(name: str, entries: list[FilesEntry], paths: list[pathlib.Path]) -> Iterator[Pair]:
    if len(paths) == 2:
        return read_aligned(*paths)
    hint, files = "", [entry.files for entry in entries[:2]]
    if len(files) == 2 and isinstance(files[0], str) and isinstance(files[1], str):
        hint = f' If {files[0]} and {files[1]} belong together, write [["{files[0]}", "{files[1]}"]].'
    return read_columns(paths[0], hint=f"data.{name} reads a file that stands alone as TSV.{hint}")
