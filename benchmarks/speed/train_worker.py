"""A contestant that trains, in a process of its own."""

import time
from typing import NamedTuple

from benchmarks.speed.contestants.workload import Workload
from benchmarks.speed.processes import ContestantProcess, prepare_for_cpu

WARM_UP = 2  # steps in which everything is compiled


class Description(NamedTuple):
    """What a contestant reports when it is ready."""

    work: dict[str, float]  # of one step, by lane
    parameters: int | None
    loss: float | None  # at the starting weights


class Turn(NamedTuple):
    """What a contestant reports after some steps."""

    seconds: float
    waited: float  # seconds since the end of its previous turn
    used: float  # seconds of processor time while it waited


class Worker(ContestantProcess):
    """A contestant that trains. Workers get ready side by side; after that, one runs at a time."""

    def __init__(self, contestant: str, workload: Workload):
        super().__init__(Training, contestant, workload)

    def describe(self) -> Description:
        """Wait until the contestant is ready, and return what it is."""
        self.wait_until_ready()
        return self.ask("describe")

    def run(self, lane: str, steps: int) -> Turn:
        """Run that number of steps and wait for their end."""
        return self.ask("run", lane, steps)


class Training:
    """The contestant in its process."""

    def __init__(self, name: str, workload: Workload):
        from keras_transformer.ground.imports import quiet_imports
        from keras_transformer.ground.memory import keep_freed_memory

        prepare_for_cpu()
        keep_freed_memory()  # as `keras-transformer train` does; the others gain by it too
        with quiet_imports():
            from benchmarks.speed.contestants import prepare

            self.contestant = prepare(name, workload)
            for lane in self.contestant.lanes.values():
                lane.run(WARM_UP)
        self._wait()

    def describe(self) -> Description:
        work = {name: lane.work for name, lane in self.contestant.lanes.items()}
        return Description(work, self.contestant.parameters, self.contestant.loss)

    def run(self, name: str, steps: int) -> Turn:
        waited = time.perf_counter() - self.waiting_from
        used = time.process_time() - self.used_from
        lane = self.contestant.lanes[name]
        lane.run(1)  # untimed: after a wait the caches hold the data of other contestants
        started = time.perf_counter()
        lane.run(steps)
        seconds = time.perf_counter() - started
        self._wait()
        return Turn(seconds, waited, used)

    def _wait(self) -> None:
        self.waiting_from, self.used_from = time.perf_counter(), time.process_time()
