"""What runs in the contestants' processes: each framework has one of its own, since each wants the whole GPU."""

import os

from benchmarks.speed.on_accelerator.chip import Chip, measure_chip
from benchmarks.speed.on_accelerator.task import CONTESTANTS, Round, Task

WARM_UP = 3  # steps, in which everything is compiled


class Training:
    """A contestant. It is ready when everything is compiled."""

    def __init__(self, name: str, task: Task):
        contestant = CONTESTANTS[name]
        if contestant.framework == "torch":  # imported here, since each needs another framework
            from benchmarks.speed.on_accelerator.torch_compiled import TorchCompiled

            self.training = TorchCompiled(task, contestant)
        else:
            from benchmarks.speed.on_accelerator.keras_fit import KerasFit

            self.training = KerasFit(task, contestant)
        self.training.round(WARM_UP)

    def round(self, steps: int) -> Round:
        """Train for that number of steps."""
        return self.training.round(steps)


class Measuring:
    """What measures the device."""

    def __init__(self, name: str):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

    def chip(self) -> Chip:
        return measure_chip()
