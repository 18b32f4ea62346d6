"""Documents of a text: how many each split has, and which are in several."""

import collections
from collections.abc import Iterable, Iterator

from .corpus import Split


def document_lines(splits: Iterable[Split]) -> Iterator[str]:
    """A line for the log per split whose pairs have documents: how many, and how many an earlier split has too."""
    earlier: dict[str, str] = {}
    for split in splits:
        blank: set[int] = set()
        if split.ends_documents:
            collections.deque(split, maxlen=0)  # reads it, which finds the pairs without text
            blank = set(split.blank)
        sizes = collections.Counter(name for number, name in enumerate(split.documents(), 1) if number not in blank)
        if not sizes:
            continue
        shared = sorted(name for name in sizes if name in earlier)
        warning = ""
        if shared:
            warning = (
                f"; {earlier[shared[0]]} has {len(shared):,} of them too, such as {shared[0]}: scores may be too high"
            )
        yield f"{split.name}: {len(sizes):,} documents of {sizes.total() / len(sizes):.1f} pairs in the mean{warning}"
        earlier |= dict.fromkeys(sizes, split.name)
