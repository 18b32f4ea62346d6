"""Which files of tests take longest, to begin with them; how many laws held; and which files are long."""

import collections
import json

from tests.support.imports import EVERY_FILE
from tests.support.places import ROOT

PATH = ROOT / "tests" / "longest.json"  # written by `make longest`
LEAST = 5  # seconds; the order of shorter files does not matter
MANY_LINES = 300  # a longer file may tell two stories


def file_of(node):
    return node.partition("::")[0]


def longest_files():
    """The seconds of each long file, by its path."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def warning_of_long_files():
    """One line that names the files of more than MANY_LINES lines, or None."""
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in EVERY_FILE.items()}
    long = [f"{name} ({length})" for name, length in lengths.items() if length > MANY_LINES]
    return f"warning: more than {MANY_LINES} lines: {', '.join(long)}" if long else None


class Longest:
    """A plugin that adds up the seconds of each file, and prints how many laws were tested in how many cases."""

    def __init__(self, is_kept):
        self.is_kept, self.seconds, self.nodes = is_kept, collections.Counter(), set()

    def pytest_runtest_logreport(self, report):
        self.seconds[file_of(report.nodeid)] += report.duration
        if report.when == "call" and report.passed:
            self.nodes.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter):
        laws = {node.partition("[")[0] for node in self.nodes}
        terminalreporter.write_line(f"{len(laws):,} laws hold, in {len(self.nodes):,} cases")
        if warning := warning_of_long_files():
            terminalreporter.write_line(warning)

    def pytest_sessionfinish(self):
        if self.is_kept:
            files = {name: round(seconds) for name, seconds in self.seconds.most_common() if seconds >= LEAST}
            PATH.write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")
