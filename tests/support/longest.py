"""Which files of tests take longest, so that no process is left alone with one at the end; and the count of laws."""

import collections
import json

from tests.support.places import ROOT

PATH = ROOT / "tests" / "longest.json"  # written by `make longest`
LEAST = 5  # seconds; the order of shorter files does not matter


def file_of(node):
    return node.partition("::")[0]


def longest_files():
    """The seconds of each long file, by its path."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


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

    def pytest_sessionfinish(self):
        if self.is_kept:
            files = {name: round(seconds) for name, seconds in self.seconds.most_common() if seconds >= LEAST}
            PATH.write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")
