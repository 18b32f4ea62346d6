"""The site's pages that are not in docs/: README.md as the first one, and each file that a page links to.

MkDocs calls `on_files` before it builds the navigation and `on_page_markdown` for each page (mkdocs.yml, `hooks`).
Links are written for readers of the repository; here they are turned to where the site has the file: README.md at
index.md, docs/ at the top, everything else under repository/, a file of code as a page that shows it. Nothing is
copied.
"""

import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).parents[2]
FIRST_PAGES = {ROOT / "README.md": "index.md", ROOT / "README.ko.md": "ko/index.md"}
ALSO = (
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples/paper.ipynb",
    ROOT / "examples/paper.ko.ipynb",
)
PICTURES = {".png", ".svg"}
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(\]\(|(?:href|src)=")(?!\w+:)([^)"\s#]*)(#[^)"\s]*)?([)"])')
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)
BEHIND = "---\nsearch:\n  boost: 0.1\n---\n\n"  # a search finds what the manual says before the code that does it
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"  # the site loads nothing from elsewhere
LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}

place_of: dict[str, pathlib.Path] = {}  # the file of the repository that a page shows


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and whatever they link to."""
    for file in files.documentation_pages():
        place_of[file.src_uri] = ROOT / "docs" / file.src_uri
    waiting = [*place_of.values(), *FIRST_PAGES, *(path for path in ALSO if path.exists())]
    seen = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        uri = uri_of(path)
        if files.get_file_from_path(uri) is None:
            files.append(generated(config, uri, path))
        if path.suffix == ".md":
            waiting += [target for target, _ in targets_in(path.read_text("utf-8"), path)]
    return files


def generated(config: MkDocsConfig, uri: str, path: pathlib.Path) -> File:
    """Return the site's file of a path outside docs/: itself, if it is a page or a picture, or a page that shows it."""
    if path.suffix in PICTURES:
        return File.generated(config, uri, abs_src_path=str(path))
    place_of[uri] = path
    if path.suffix == ".md":
        return File.generated(config, uri, abs_src_path=str(path))
    return File.generated(config, uri, content=shown(path))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page to where the site has their targets."""
    place = place_of.get(page.file.src_uri)
    return markdown if place is None else with_links(markdown, place, page.file.src_uri)


def with_links(markdown: str, place: pathlib.Path, uri: str) -> str:
    """Return a page, whose file of the repository is `place`, with the links of the site, where it is at `uri`."""

    def turned(match: re.Match) -> str:
        start, file, anchor, end = match.groups()
        if not file:
            return match[0]
        target = uri_of((place.parent / file).resolve())
        return f"{start}{os.path.relpath(target, pathlib.PurePosixPath(uri).parent)}{anchor or ''}{end}"

    return outside_code(markdown, lambda text: LINK.sub(turned, text))


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Return the page with `change` applied to what is not code."""
    parts = CODE.split(markdown)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def targets_in(markdown: str, place: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the file and the anchor of each link of a page to another file of the repository."""
    for number, part in enumerate(CODE.split(markdown)):
        for _, file, anchor, _ in LINK.findall("" if number % 2 else part):
            if file:
                yield (place.parent / file).resolve(), anchor


def uri_of(path: pathlib.Path) -> str:
    """Return where the site has a file of the repository."""
    if path in FIRST_PAGES:
        return FIRST_PAGES[path]
    inside = path.relative_to(ROOT)
    if inside.parts and inside.parts[0] == "docs" and (path.suffix in {".md", *PICTURES}):
        return "/".join(inside.parts[1:])
    name = "/".join(("repository", *inside.parts))
    if path.is_dir():
        return f"{name}/index.md"
    return name if path.suffix in {".md", *PICTURES} else f"{name}.md"


def shown(path: pathlib.Path) -> str:
    """Return a page that shows a file, or lists a folder."""
    title = f"# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        names = sorted(child.name for child in path.iterdir() if not child.name.startswith(("__", ".")))
        return BEHIND + title + "".join(f"- `{name}`\n" for name in names)
    if path.suffix == ".ipynb":
        return notebook(path)
    text = path.read_text("utf-8", errors="replace")
    return f"{BEHIND}{title}{fenced(text, LANGUAGES.get(path.suffix, ''))}"


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code, whose fence is longer than any in the text."""
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall(r"^`{3,}", text, re.MULTILINE)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def notebook(path: pathlib.Path) -> str:
    """Return a notebook as a page: its text, its code, and what it was committed with."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = source.replace(BADGE, os.path.relpath(ROOT / "docs/pictures/colab.svg", path.parent))
            parts.append(outside_code(source, with_formulas) + "\n")
            continue
        parts.append(fenced(source, "python"))
        for output in cell["outputs"]:
            if "text" in output:
                parts.append(fenced("".join(output["text"])))
            elif picture := output.get("data", {}).get("image/png"):
                parts.append(f'<img alt="" src="data:image/png;base64,{"".join(picture).replace(chr(10), "")}">\n')
    return "\n".join(parts)


def with_formulas(text: str) -> str:
    """Return a text with its formulas in LaTeX as MathML, which browsers draw without a script."""

    def drawn(match: re.Match) -> str:
        return convert(match["block"] or match["inline"], display="block" if match["block"] else "inline")

    return FORMULA.sub(drawn, text)
