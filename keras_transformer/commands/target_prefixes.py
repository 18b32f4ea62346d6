"""What translations must begin with or have: texts for all lines of an input, or a file with a line for each."""

import collections
import pathlib
from collections.abc import Iterator

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.files import read_lines
from keras_transformer.text.road import Engine


class TargetPrefixes:
    """Reads a file of prefixes beside the input, line by line: either may come from a program that is still writing.

    Args:
        prefix: the prefix of every line; "" for none.
        path: the file, whose empty lines are no prefix. None: every line has `prefix`.

    Raises ConfigError if both are given, and OSError if the file cannot be opened.
    """

    options, what = ("--target-prefix", "--target-prefixes"), "prefix"  # in errors

    def __init__(self, prefix: str, path: pathlib.Path | None):
        if prefix and path is not None:
            raise ConfigError(f"{' and '.join(self.options)} contradict each other: give one of them.")
        self.prefix, self.path = prefix, path
        self._of_file = None if path is None else read_lines(open(path, "rb"), path)
        self._waiting, self._first = collections.deque(), 1  # that line's is the first of those that wait
        self.last_read = ""  # of the file: the line beside that of the input which `beside` yielded last

    def beside(self, lines: Iterator[str], engine: Engine) -> Iterator[str]:
        """Yield the lines, and read the prefix of each.

        Raises InputError, with the number of the line, at the first line without a prefix, or with one that is longer
        than any translation; and after the last line if there are more prefixes.
        """
        if self._of_file is None:
            yield from lines
            return
        count = 0
        for count, line in enumerate(lines, 1):
            prefix = self._checked(next(self._of_file, None), count, engine)
            self._waiting.append(prefix)
            self.last_read = f"{prefix}\n"
            yield line
        if next(self._of_file, None) is not None:
            raise InputError(
                f"{self.path} has more than {count:,} lines, and the input has {count:,}: give one {self.what} per "
                "line of input, an empty line for none."
            )

    def _checked(self, prefix: str | None, number: int, engine: Engine) -> str:
        if prefix is None:
            raise InputError(
                f"{self.path} has {number - 1:,} lines, and the input has more: give one {self.what} per line of "
                "input, an empty line for none."
            )
        try:
            self._check(prefix, engine)
        except InputError as error:
            raise InputError(f"{self.path}, line {number:,}: {error}") from None
        return prefix

    def _check(self, prefix: str, engine: Engine) -> None:
        engine.check_prefix(prefix)

    def of_next(self, count: int, first_line: int = 1) -> list[str] | None:
        """Return the prefixes of so many lines from `first_line` on, passing those before; None if no line has any."""
        if self._of_file is None:
            return [self.prefix] * count if self.prefix else None
        while self._first < first_line:
            self._first += 1
            self._waiting.popleft()
        self._first += count
        return [self._waiting.popleft() for _ in range(count)]


class RequiredPhrases(TargetPrefixes):
    """Reads a file of phrases, with tabs between those of a line, as TargetPrefixes reads one of prefixes."""

    options, what = ("--require", "--required"), "list of phrases"

    def _check(self, prefix: str, engine: Engine) -> None:
        """The engine itself names the line of a phrase that no translation can have."""

    def lists_of_next(self, count: int, first_line: int) -> list[list[str]] | None:
        """Return the phrases of so many lines: see `of_next`."""
        texts = self.of_next(count, first_line)
        return None if texts is None else [text.split("\t") for text in texts]
