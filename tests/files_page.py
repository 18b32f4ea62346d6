"""Write docs/files.md, a line per file of the four folders of source: `python -m tests.files_page`."""

import ast
import pathlib
import subprocess

from tests.support.places import ROOT

PAGE = ROOT / "docs" / "files.md"
FOLDERS = "keras_transformer", "train", "export", "cluster"
HEAD = """# The files

For whoever looks for the place of something: each file of the source with the first line of its docstring. The ideas
behind them, and which room may import which, are in [architecture.md](architecture.md).

`python -m tests.files_page` writes this page; a test compares it with the files.
"""


def first_line(path: pathlib.Path) -> str:
    """Return the first line of a module's docstring; "" if it has none."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def page() -> str:
    """Return the page: a block per folder with its files in alphabetical order."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for line in listed.split() if line.endswith(".py") and (path := ROOT / line).exists()]
    parts = [HEAD]
    for folder in sorted({path.parent for path in paths}, key=lambda each: each.relative_to(ROOT).parts):
        of_folder = sorted(path for path in paths if path.parent == folder)
        width = max(len(path.name) for path in of_folder)
        lines = [f"{path.name:{width}}  {line}" for path in of_folder if (line := first_line(path))]
        parts.append("\n".join([f"## {folder.relative_to(ROOT)}/\n", "```", *lines, "```\n"]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
