"""From packages to the pairs of one target language: help and catalogues, split, with counts of what was left out."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..catalogues import pairs_of, read_catalogue
from ..corpus import CorpusError
from .help_pages import paragraphs_of
from .packages import Package
from .split import NAMES, AlignedText, division_of, without_near, without_repetitions

log = logging.getLogger("train")

HELP = re.compile(r"usr/share/libreoffice/help/([^/]+)/text/(.+\.html)")
CATALOGUE = re.compile(r"\A(.+)/([^/]+)/LC_MESSAGES/([^/]+\.mo)")
PICTURES = frozenset(("graphics", "sound", "video"))  # Debian's sections
CATALOGUES_OF_PICTURES = frozenset(("aegisub-l10n", "krita-l10n", "smplayer-l10n", "vlc-l10n"))  # in "localization"
OF_PICTURES = re.compile(r"help/(?:sdraw|simpress)/|usr/lib/libreoffice/program/resource/(?:sd|avmedia)\.mo")


def is_wanted(path: str) -> bool:
    """Whether the corpus takes a file of a package."""
    return HELP.fullmatch(path) is not None or CATALOGUE.fullmatch(path) is not None


def same_language(folder: str, code: str) -> bool:
    """Whether a folder has the language of a code: pt_BR and pt-br are one."""
    return folder.replace("_", "-").casefold() == code.replace("_", "-").casefold()


def is_of_pictures(package: Package, document: str) -> bool:
    """Whether a document belongs to a program for pictures, sound or video."""
    is_of_section = package.section in PICTURES or package.name in CATALOGUES_OF_PICTURES
    return is_of_section or OF_PICTURES.match(document) is not None


def split_pairs(packages: Sequence[Package], code: str, counts: Counter) -> dict[str, list[AlignedText]]:
    """The pairs of English and the language `code` by split, in the order of documents.

    Documents of programs for pictures, sound and video are the split "pictures". No side of a pair of a later split in
    the order train, test, validation, pictures is a side of an earlier one, but for numbers, case and marks. Raises
    CorpusError if there is no text of that language.
    """
    splits: dict[str, list[AlignedText]] = {name: [] for name in NAMES}
    for package, document, pairs in (*help_documents(packages, code, counts), *catalogues(packages, code, counts)):
        name = "pictures" if is_of_pictures(package, document) else division_of(document)
        splits[name] += (AlignedText(source, target, document) for source, target in pairs)
    if not any(splits.values()):
        raise CorpusError(
            f"The packages {', '.join(package.name for package in packages)} have no text of the language {code}."
        )
    splits = {name: without_repetitions(pairs, counts) for name, pairs in splits.items()}
    earlier = list(splits["train"])
    for name in ("test", "validation", "pictures"):
        kept = without_near(splits[name], earlier)
        counts[f"of {name}, nearly in another split"] += len(splits[name]) - len(kept)
        splits[name] = kept
        earlier += kept
    return splits


Documents = Iterator[tuple[Package, str, Iterable[tuple[str, str]]]]


def help_documents(packages: Sequence[Package], code: str, counts: Counter) -> Documents:
    """The pages of help that both languages have, by name, each with its pairs of paragraphs."""
    pages = {language: pages_of(packages, language, counts) for language in ("en-US", code)}
    counts["pages of one language alone"] += len(pages["en-US"].keys() ^ pages[code].keys()) if pages[code] else 0
    for name in sorted(pages["en-US"].keys() & pages[code].keys()):
        (_, english), (package, other) = pages["en-US"][name], pages[code][name]
        source, target = paragraphs_of(english), paragraphs_of(other)
        counts["pages without ids"] += not source or not target
        counts["paragraphs of one language alone"] += len(source.keys() ^ target.keys())
        yield package, f"help/{name}", [(source[each], target[each]) for each in source if each in target]


def pages_of(packages: Sequence[Package], code: str, counts: Counter) -> Mapping[str, tuple[Package, str]]:
    """The pages of help of a language by name. One that is not UTF-8 is counted and left out."""
    pages = {}
    for package in packages:
        for path, content in package.files.items():
            if (match := HELP.fullmatch(path)) and same_language(match[1], code):
                try:
                    pages[match[2]] = package, content.decode()
                except UnicodeDecodeError as error:
                    log.warning("%s of %s is not UTF-8 at its byte %d, and left out", path, package.name, error.start)
                    counts["pages that are not UTF-8"] += 1
    return pages


def catalogues(packages: Sequence[Package], code: str, counts: Counter) -> Documents:
    """The catalogues of a language, each with its pairs. A damaged one is counted and left out."""
    for package in packages:
        for path, content in package.files.items():
            if (match := CATALOGUE.fullmatch(path)) and same_language(match[2], code):
                try:
                    catalogue = read_catalogue(content, path, counts)
                except CorpusError as error:
                    log.warning("%s It is left out.", error)
                    counts["damaged catalogues"] += 1
                    continue
                yield package, f"{match[1]}/{match[3]}", pairs_of(catalogue, None, counts)
