"""A sample of a list that stands for all of it."""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """`count` of the items at equal distances, from the first one on; all of them if there are not more."""
    if len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
