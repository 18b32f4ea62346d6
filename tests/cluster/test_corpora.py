"""Which format and columns are asked for."""

import pytest

from cluster.corpora import corpus_of, format_of
from cluster.errors import ClusterError
from cluster.formats import JsonLines, TabLines, TextLines


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


@pytest.mark.parametrize("name", ["film.srt", "page.html", "messages.xlf.gz", "notes.md", "letter.docx"])
def test_a_document_is_no_corpus(name):
    with pytest.raises(ClusterError, match=f"/in/{name} ends in .*A corpus is text, jsonl, tsv or parquet"):
        format_of(f"/in/{name}")
    if name != "notes.md":  # of which each line may be a sentence, if somebody says so
        with pytest.raises(ClusterError, match=f"{name} ends in"):
            corpus_of(None, "text", ["text"], {}, ["/in/a.txt", f"/in/{name}"])


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
