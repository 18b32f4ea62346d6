"""Lines of text, JSON and TSV, and rows of Parquet: which text they hold, and they with what was made of it.

A line that cannot be read raises RowError, which then stands in its row: one line of input is one line of output.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from keras_transformer.ground.files import on_one_line
from keras_transformer.ground.json_members import with_values
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.batching import SURROGATE

ERROR = "error"  # the column that says why a row has nothing in the others
LOST = "\ufffd"  # what stands for bytes that are no UTF-8; alone on a line of text, for a line with an error
NOT_UTF8 = "The line is not UTF-8, or has U+FFFD, which stands for a character that was lost before."


class RowError(ValueError):
    """Why one line cannot be used; the message is a sentence."""


class Format(Protocol):
    """How the lines of a file, which are strings, or the rows of a table hold columns. It must be picklable."""

    def read(self, line: Any) -> tuple[str, ...]:
        """Return the texts of a line, one per column that is asked for. Raises RowError if it has none."""

    def write(self, line: Any, outputs: dict[str, Any]) -> Any:
        """Return the line of output: `line` with the outputs, in their order."""

    def refuse(self, line: Any, names: Iterable[str], reason: str) -> Any:
        """Return the line of output if nothing could be made of `line`; `names` are the outputs that it lacks."""

    def is_refused(self, line: Any) -> bool:
        """Return whether a line of output has an error."""


class TextLines(NamedTuple):
    """A line is a sentence. Of the outputs, the first is written, and U+FFFD alone if there is none."""

    def read(self, line: str) -> tuple[str, ...]:
        return (checked_line(line),)

    def write(self, line: str, outputs: dict[str, Any]) -> str:
        return on_one_line(next(iter(outputs.values())))

    def refuse(self, line: str, names: Iterable[str], reason: str) -> str:
        return LOST

    def is_refused(self, line: str) -> bool:
        return line == LOST


class TabLines(NamedTuple):
    """A line is fields with tabs in between; the outputs and the error are appended to them.

    columns: the numbers of the fields that are read, counted from 1.
    """

    columns: tuple[int, ...]

    def read(self, line: str) -> tuple[str, ...]:
        fields = checked_line(line).split("\t")
        if max(self.columns) > len(fields):
            raise RowError(f"The line has {len(fields)} columns, and column {max(self.columns)} is asked for.")
        return tuple(fields[column - 1] for column in self.columns)

    def write(self, line: str, outputs: dict[str, Any]) -> str:
        return "\t".join([without_end(line), *map(field_of, outputs.values()), ""])

    def refuse(self, line: str, names: Iterable[str], reason: str) -> str:
        return "\t".join([without_end(line), *("" for _ in names), reason])

    def is_refused(self, line: str) -> bool:
        return not line.endswith("\t")


class JsonLines(NamedTuple):
    """A line is an object of JSON, which gets the outputs and the error as further keys; all else stays as it is.

    columns: the keys whose texts are read.
    """

    columns: tuple[str, ...]

    def read(self, line: str) -> tuple[str, ...]:
        return fields_of(self.object_of(line), self.columns)

    def object_of(self, line: str) -> dict[str, Any]:
        try:
            values = json_of(checked_line(line))
        except ValueError as error:
            raise RowError(f"The line is not JSON: {error}.") from None
        if not isinstance(values, dict):
            raise RowError(f"The line is not an object of JSON but {type(values).__name__}.")
        return values

    def write(self, line: str, outputs: dict[str, Any]) -> str:
        self.object_of(line)
        return with_values(checked_line(line), outputs | {ERROR: None}, as_json)

    def refuse(self, line: str, names: Iterable[str], reason: str) -> str:
        values = dict.fromkeys(names) | {ERROR: reason}
        try:
            self.object_of(line)
        except RowError:
            return as_json({"line": without_end(line)} | values)
        return with_values(checked_line(line), values, as_json)

    def is_refused(self, line: str) -> bool:
        return json_of(line)[ERROR] is not None


class ParquetRows(NamedTuple):
    """A row of a table, as a dictionary; the outputs and the error become further columns.

    columns: the names of those whose texts are read. names: of all columns of the output, in their order.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...] = ()

    def read(self, line: dict[str, Any]) -> tuple[str, ...]:
        return fields_of(line, self.columns)

    def write(self, line: dict[str, Any], outputs: dict[str, Any]) -> tuple[Any, ...]:
        row = line | outputs | {ERROR: None}
        return tuple(row[name] for name in self.names)

    def refuse(self, line: dict[str, Any], names: Iterable[str], reason: str) -> tuple[Any, ...]:
        row = line | dict.fromkeys(names) | {ERROR: reason}
        return tuple(row[name] for name in self.names)

    def is_refused(self, line: dict[str, Any]) -> bool:
        return line[ERROR] is not None


def fields_of(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of a row. Raises RowError if it lacks one, or has an error from an earlier command."""
    if row.get(ERROR) is not None:
        raise RowError(str(row[ERROR]))
    for column in columns:
        if not isinstance(row.get(column), str):
            raise RowError(f"The row has no text in {column!r} but {row.get(column)!r:.60}.")
    return tuple(row[column] for column in columns)


def checked_line(line: str) -> str:
    """Return a line without its end. Raises RowError if it was not UTF-8."""
    if LOST in line:
        raise RowError(NOT_UTF8)
    return without_end(line)


def without_end(line: str) -> str:
    """Return a line without a carriage return at its end and a byte order mark at its beginning."""
    return line.removesuffix("\r").removeprefix("\ufeff")


def field_of(value: Any) -> str:
    """Return an output as a field of TSV: a truth as 0 or 1, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return on_one_line(value).replace("\t", " ")
    return str(int(value) if isinstance(value, bool) else value)


def as_json(values: Any) -> str:
    """Return values as JSON in one line; half of a character, which UTF-8 has not, stays an escape."""
    text = json.dumps(values, ensure_ascii=False)
    return json.dumps(values) if SURROGATE.search(text) else text
