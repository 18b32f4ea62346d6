"""Record `make try` as an animated picture for the README, docs/pictures/try.svg: `python -m tests.record_try`."""

import os
import pty
import re
import subprocess
import time
from typing import NamedTuple

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.support.places import ROOT

PICTURE = ROOT / "docs" / "pictures" / "try.svg"
COMMAND = "make try"
SENTENCES = (
    "A dog runs across the field.",
    "Two women are talking on a bench.",
    "A man in a red jacket is climbing a snowy mountain.",
)
KEY = 0.045  # seconds from one typed letter to the next
LONGEST_PAUSE = 1.5  # seconds of the picture: while a longer one passed, nothing happened
REST = 4.0  # seconds after the last line, before the picture begins again
LETTER = 12.2  # width of a letter, as rich draws
FONT = "SFMono-Regular, Consolas, DejaVu Sans Mono, monospace"  # of the reader: nothing is loaded from elsewhere


class Line(NamedTuple):
    """A line of the terminal, and when it appeared, in seconds. A typed one appears letter by letter."""

    at: float
    text: str
    is_typed: bool


def record() -> list[Line]:
    """Run the command in a terminal, type the sentences, and return what stood there. It needs the folder .try."""
    reader, terminal = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen(["make", "--silent", "try"], cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    lines = [Line(0.0, f"$ {COMMAND}", True)]
    lines.append(Line(time.monotonic() - began, answer_of(reader), False))
    for sentence in SENTENCES:
        lines.append(Line(time.monotonic() - began, sentence, True))
        os.write(reader, f"{sentence}\n".encode())
        answer_of(reader)  # the terminal's echo
        lines.append(Line(time.monotonic() - began, answer_of(reader), False))
    os.write(reader, b"\x04")  # Ctrl-D
    process.wait()
    return lines


def answer_of(reader: int) -> str:
    """Return the next line of the terminal."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(reader, 1)
    return line.decode().strip()


def played(lines: list[Line]) -> list[Line]:
    """Return the lines with the times of the picture: typing takes its time, and long pauses are cut."""
    clock, before, result = 0.0, 0.0, []
    for line in lines:
        clock += min(max(line.at - before, 0.0), LONGEST_PAUSE)
        before = line.at
        result.append(line._replace(at=clock))
        clock += KEY * len(line.text) + 0.4 if line.is_typed else 0.8
    return result


def picture(lines: list[Line]) -> str:
    """Return the lines as an animated SVG, drawn by rich. A viewer without animation shows the last state."""
    lines = played(lines)
    seconds = lines[-1].at + REST
    columns = max(len(line.text) for line in lines) + 1
    console = Console(record=True, width=columns, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for line in lines:
        console.print(Text(line.text, style="" if line.is_typed else "green"), no_wrap=True)
    console.print()  # rich clips all lines but the last one
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
        "Fira Code, monospace", FONT
    )
    drawn = console.export_svg(title=COMMAND, theme=MONOKAI, code_format=plain, unique_id="try")
    for number, line in enumerate(lines):
        drawn = animated(drawn, number, line, seconds)
    return re.sub(r"\n\s*\n+", "\n", drawn)


def animated(drawn: str, number: int, line: Line, seconds: float) -> str:
    """Return the SVG with line `number` hidden until its time, by the width of the rectangle that clips it."""
    shown = [(line.at, len(line.text) * LETTER)]
    if line.is_typed:
        shown = [(line.at + KEY * count, count * LETTER) for count in range(1, len(line.text) + 1)]
    times = ";".join(f"{at / seconds:.4f}" for at in (0.0, *(at for at, _ in shown)))
    widths = ";".join(f"{each:.0f}" for each in (0.0, *(each for _, each in shown)))
    change = (
        f'<animate attributeName="width" calcMode="discrete" dur="{seconds:.1f}s" repeatCount="indefinite" '
        f'keyTimes="{times}" values="{widths}"/>'
    )
    clip = re.compile(rf'(<clipPath id="try-line-{number}">\s*<rect [^>]*?)\s*/>')
    return clip.sub(rf"\1>{change}</rect>", drawn, count=1)


if __name__ == "__main__":
    PICTURE.write_text(picture(record()), encoding="utf-8")
