"""docs/references.md: every work that is cited has a row, and every row is cited."""

import re

from tests.support.places import ROOT

PAGE = ROOT / "docs" / "references.md"
YEAR = r",?\s\(?((?:19|20)\d\d)\b"
SEVERAL = re.compile(r"\b([A-ZÄÖÜ][\w-]+)(?:,?\set\sal\.(?:'s)?|\s(?:and|&)\s[A-ZÄÖÜ][\w-]+)" + YEAR)
FOLDERS = ("keras_transformer", "train", "export", "cluster", "examples", "benchmarks", "configs", "docs", "tests")


def cited_texts():
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    paths = [path for path in paths if path.suffix in {".py", ".md", ".toml"} and path != PAGE]
    return [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *paths)]


def test_every_work_that_is_cited_has_a_row_and_every_row_is_cited():
    works = re.findall(r"^\| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1:]
    listed = {(work.split()[0], work.split()[-1]) for work in works}
    texts = cited_texts()
    assert {found for text in texts for found in SEVERAL.findall(text)} - listed == set()
    joined = "\n".join(texts)
    assert [key for key in sorted(listed) if not re.search(rf"{key[0]}\b[^|]{{0,40}}\b{key[1]}", joined)] == []


def test_rows_are_in_order_and_a_link_to_arxiv_names_what_it_shows():
    text = PAGE.read_text(encoding="utf-8")
    works = re.findall(r"^\| (\S+ .*?) \|", text, re.MULTILINE)[1:]
    assert works == sorted(works, key=lambda work: (work.split()[0].replace("ä", "a"), work.split()[-1]))
    links = re.findall(r"\[arXiv (\S+)\]\(https://arxiv.org/abs/(\S+)\)", text)
    assert len(links) > 30 and all(shown == target for shown, target in links)
