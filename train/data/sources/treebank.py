"""A treebank as a corpus: its files, and which trees are for training, for validation and for the test."""

import logging
import pathlib
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import DAMAGED_ARCHIVE
from keras_transformer.parsing.linear import constituents, pieces_of_labels, tagged_leaf

from ...config.sources.treebank import TreebankData, sections_of
from ..corpus import Corpus, CorpusError, Pair, Split
from ..files import file_stamp
from ..trees import Tree, read_trees

log = logging.getLogger("train")

SECTION = re.compile(r"wsj_?(\d\d)\d\d", re.IGNORECASE)
NAMES = "train", "validation", "test"
Item = TypeVar("Item")


class TreebankFile(NamedTuple):
    """A file of trees, on the disk or in a .zip file."""

    path: pathlib.Path
    member: str = ""  # its path in the .zip file

    @property
    def name(self) -> str:
        return f"{self.path}, {self.member}" if self.member else str(self.path)

    @property
    def own_name(self) -> str:
        """Its name without folders, the same on the disk and in a .zip file."""
        return pathlib.PurePath(self.member or self.path).name

    @property
    def section(self) -> str | None:
        """The section of the Wall Street Journal, two digits: "23" of wsj_2315.mrg."""
        match = SECTION.search(self.own_name)
        return match and match[1]

    def trees(self) -> list[Tree]:
        """Raises CorpusError if it cannot be read, or has something else than trees."""
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive:
                    content = archive.read(self.member)
            else:
                content = self.path.read_bytes()
        except (OSError, *DAMAGED_ARCHIVE) as error:
            raise unreadable(self.name, error) from None
        try:
            return list(read_trees(content.decode("utf-8-sig"), self.name))
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise CorpusError(f"{self.name}, line {line:,} is not UTF-8: name files of bracketed trees.") from None


class TreebankSplit(Split):
    """A Split of trees. trees: those of its pairs, in their order. part: which ones these are, in words."""

    trees: list[Tree]

    def __init__(self, name: str, part: str, files: Iterable[TreebankFile], trees: list[Tree], leaves: str):
        paths = sorted({file.path for file in files})

        def read() -> Iterator[Pair]:
            return (tree.tagged_pair if leaves == "tags" else tree.pair for tree in trees)

        def fingerprint() -> dict:
            stamps = [[file_stamp(path, "files") for path in paths]]
            return {"source": "treebank", "files": stamps, "part": part, "leaves": leaves}

        super().__init__(f"data.{name}", read, fingerprint)
        self.part, self.trees = part, trees
        self.description = f"{len(trees):,} trees: {part}"


def read_corpus(data: TreebankData) -> Corpus:
    """Read all trees that one of the three splits needs, and log how many each has.

    The brackets of the training trees are symbols of the tokenizer. Raises CorpusError for files that are missing or
    have no trees, and for a section that is not there.
    """
    files = files_of(data.files)
    if data.division == "sections":
        splits = by_section(data, files)
    else:
        splits = by_seed(data, {file: file.trees() for file in files})
    for split in splits:
        if not split.trees:
            raise CorpusError(f"{split.name} has no tree: {split.part}.")
        log.info("%s: %s trees, %s", split.name, f"{len(split.trees):,}", split.part)
    train, validation, test = splits
    symbols = symbols_of_trees(train.trees, data.leaves)
    return Corpus(train, validation, test, data.source_language, data.target_language, symbols, data.outputs)


def symbols_of_trees(trees: Iterable[Tree], leaves: str) -> tuple[str, ...]:
    """The symbols of all lines of brackets, for a tokenizer; `leaves` are "XX" or "tags"."""
    roots, labels, tags = set(), set(), set()
    for tree in trees:
        roots.add(tree.symbols[0][1:])
        labels.update(constituent.label for constituent in constituents(tree.symbols))
        tags.update(map(tagged_leaf, tree.tags))
    return pieces_of_labels(labels, roots, tags) if leaves == "tags" else pieces_of_labels(labels, roots)


def files_of(paths: Sequence[str]) -> list[TreebankFile]:
    """The files, the .mrg files in folders, and the .mrg files in .zip files, in the order of their own names.

    Raises CorpusError if a path does not exist, or has no .mrg file in it.
    """
    files = []
    for path in (pathlib.Path(path).expanduser() for path in paths):
        if not path.exists():
            raise CorpusError(f"data.files names {path}, but there is no such file or folder.")
        inside = [TreebankFile(path)]
        if path.is_dir():
            inside = [TreebankFile(file) for file in path.rglob("*.mrg") if is_of_trees(file.name)]
        elif path.suffix.lower() == ".zip":
            inside = [TreebankFile(path, member) for member in members_of(path)]
        if not inside:
            raise CorpusError(f"data.files names {path}, which has no .mrg file in it: name the files of its trees.")
        files += inside
    return sorted(dict.fromkeys(files), key=lambda file: (file.own_name, file.name))


def is_of_trees(name: str) -> bool:
    """Whether a file of that name, with or without folders, has trees: ._NAME is what macOS notes about NAME."""
    return name.endswith(".mrg") and not pathlib.PurePath(name).name.startswith("._")


def members_of(path: pathlib.Path) -> list[str]:
    """The .mrg files in a .zip file. Raises CorpusError if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if is_of_trees(name)]
    except (OSError, *DAMAGED_ARCHIVE) as error:
        raise unreadable(path, error) from None


def unreadable(file: pathlib.Path | str, error: Exception) -> CorpusError:
    """Return what to raise if a file cannot be read, or an archive of trees is damaged."""
    return CorpusError(f"{file} cannot be read: {getattr(error, 'strerror', None) or first_line_of(error)[:-1]}.")


def by_section(data: TreebankData, files: Sequence[TreebankFile]) -> list[TreebankSplit]:
    """The splits by sections of the Wall Street Journal, as papers have them. Reads no other section.

    Raises CorpusError if a section has no file.
    """
    there = {file.section for file in files if file.section}
    splits = []
    for name in NAMES:
        key = f"{name}_sections"
        wanted = sections_of(getattr(data, key))
        if missing := sorted(wanted - there):
            raise CorpusError(
                f"data.{key} is {getattr(data, key)}, but there is no file of {listed('section', missing)} (such as "
                f"wsj_{missing[0]}01.mrg); the files are of {listed('section', sorted(there)) or 'no section'}. Name "
                'them all in data.files, or set data.division = "files".'
            )
        read = {file: file.trees() for file in files if file.section in wanted}
        trees = [tree for of_file in read.values() for tree in of_file]
        splits.append(TreebankSplit(name, f"sections {getattr(data, key)} by file name", read, trees, data.leaves))
    return splits


def listed(noun: str, names: Sequence[str]) -> str:
    return f"{noun}{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""


def by_seed(data: TreebankData, read: dict[TreebankFile, list[Tree]]) -> list[TreebankSplit]:
    """The splits by shares: of whole files, or of single trees, drawn by the seed.

    Raises CorpusError if there are fewer than three files or trees.
    """
    of_files = [trees for trees in read.values() if trees]
    items = of_files if data.division == "files" else [[tree] for trees in of_files for tree in trees]
    if len(items) < len(NAMES):
        raise CorpusError(
            f'data.division is "{data.division}", which needs at least one for each of three splits; data.files has '
            f"{len(items)}." + (' Set data.division = "trees".' if data.division == "files" else "")
        )
    drawn = parts_of(items, (data.test_share, data.validation_share), len, data.seed)
    rest = [number for number in range(len(items)) if not any(number in part for part in drawn)]
    test, validation = drawn
    splits = []
    for name, numbers in zip(NAMES, (rest, validation, test), strict=True):
        trees = [tree for number in sorted(numbers) for tree in items[number]]
        whole = f"{len(numbers):,} whole files" if data.division == "files" else "single trees"
        shares = f"test share {data.test_share:g}, validation share {data.validation_share:g}"
        splits.append(TreebankSplit(name, f"{whole} drawn by seed {data.seed} ({shares})", read, trees, data.leaves))
    return splits


def parts_of(items: Sequence[Item], shares: Sequence[float], size: Callable[[Item], int], seed: int) -> list[set[int]]:
    """Draw items for each share until their sizes make up that share of all; at least one, and no item twice.

    Returns the numbers of the items. Sizes are those of `size`; at least one item is left over.
    """
    order, total = list(range(len(items))), sum(map(size, items))
    random.Random(seed).shuffle(order)
    parts = []
    for place, share in enumerate(shares):
        left, taken, part = len(shares) - place, 0, set()
        while len(order) > left and (not part or taken < share * total):
            number = order.pop()
            taken += size(items[number])
            part.add(number)
        parts.append(part)
    return parts
