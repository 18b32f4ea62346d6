"""The benchmark of the corpus cache runs, and its table says what it must."""

import re

from tests.support.runs import ROOT, python


def test_a_small_corpus_gives_the_table(tmp_path):
    table = tmp_path / "table.md"
    process = python("-m", "benchmarks.corpus_cache", "--pairs", 2_000, "--vocab-size", 600, "--to", table)
    assert process.returncode == 0, process.stderr[-3000:]
    found = table.read_text(encoding="utf-8")
    assert process.stdout.strip() == found.strip()
    rows = re.findall(r"^\| (tokenizer|first start|second start) \| (\S+) \| (\S+) \|$", found, re.MULTILINE)
    assert [name for name, _, _ in rows] == ["tokenizer", "first start", "second start"]
    for _, seconds, peak in rows:
        assert 0 < float(seconds) < 300 and 0.05 < float(peak) < 4
    assert int(re.search(r"([\d,]+) pairs\.$", found, re.MULTILINE)[1].replace(",", "")) <= 2_000
    assert 0 < int(re.search(r"(\d+) bytes a pair", found)[1]) < 1_000


def test_the_committed_table_is_of_wmt14s_size_and_within_its_bounds():
    found = (ROOT / "benchmarks" / "results" / "corpus_cache.md").read_text(encoding="utf-8")
    assert found.startswith("# A corpus of 4,500,000 pairs")
    rows = dict(re.findall(r"^\| (\w+ start) \| (\S+ \| \S+) \|$", found, re.MULTILINE))
    for seconds, peak in (row.split(" | ") for row in (rows["second start"],)):
        assert float(seconds) < 60 and float(peak) < 4
    assert float(rows["first start"].split(" | ")[1]) < 4
