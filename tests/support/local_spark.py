"""Spark as the commands of cluster/ call it, as lists in this process: no Java."""

import pathlib
import random
import re
import types

from tests.support.local_hadoop import SCHEME, local_context


class Parts:
    """What Spark calls an RDD, as lists: with the order of keys inside a part that Spark promises.

    stops_after: how many parts are saved before the one that raises `stop`; None: all are.
    """

    stops_after, stop = None, RuntimeError

    def __init__(self, parts):
        self.parts = parts

    def getNumPartitions(self):
        return len(self.parts)

    def mapPartitionsWithIndex(self, function):
        return Parts([list(function(number, iter(part))) for number, part in enumerate(self.parts)])

    def mapPartitions(self, function):
        return self.mapPartitionsWithIndex(lambda number, part: function(part))

    def map(self, function):
        return self.mapPartitions(lambda part: map(function, part))

    def repartitionAndSortWithinPartitions(self, count, part_of):
        pairs = [pair for part in self.parts for pair in part]
        random.Random(1).shuffle(pairs)  # they come from several machines
        return Parts([sorted(pair for pair in pairs if part_of(pair[0]) % count == part) for part in range(count)])

    def values(self):
        return self.mapPartitions(lambda part: (value for _, value in part))

    def zip(self, other):
        return Parts([list(zip(*both, strict=True)) for both in zip(self.parts, other.parts, strict=True)])

    def collect(self):
        return [item for part in self.parts for item in part]

    def count(self):
        return len(self.collect())

    def fold(self, zero, function):
        for item in self.collect():
            zero = function(zero, item)
        return zero

    def saveAsTextFile(self, folder):
        folder = pathlib.Path(folder.removeprefix(SCHEME))
        folder.mkdir()
        for number, part in enumerate(self.parts):
            if number == Parts.stops_after:
                raise Parts.stop
            (folder / f"part-{number:05}").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")


class LocalSpark:
    """A SparkContext over the files of this machine; `asked` has what it was told."""

    def __init__(self, cores=2, stages=()):
        self.asked, self.defaultParallelism, self.stages = [], cores, dict(enumerate(stages))
        hadoop = local_context()
        self._jvm, self._jsc = hadoop._jvm, hadoop._jsc

    def __getattr__(self, name):
        return lambda *arguments: self.asked.append((name, *arguments))

    def textFile(self, paths, parts=None):
        lines = []
        for path in re.split(r"(?<!\\),", paths):
            file = pathlib.Path(re.sub(r"\\(.)", r"\1", path).removeprefix(SCHEME))
            lines += file.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n") * bool(
                file.stat().st_size
            )
        size = -(-len(lines) // (parts or 1)) or 1
        return Parts([lines[first : first + size] for first in range(0, size * (parts or 1), size)])

    def parallelize(self, items, parts):
        return Parts([items])

    def statusTracker(self):
        return types.SimpleNamespace(getActiveStageIds=lambda: list(self.stages), getStageInfo=self.stages.get)
