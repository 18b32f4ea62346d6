"""The interpreters of a LiteRT file. Importing this module imports neither TensorFlow nor Keras."""

import concurrent.futures
import contextlib
import importlib.util
import pathlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keras_transformer.ground.errors import ConfigError, first_line_of
from keras_transformer.lite.notice import without_notice
from keras_transformer.lite.one_signature import one_signature
from keras_transformer.runs.lite_folder import ALIGN, DESCRIPTION, Room, why_damaged

T = TypeVar("T")

KEPT = 10  # idle interpreters per thread: as many as there are rooms, of one sentence and of several


class InterpreterPool:
    """The interpreters of one file, each of which has one signature and one thread and serves one call at a time.

    They are made when they are needed. Of the idle ones, KEPT per thread stay, those that were used last.
    """

    def __init__(self, model: pathlib.Path, size: int, sha256: str | None = None):
        self._model, self._size = model, size
        self._file = read_model(model, sha256)
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()  # of what follows
        self._idle: list[Idle] = []  # the one that was used last is the last
        self._contents: dict[str, bytes] = {}  # by signature: what its interpreters share

    def prepare(self, room: Room) -> None:
        """Make an interpreter for a room, so that the first sentence does not wait for it.

        LiteRT's notice comes then, and only for the first one of a process.
        """
        with without_notice(), self._taken(room.signature):
            pass

    def run(self, room: Room, source_ids: np.ndarray, n_best: int, **rules: np.ndarray) -> dict[str, np.ndarray]:
        """Search for the sentences of a room, int32 (rows, tokens): see `lite_model`."""
        return self._call(room.signature, source_ids=source_ids, n_best=np.full(room.rows, n_best, np.int32), **rules)

    def attention(self, source_ids: np.ndarray, target_ids: np.ndarray) -> np.ndarray:
        """Return the attention that aligns an output: int32 (1, S) and (1, T) -> float32 (1, T, S)."""
        return self._call(ALIGN, source_ids=source_ids, target_ids=target_ids)["attention"]

    def _call(self, signature: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        with self._taken(signature) as runner:
            try:
                return runner(**inputs)
            except (ValueError, RuntimeError) as error:
                raise ConfigError(
                    f"{self._model} cannot be run as {DESCRIPTION} and the tokenizer beside it say: "
                    f"{first_line_of(error)} Export the run again."
                ) from None

    def map(self, work: Callable[[T], None], pieces: Iterable[T]) -> None:
        """Call `work` for each piece, as many at once as there are threads."""
        pieces = list(pieces)
        if len(pieces) <= 1 or self._size == 1:
            for piece in pieces:
                work(piece)
            return
        with concurrent.futures.ThreadPoolExecutor(self._size) as executor:
            for _ in executor.map(work, pieces):
                pass

    @contextlib.contextmanager
    def _taken(self, signature: str) -> Iterator[Any]:
        """Within, nobody else has the interpreter that runs a signature."""
        with self._free:
            idle = self._take(signature)
            try:
                yield idle.runner
            finally:
                self._put_back(idle)

    def _take(self, signature: str) -> "Idle":
        with self._lock:
            for idle in reversed(self._idle):
                if idle.signature == signature:
                    self._idle.remove(idle)
                    return idle
            if signature not in self._contents:
                try:
                    self._contents[signature] = one_signature(bytearray(self._file), signature)
                except ValueError as error:
                    raise cannot_be_opened(self._model, error) from None
            content = self._contents[signature]
        return Idle(signature, runner_of(self._model, content, signature))

    def _put_back(self, idle: "Idle") -> None:
        with self._lock:
            self._idle.append(idle)
            del self._idle[: -KEPT * self._size]
            kept = {each.signature for each in self._idle}
            self._contents = {name: content for name, content in self._contents.items() if name in kept}


class Idle(NamedTuple):
    """An interpreter that nobody has: what runs its signature, and owns the memory that it needs."""

    signature: str
    runner: Any


def require_litert() -> None:
    """Raises ConfigError if LiteRT is not installed."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise ConfigError(
            "LiteRT models need the package ai-edge-litert, which is not installed: "
            "pip install 'keras-transformer-mt[litert]'."
        )


def read_model(model: pathlib.Path, sha256: str | None = None) -> bytes:
    """Return the file. Raises ConfigError if it cannot be read or is damaged, or if LiteRT is not installed.

    It is not mapped: whoever empties or overwrites a file that is mapped ends the process (SIGBUS).
    """
    require_litert()
    try:
        content = model.read_bytes()
        if why := why_damaged(content, sha256):
            raise ValueError(why)
        return content
    except (OSError, ValueError) as error:
        raise cannot_be_opened(model, error) from None


def runner_of(model: pathlib.Path, content: bytes, signature: str) -> Any:
    """Return what runs the only signature of a file, with one thread. Raises ConfigError if the file is damaged."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(model_content=content, num_threads=1)
        interpreter.allocate_tensors()  # otherwise the first call does, and takes longer
        return interpreter.get_signature_runner(signature)
    except (ValueError, RuntimeError) as error:
        raise cannot_be_opened(model, error) from None


def cannot_be_opened(model: pathlib.Path, error: Exception) -> ConfigError:
    """Return the error of a file that LiteRT refuses."""
    return ConfigError(f"{model} cannot be opened: {first_line_of(error)} Export the run again.")
