"""A contestant in a process of its own, which works when it is told to and sleeps in between."""

import multiprocessing
import os
import signal
import time
from typing import NamedTuple

from keras_transformer.errors import UserError

WARM_UP = 2  # steps: whatever is compiled, is compiled in these

GRACE = 10  # seconds in which a contestant may end by itself


class BenchmarkError(UserError):
    """A benchmark that cannot be run; the message says what is missing and what to do."""


class Description(NamedTuple):
    """What a ready contestant says of itself."""

    work: dict[str, float]  # of a step, by lane
    parameters: int | None
    loss: float | None


class Turn(NamedTuple):
    """What a contestant says after some steps."""

    seconds: float
    waited: float  # seconds since the end of its last turn
    used: float  # seconds of processor time in these


class Worker:
    """The near end. All start at once and get ready side by side; after that, one at a time is told to run."""

    def __init__(self, contestant, workload):
        self.name = contestant
        context = multiprocessing.get_context("spawn")  # a fork would share the threads of what is already imported
        self.connection, far_end = context.Pipe()
        self.process = context.Process(target=serve, args=(far_end, contestant, workload), daemon=True)
        self.process.start()
        far_end.close()

    def describe(self):
        """Wait until it is ready. Returns its Description."""
        return self._ask()

    def run(self, lane, steps):
        """Let it do so many steps. Returns the Turn."""
        return self._ask(lane, steps)

    def dismiss(self):
        """Tell it that nothing more will be asked, and wait for its end."""
        self.connection.close()
        self.process.join(GRACE)

    def kill(self):
        """End it whatever it is doing, if it has not ended yet."""
        self.process.kill()
        self.process.join()

    def _ask(self, *order):
        try:
            if order:
                self.connection.send(order)
            return self.connection.recv()
        except (EOFError, OSError):  # nobody at the far end
            self.process.join()
            raise BenchmarkError(
                f"{self.name} ended with exit code {self.process.exitcode} (-9: killed, as when memory runs out). What "
                "it said is above; --contestants leaves it out."
            ) from None


def serve(connection, contestant, workload):
    """The far end: get ready, then run what is asked for until the near end is gone."""
    from keras_transformer.console import prepare_process, quiet_start

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the near end, which then ends this one
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # processors are compared
    prepare_process()
    with quiet_start():
        from benchmarks.contestants import prepare

        lanes, parameters, loss = prepare(contestant, workload)
        for lane in lanes.values():
            lane.run(WARM_UP)
    connection.send(Description({name: lane.work for name, lane in lanes.items()}, parameters, loss))
    while True:
        waiting_from, used_from = time.perf_counter(), time.process_time()
        try:
            name, steps = connection.recv()
        except EOFError:
            return
        waited, used = time.perf_counter() - waiting_from, time.process_time() - used_from
        lanes[name].run(1)  # finds what others have left in the caches; training does not wait between steps
        started = time.perf_counter()
        lanes[name].run(steps)
        connection.send(Turn(time.perf_counter() - started, waited, used))
