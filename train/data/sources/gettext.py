"""Sentence pairs from catalogues of gettext."""

import logging
import pathlib
from collections import Counter

from ...config.sources.gettext import GettextData
from ..catalogues import Catalogue, pairs_of, read_catalogue
from ..corpus import Corpus, CorpusError, Pair, Split
from ..files import file_stamp

log = logging.getLogger("train")


def read_corpus(data: GettextData) -> Corpus:
    """The Corpus of the catalogues, which are all read, and logged with what is left out of each split.

    Raises CorpusError for a file that is missing or damaged, a folder without a catalogue of the target language, and a
    catalogue that is in two splits, or lacks its like in the source language.
    """
    check_apart(data)
    test = _split(data, "test") if data.test else None
    train, validation = (_split(data, name) for name in ("train", "validation"))
    return Corpus(train, validation, test, data.source_language, data.target_language)


def read_test_split(data: GettextData) -> Split:
    """The test Split, or the validation Split if there is no test set. Needs none of the other files."""
    return _split(data, "test" if data.test else "validation")


def check_apart(data: GettextData) -> None:
    """Raises CorpusError for a catalogue that two splits read."""
    read: dict[pathlib.Path, str] = {}
    for name in data.PATHS:
        for path in data.catalogues(name):
            if (other := read.setdefault(path, name)) != name:
                raise CorpusError(f"data.{other} and data.{name} both have {path}: give each catalogue to one of them.")


def _split(data: GettextData, name: str) -> Split:
    catalogues = data.catalogues(name)
    if not catalogues:
        raise CorpusError(
            f"data.{name} names {', '.join(getattr(data, name))}, in which no path of a .mo or .po file has the "
            f"language {data.target_language}, as {data.target_language}/app.mo or app-{data.target_language}.po: "
            "name its files."
        )
    for target, source in catalogues.items():
        if source == target or (source and not source.is_file()):
            raise CorpusError(
                f"data.{name} has {target}, but there is no {source if source != target else 'path'} with the same "
                f"catalogue in the source language {data.source_language}."
            )
    stamps = [[file_stamp(path, name) for path in pair if path] for pair in catalogues.items()]
    counts: Counter = Counter()
    pairs: list[Pair] = []
    for target, source in catalogues.items():
        pairs += pairs_of(_catalogue(target, counts), _catalogue(source, counts) if source else None, counts)
    left = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()) if count) or "none left out"
    log.info("data.%s: %s pairs of %s catalogues; %s", name, f"{len(pairs):,}", f"{len(catalogues):,}", left)
    languages = data.source_language, data.target_language, data.msgid_language
    fingerprint = {"source": "gettext", "files": stamps, "languages": languages}
    return Split(f"data.{name}", pairs.__iter__, lambda: fingerprint)


def _catalogue(path: pathlib.Path, counts: Counter) -> Catalogue:
    """The Catalogue of a file, whose path its messages name. Raises CorpusError."""
    try:
        return read_catalogue(path.read_bytes(), str(path), counts)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from None
