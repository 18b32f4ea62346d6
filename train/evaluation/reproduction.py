"""How a run can be done again: the command, the seed, and the commit of the code."""

import pathlib
import shlex
import subprocess

from keras_transformer.run_folder import RunFolder

CHECKOUT = pathlib.Path(__file__).parents[2]


def reproduction_lines(folder: RunFolder, seed: int, checkout: pathlib.Path = CHECKOUT) -> list[str]:
    """Lines of Markdown: the commands that repeat the run, and what they need for the same result."""
    found = commit(checkout)
    name = folder.path.name
    command = ["python", "-m", "train", str(folder.config), "--set", f"run_folder=runs/{name}_again"]
    lines = ["```"]
    if found:
        lines.append(f"git checkout {found.partition(' ')[0]}")
    lines += [
        shlex.join(command),
        "```",
        "",
        f"`{folder.config.name}` is the configuration at the end of this page, with every override and default. Its "
        f"seed, {seed}, decides the first weights, the order of the text and dropout: the same text, packages and "
        "processor give the same weights, bit for bit.",
    ]
    return [*lines, "", f"Commit: {found or 'not known, since the code was not in a git checkout'}."]


def commit(checkout: pathlib.Path) -> str | None:
    """The commit that is checked out in the folder, "with uncommitted changes" if it has any; None outside git.

    A folder inside the checkout of another project has no commit of its own.
    """
    top = git(checkout, "rev-parse", "--show-toplevel")
    if top is None or pathlib.Path(top).resolve() != checkout.resolve():
        return None
    found = git(checkout, "rev-parse", "HEAD")
    changes = git(checkout, "status", "--porcelain", "--untracked-files=no")
    return f"{found} with uncommitted changes" if found and changes else found


def git(checkout: pathlib.Path, *arguments: str) -> str | None:
    """What a git command prints; None if it fails or git is not installed."""
    try:
        found = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
