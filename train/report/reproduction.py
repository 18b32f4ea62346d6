"""How a run can be done again: the command, the seed, and the commit of the code."""

import shlex

from keras_transformer.runs.run_folder import RunFolder

from ..config.training import TrainingConfig
from ..record.history import Part, history


def reproduction_lines(folder: RunFolder, training: TrainingConfig) -> list[str]:
    """Lines of Markdown: the commands that repeat the run, and what they need for the same result.

    Commits are those of the run's history; a run from before there was a history has none.
    """
    parts = distinct(history(folder))
    name = folder.path.name
    lines = ["```"]
    if parts and parts[-1].commit:
        lines.append(f"git checkout {parts[-1].commit.partition(' ')[0]}")
    start = f"Its first weights are those of {training.start_from}. " if training.start_from else ""
    decided = "the order of the text" if training.start_from else "the first weights, the order of the text"
    repeated = "" if len(parts) < 2 else ", if the same is changed at the same steps"
    lines += [
        shlex.join(["keras-transformer", "train", folder.config.name, "--set", f"run_folder=runs/{name}_again"]),
        "```",
        "",
        f"`{folder.config.name}` is the configuration at the end of this page, with every override and default; save "
        f"it under that name first. {start}Its seed, {training.seed}, decides {decided} and dropout: the same text, "
        f"packages and processor give the same weights, on CPUs bit for bit{repeated}.",
        "",
    ]
    if len(parts) < 2:
        return [*lines, f"Commit: {named(parts[0].commit if parts else None)}."]
    return [*lines, "It was trained", "", *map(part_line, parts)]


def distinct(parts: list[Part]) -> list[Part]:
    """The parts without those that went on with the code and the configuration of the part before."""
    return [
        part
        for number, part in enumerate(parts)
        if number == 0 or part.changes or part.commit != parts[number - 1].commit
    ]


def part_line(part: Part) -> str:
    """An item of a list: where a part begins, its commit, what it changed."""
    changes = [f"; `{key}` was {before} and is {after}" for key, (before, after) in part.changes.items()]
    return f"- from step {part.step:,} on, commit {named(part.commit)}{''.join(changes)}"


def named(commit: str | None) -> str:
    """A commit as people read it."""
    return commit or "not known, since the code was not in a git checkout"
