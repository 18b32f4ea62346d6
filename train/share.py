"""Which part of the work is this process's own, where several train together."""

from typing import NamedTuple


class Share(NamedTuple):
    """Worker `index`, counted from 0, of `count`. Worker 0 is the chief."""

    index: int = 0
    count: int = 1

    @property
    def is_chief(self):
        return self.index == 0
