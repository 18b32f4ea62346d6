"""A training program that runs only in its turns: between them all of its processes are stopped."""

import abc
import contextlib
import ctypes
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.errors import BenchmarkError
from benchmarks.multi30k import lines_of
from benchmarks.recipes.racing.memory import session_bytes

GLANCE = 0.5  # seconds between two looks at the checkpoints
LOOK_AT_MEMORY = 10  # in so many glances once
GRACE = 120  # seconds in which a contestant may write its last checkpoint
CONFIG = pathlib.Path("configs/multi30k.toml")  # what this project trains unless another one is named


class Task(NamedTuple):
    """What the contestants train on, and how."""

    text: pathlib.Path  # folder with train.LL and val.LL for both languages, a sentence per line
    tokenizer: pathlib.Path  # a SentencePiece model, of both languages
    config: pathlib.Path = CONFIG  # what this project trains, without its changes of text
    overrides: tuple[str, ...] = ()  # of the configuration
    languages: tuple[str, str] = ("en", "de")
    tokens_per_batch: int = 2048  # of target text
    d_model: int = 256
    d_ff: int = 512
    num_heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 3
    norm: str = "post"
    dropout: float = 0.25
    label_smoothing: float = 0.1
    warmup_steps: int = 1_000
    learning_rate_factor: float = 0.8
    beam_size: int = 5
    length_penalty: float = 1.0

    def lines(self, split: str, language: str) -> list[str]:
        """Return the sentences of "train" or "val" in one of the languages."""
        return lines_of((self.text / f"{split}.{language}").read_text(encoding="utf-8"))

    @property
    def peak_rate(self) -> float:
        """The largest learning rate (Vaswani et al. 2017, eq. 3)."""
        return self.learning_rate_factor * (self.d_model * self.warmup_steps) ** -0.5


class Contestant(abc.ABC):
    """A training program that keeps in `folder` what it needs to go on after a stop. Subclasses define its commands."""

    name: str
    label: str  # in tables and plots
    length_normalization: str  # how it divides scores of its beam: a key of SearchOptions
    stop_signal: int  # on which it writes a checkpoint and ends

    def __init__(self, folder: pathlib.Path, task: Task):
        self.folder, self.task = folder, task

    @property
    @abc.abstractmethod
    def note(self) -> str:
        """Markdown: its settings, and what it does otherwise than the other one."""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Return the command that begins training, or goes on from the newest checkpoint."""

    @abc.abstractmethod
    def checkpoints(self) -> dict[int, pathlib.Path]:
        """Return the complete checkpoints by step."""

    @abc.abstractmethod
    def tokens(self, checkpoint: pathlib.Path) -> int:
        """Return how many target tokens, EOS included, it was trained on until this checkpoint."""

    @abc.abstractmethod
    def translate(self, checkpoint: pathlib.Path, split: str) -> list[str]:
        """Return the translations of `split`, "val", by the weights of one checkpoint."""


def end_with_parent() -> None:
    """Let the system end this process if its parent is killed. Otherwise a stopped process would stay for good.

    On Linux; elsewhere it does nothing. Processes that this one has started stay, stopped: end them by their session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def child_hears_ctrl_c() -> Iterator[None]:
    """Within, a process that is started hears SIGINT, even if this one was started in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Runner:
    """The processes of one contestant. It is made stopped; only within `run_for` and `end` do they run.

    seconds: for which they have run, however a turn ended. memory_bytes: the largest memory of all of them that was
    seen in a turn, those that read text included. `at_checkpoint(step, path, seconds)` is called once for each
    checkpoint that is written while they run.
    """

    def __init__(self, contestant: Contestant):
        contestant.folder.mkdir(parents=True, exist_ok=True)
        self.contestant, self.log = contestant, contestant.folder / "log.txt"
        self.seconds, self.memory_bytes, self.known = 0.0, 0, set(contestant.checkpoints())
        with open(self.log, "ab") as log, child_hears_ctrl_c():
            self.process = subprocess.Popen(
                contestant.command(),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self._signal(signal.SIGSTOP)

    def run_for(self, seconds: float, at_checkpoint) -> None:
        """Let it run for a turn. Raises BenchmarkError if it ends by itself."""
        before, began, glances = self.seconds, time.monotonic(), itertools.count()
        self._signal(signal.SIGCONT)
        try:
            while (passed := time.monotonic() - began) < seconds:
                if next(glances) % LOOK_AT_MEMORY == 0:
                    self._look_at_memory()
                self._tell_new(at_checkpoint, before + passed)
                if self.process.poll() is not None:
                    raise BenchmarkError(
                        f"{self.contestant.label} ended with exit code {self.process.returncode}; see {self.log}."
                    )
                time.sleep(min(GLANCE, seconds - passed))
        finally:
            self._signal(signal.SIGSTOP)
            self.seconds = before + time.monotonic() - began
        self._look_at_memory()
        self._tell_new(at_checkpoint, self.seconds)

    def end(self, at_checkpoint) -> None:
        """Let it write a last checkpoint and end."""
        if self.process.poll() is not None:
            return
        before, began = self.seconds, time.monotonic()
        self.process.send_signal(self.contestant.stop_signal)
        self._signal(signal.SIGCONT)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self.seconds = before + time.monotonic() - began
        self._tell_new(at_checkpoint, self.seconds)

    def _tell_new(self, at_checkpoint, seconds: float) -> None:
        checkpoints = self.contestant.checkpoints()
        for step in sorted(set(checkpoints) - self.known):
            at_checkpoint(step, checkpoints[step], seconds)
            self.known.add(step)

    def _signal(self, number: int) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def _look_at_memory(self) -> None:
        self.memory_bytes = max(self.memory_bytes, session_bytes(self.process.pid))
