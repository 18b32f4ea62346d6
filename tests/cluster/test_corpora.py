"""Which format and columns are asked for."""

import sys
import types

import pytest

from cluster import corpora
from cluster.corpora import corpus_of, format_of
from cluster.errors import ClusterError
from cluster.formats import JsonLines, ParquetRows, TabLines, TextLines


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("hdfs:///corpus/", "text"),
        ("a.jsonl.txt", "text"),
        ("/in/*.jsonl", "jsonl"),
        ("pairs.tsv.gz", "tsv"),
        ("/in/a.json", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("s3a://bucket/table.parquet/", "parquet"),
    ],
)
def test_the_name_of_a_file_tells_its_format(path, format):
    assert format_of(path) == format


def test_columns_have_names_or_in_tsv_numbers():
    assert corpus_of(None, "text", ["text"], {}, []).format == TextLines()
    assert corpus_of(None, "tsv", ["3", "1"], {}, []).format == TabLines((3, 1))
    assert corpus_of(None, "jsonl", ["text", "reference"], {}, []).format == JsonLines(("text", "reference"))


@pytest.mark.parametrize(
    ("format", "columns", "reason"),
    [
        ("text", ["text", "reference"], "one sentence, and two are needed"),
        ("tsv", ["text"], "'text'; a column of TSV is a number"),
        ("tsv", ["0"], "counted from 1"),
    ],
)
def test_columns_that_a_format_cannot_have_are_refused(format, columns, reason):
    with pytest.raises(ClusterError, match=reason):
        corpus_of(None, format, columns, {}, [])


class Context:
    """A SparkContext that says what it is asked to read."""

    def textFile(self, paths, parts):
        return paths, parts


def test_a_path_is_no_pattern_and_no_list_of_paths():
    lines = corpus_of(Context(), "text", ["text"], {}, [])
    paths = r"file:/a\,b \[1\].txt,file:/c\{d\}\*"
    assert lines.read(["file:/a,b [1].txt", "file:/c{d}*"], 7) == (paths, 7)


def test_parquet_has_tables(monkeypatch):
    monkeypatch.setattr(corpora, "Tables", lambda *asked: asked)
    assert corpus_of("context", "parquet", ["text"], {"score": "double"}, ["a"]) == (
        "context",
        ("text",),
        {"score": "double"},
        ["a"],
    )


class Session:
    """A SparkSession with one table, which keeps what it is told."""

    def __init__(self, context):
        self.asked, context.session = [], self
        self.conf, self.read = types.SimpleNamespace(set=self.told), types.SimpleNamespace(parquet=self.table)

    def told(self, *given):
        self.asked.append(given)

    def table(self, *paths):
        self.asked.append(paths)
        rows = types.SimpleNamespace(map=lambda function: list(map(function, [Row(text="a", n=1), Row(text="b", n=2)])))
        return types.SimpleNamespace(schema=Schema([Field("text", "string"), Field("n", "int")]), rdd=rows)

    def createDataFrame(self, rows, schema, **checks):
        self.asked.append((rows, schema.names, checks))
        return types.SimpleNamespace(write=types.SimpleNamespace(parquet=self.told))


class Field:
    def __init__(self, name, kind):
        self.name, self.dataType = name, types.SimpleNamespace(simpleString=lambda: kind)


class Row(dict):
    def asDict(self):
        return dict(self)


class Schema:
    def __init__(self, fields):
        self.fields = list(fields)

    def add(self, name, kind):
        self.fields.append(Field(name, kind))

    @property
    def names(self):
        return [field.name for field in self.fields]


@pytest.fixture
def sql(monkeypatch):
    for name, module in {
        "pyspark": types.ModuleType("pyspark"),
        "pyspark.sql": types.SimpleNamespace(SparkSession=Session),
        "pyspark.sql.types": types.SimpleNamespace(StructType=Schema),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    return types.SimpleNamespace()


@pytest.mark.parametrize(("parts", "told"), [(None, {}), (7, {"minPartitionNum": "7", "openCostInBytes": "1"})])
def test_a_table_is_read_in_so_many_parts_and_written_with_its_columns_and_those_of_the_work(parts, told, sql):
    tables = corpus_of(sql, "parquet", ["text"], {"score": "double", "n": "string"}, ["a", "b"])
    columns = ("text", "score", "n", "error")  # a column of the name of an output is replaced
    assert tables.format == ParquetRows(("text",), columns) and sql.session.asked == [("a", "b")]
    assert tables.read(["c"], parts) == [{"text": "a", "n": 1}, {"text": "b", "n": 2}]
    assert sql.session.asked[1:] == [*((f"spark.sql.files.{name}", value) for name, value in told.items()), ("c",)]
    tables.write("rows", "folder")
    assert sql.session.asked[-2:] == [("rows", list(columns), {"verifySchema": False}), ("folder",)]


@pytest.mark.parametrize("column", ["n", "none"])
def test_a_column_that_is_no_text_is_named_beside_those_that_there_are(column, sql):
    with pytest.raises(
        ClusterError, match=rf"no column '{column}' of texts: it has text \(string\), n \(int\). Name one"
    ):
        corpus_of(sql, "parquet", ["text", column], {}, ["a"])


def test_lines_are_written_into_a_folder():
    written = []
    corpus_of(None, "text", ["text"], {}, []).write(types.SimpleNamespace(saveAsTextFile=written.append), "folder")
    assert written == ["folder"]
