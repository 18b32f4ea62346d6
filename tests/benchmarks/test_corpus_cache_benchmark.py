"""The benchmark of the corpus cache runs, and its page is made of what the stages report."""

import re

import pytest

from benchmarks import corpus_cache
from benchmarks.corpus_cache import page
from tests.support.commands import invoke
from tests.support.places import ROOT
from tests.support.processes import python


@pytest.mark.slow
def test_a_small_corpus_gives_the_table(tmp_path):
    table = tmp_path / "table.md"
    process = python("-m", "benchmarks.corpus_cache", "--pairs", 2_000, "--vocab-size", 600, "--to", table)
    assert process.returncode == 0, process.stderr[-3000:]
    found = table.read_text(encoding="utf-8")
    assert process.stdout.strip() == found.strip()
    rows = re.findall(r"^\| (tokenizer|first start|second start) \| (\S+) \| (\S+) \|$", found, re.MULTILINE)
    assert [name for name, _, _ in rows] == ["tokenizer", "first start", "second start"]
    for _, seconds, peak in rows:
        assert float(seconds) > 0 and 0.05 < float(peak) < 4
    assert 0 < int(re.search(r"([\d,]+) pairs\.$", found, re.MULTILINE)[1].replace(",", "")) <= 2_000
    assert 0 < int(re.search(r"(\d+) bytes per pair", found)[1]) < 1_000


STAGES = {
    "tokenizer": {"seconds": 11.0, "peak": 2**30},
    "first start": {"seconds": 200.0, "peak": 3 * 2**30, "preflight": 0.5},
    "second start": {
        "seconds": 8.0, "peak": 2**29, "preflight": 0.25,
        "batch": 0.004, "padding": 0.0125, "pairs": 1_000, "tokens": [30_000, 20_000],
    },
}  # fmt: skip


def test_the_page_has_each_stages_seconds_and_memory_and_the_bytes_of_a_pair():
    found = page(1_024, STAGES, text=2**30, cached=135_000)
    rows = dict(re.findall(r"^\| (.+?) \| (\S+ \| \S+) \|$", found, re.MULTILINE))
    assert rows["tokenizer"] == "11.0 | 1.00"
    assert rows["first start"] == "200.0 | 3.00"
    assert rows["second start"] == "8.0 | 0.50"
    for part in ("1,024 pairs", "30,000 source", "20,000 target", "1,000 pairs", "135 bytes", "1.25%", "4.0 ms"):
        assert part in found


def test_the_page_may_go_into_a_folder_that_is_not_there_yet(monkeypatch, tmp_path):
    order = iter(STAGES.values())
    monkeypatch.setattr(corpus_cache, "write_corpus", lambda *arguments, **options: None)
    monkeypatch.setattr(corpus_cache, "run_stage", lambda stage, config: next(order))
    result = invoke(corpus_cache.app, "--pairs", 1_024, "--to", tmp_path / "new" / "table.md")
    assert (tmp_path / "new" / "table.md").read_text(encoding="utf-8").strip() == result.stdout.strip() != ""


def test_the_committed_page_is_of_wmt14s_size_and_as_the_benchmark_writes_it_today():
    committed = (ROOT / "benchmarks" / "results" / "corpus_cache.md").read_text(encoding="utf-8")
    assert committed.startswith("# A corpus of 4,500,000 pairs\n")
    words = re.compile(r"[A-Za-z]{3,}")
    fresh = page(4_500_000, STAGES, text=2**30, cached=135_000)
    table, fresh_table = (text[text.index("| stage") :] for text in (committed, fresh))
    assert words.findall(table) == words.findall(fresh_table)
