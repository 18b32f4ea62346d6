"""A contestant as a program that translates standard input, to time its start: lines of output as soon as possible."""

import sys

from benchmarks.speed.translators import Setting, Translates

GROUP = 32  # lines translated before the first are printed


def translate_stdin(contestant: Translates, setting: Setting, arguments: list[str]) -> None:
    """Translate standard input with a beam of 4. The one argument: tokens per output, or 0 for "until the end"."""
    forced = int(arguments[0]) or None
    lines = sys.stdin.read().splitlines()
    for first in range(0, len(lines), GROUP):
        texts = contestant.translate(lines[first : first + GROUP], 4, forced, setting)
        print("\n".join(texts), flush=True)
