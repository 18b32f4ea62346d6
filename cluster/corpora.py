"""Corpora as Spark reads and writes them: files of lines, and tables of Parquet."""

import re
from collections.abc import Sequence
from typing import Any

from keras_transformer.text.formats.endings import LINES, ending_of, why_not

from .errors import ClusterError
from .formats import ERROR, Format, JsonLines, ParquetRows, TabLines, TextLines

SPECIAL = re.compile(r"([,*?\[\]{}\\])")  # characters that separate paths or make patterns of them


class Lines:
    """Files of lines, in the order of the files and of the lines in them."""

    def __init__(self, context: Any, format: Format):
        self._context, self.format = context, format

    def read(self, paths: Sequence[str], parts: int | None = None) -> Any:
        """Return the lines of files, in at least so many parts."""
        return self._context.textFile(",".join(SPECIAL.sub(r"\\\1", path) for path in paths), parts)

    def write(self, lines: Any, folder: str) -> None:
        lines.saveAsTextFile(folder)


class Tables:
    """Files of Parquet, whose rows are dictionaries. The outputs become columns, with the types that Spark gives them.

    Raises ClusterError if a column that is asked for is missing or is no text.
    """

    def __init__(self, context: Any, columns: tuple[str, ...], outputs: dict[str, str], paths: Sequence[str]):
        from pyspark.sql import SparkSession
        from pyspark.sql.types import StructType

        self._session = SparkSession(context)
        schema = self._session.read.parquet(*paths).schema
        kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
        for column in columns:
            if kinds.get(column) != "string":
                raise ClusterError(
                    f"The table has no column {column!r} of texts: it has "
                    f"{', '.join(f'{name} ({kind})' for name, kind in kinds.items())}. Name one with --column."
                )
        added = outputs | {ERROR: "string"}
        self._schema = StructType([field for field in schema.fields if field.name not in added])
        for name, kind in added.items():
            self._schema.add(name, kind)
        self.format = ParquetRows(columns, tuple(self._schema.names))

    def read(self, paths: Sequence[str], parts: int | None = None) -> Any:
        """Return the rows of tables, in about so many parts; a row group of a file is in one part."""
        if parts is not None:
            self._session.conf.set("spark.sql.files.minPartitionNum", str(parts))
            self._session.conf.set("spark.sql.files.openCostInBytes", "1")  # a small file is no more than its bytes
        return self._session.read.parquet(*paths).rdd.map(lambda row: row.asDict())

    def write(self, rows: Any, folder: str) -> None:
        self._session.createDataFrame(rows, self._schema, verifySchema=False).write.parquet(folder)


def corpus_of(
    context: Any, format: str, columns: Sequence[str], outputs: dict[str, str], paths: Sequence[str]
) -> Lines | Tables:
    """Return the corpus of a format, text, jsonl, tsv or parquet.

    Raises ClusterError if it has no such columns, or if a file has the name of another format.
    """
    for path in paths:
        check_name(path, format, is_asked=True)
    if format == "parquet":
        return Tables(context, tuple(columns), outputs, paths)
    if format == "jsonl":
        return Lines(context, JsonLines(tuple(columns)))
    if format == "tsv":
        if wrong := [column for column in columns if not column.isdecimal() or column == "0"]:
            raise ClusterError(f"The column is {wrong[0]!r}; a column of TSV is a number, counted from 1.")
        return Lines(context, TabLines(tuple(map(int, columns))))
    if len(columns) > 1:
        raise ClusterError("A line of text has one sentence, and two are needed: give JSONL, TSV or Parquet.")
    return Lines(context, TextLines())


def format_of(path: str) -> str:
    """Return the format that the name of a file tells; a folder of another name has text.

    Raises ClusterError for a file that is no corpus, such as subtitles.
    """
    endings = {"jsonl": "jsonl", "json": "jsonl", "ndjson": "jsonl", "tsv": "tsv", "parquet": "parquet"}
    format = endings.get(ending_of(path), "text")
    check_name(path, format, is_asked=format != "text")
    return format


def check_name(path: str, format: str, is_asked: bool) -> None:
    """Raises ClusterError for a file whose name tells another format."""
    if reason := why_not(path, LINES if format == "text" else format, is_asked):
        raise ClusterError(f"{reason} A corpus is text, jsonl, tsv or parquet.")
