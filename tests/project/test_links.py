"""Every link of a page leads to a file that exists, and to a heading that the file has."""

import re

from tests.support.places import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
LINK = re.compile(r"""(?:\]\(|(?:href|src)=")(?!https?:)([^)"\s#]*)(?:#([^)"\s]*))?[)"]""")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchor_of(heading):
    """The name that GitHub gives a heading: `## Precision, XLA and memory` -> "precision-xla-and-memory"."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors_in(text):
    return {anchor_of(heading.strip()) for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)}


def broken_links(page, text):
    """The links of `text`, a page at the path `page`, that lead nowhere."""
    broken = []
    for file, anchor in LINK.findall(FENCE.sub("", text)):
        target = page.parent / file if file else page
        if target != page and not target.exists():
            broken.append(file)
        elif anchor and anchor not in anchors_in(text if target == page else target.read_text(encoding="utf-8")):
            broken.append(f"{file}#{anchor}")
    return broken


def test_every_link_leads_somewhere():
    found = {str(page.relative_to(ROOT)): broken_links(page, page.read_text(encoding="utf-8")) for page in PAGES}
    assert {name: links for name, links in found.items() if links} == {}
