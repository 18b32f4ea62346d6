"""The texts with which translations must begin: one for all lines of an input, or one per line from a file."""

import collections
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from keras_transformer.config import ConfigError
from keras_transformer.errors import InputError
from keras_transformer.files import read_lines

if TYPE_CHECKING:
    from keras_transformer.translator import Translator


class TargetPrefixes:
    """Reads a file of prefixes beside the input, line by line: either may come from a program that is still writing.

    Args:
        prefix: the prefix of every line; "" for none.
        path: the file, whose empty lines are no prefix. None: every line has `prefix`.

    Raises ConfigError if both are given, and OSError if the file cannot be opened.
    """

    def __init__(self, prefix: str, path: pathlib.Path | None):
        if prefix and path is not None:
            raise ConfigError("--target-prefix and --target-prefixes contradict each other: give one of them.")
        self.prefix, self.path = prefix, path
        self._of_file = None if path is None else read_lines(open(path, "rb"), path)
        self._waiting, self._first = collections.deque(), 1  # that line's is the first of those that wait

    def beside(self, lines: Iterator[str], translator: "Translator") -> Iterator[str]:
        """Yield the lines, and read the prefix of each.

        Raises InputError, with the number of the line, at the first line without a prefix, or with one that is longer
        than any translation; and after the last line if there are more prefixes.
        """
        if self._of_file is None:
            yield from lines
            return
        count = 0
        for count, line in enumerate(lines, 1):
            self._waiting.append(self._checked(next(self._of_file, None), count, translator))
            yield line
        if next(self._of_file, None) is not None:
            raise InputError(
                f"{self.path} has more than {count:,} lines, and the input has {count:,}: give one prefix per line of "
                "input, an empty line for none."
            )

    def _checked(self, prefix: str | None, number: int, translator: "Translator") -> str:
        if prefix is None:
            raise InputError(
                f"{self.path} has {number - 1:,} lines, and the input has more: give one prefix per line of input, an "
                "empty line for none."
            )
        try:
            translator.check_prefix(prefix)
        except InputError as error:
            raise InputError(f"{self.path}, line {number:,}: {error}") from None
        return prefix

    def of_next(self, count: int, first_line: int = 1) -> list[str] | None:
        """Return the prefixes of so many lines from `first_line` on, passing those before; None if no line has any."""
        if self._of_file is None:
            return [self.prefix] * count if self.prefix else None
        while self._first < first_line:
            self._first += 1
            self._waiting.popleft()
        self._first += count
        return [self._waiting.popleft() for _ in range(count)]
