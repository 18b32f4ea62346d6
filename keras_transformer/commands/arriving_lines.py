"""Lines of standard input as they arrive, from a file, a person or a program that waits for the answer to each."""

import collections
import io
import select
from typing import BinaryIO, Self

from keras_transformer.ground import files

PIECE = 1 << 16  # bytes that are read at once: what a pipe of Linux holds
PATIENCE = 0.02  # seconds in which a program that is writing has written more


class ArrivingLines:
    r"""The lines of a binary stream, each with its "\n", which tell whether the next one is there yet.

    A line that is longer than `files.LONGEST_LINE` comes in pieces that are longer than that. The stream must not be
    read by others. One that cannot be waited for, as one in memory, has all its lines.
    """

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._lines: collections.deque[bytes] = collections.deque()
        self._rest: list[bytes] = []  # of a line whose end has not come
        self._length = 0  # of all of it, in bytes
        self._has_ended = False
        try:
            self._descriptor: int | None = stream.fileno()
        except (io.UnsupportedOperation, AttributeError):
            self._descriptor = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        while not self._lines and not self._has_ended:
            self._read()
        if not self._lines:
            raise StopIteration
        return self._lines.popleft()

    def are_awaited(self) -> bool:
        """Return whether the next line has not come, after PATIENCE. False at the end of the stream."""
        while not self._lines and not self._has_ended:
            if self._descriptor is not None and not select.select([self._descriptor], [], [], PATIENCE)[0]:
                return True
            self._read()
        return False

    def _read(self) -> None:
        """Read what is there; wait if nothing is."""
        piece = self._stream.read1(PIECE)  # type: ignore[attr-defined]  # of BufferedReader and BytesIO
        if piece and b"\n" not in piece and self._length <= files.LONGEST_LINE:
            self._rest.append(piece)
            self._length += len(piece)
            return
        *lines, rest = b"".join([*self._rest, piece]).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)
        self._rest, self._has_ended, self._length = [rest] if rest else [], not piece, len(rest)
        if self._rest and (self._has_ended or self._length > files.LONGEST_LINE):
            self._lines.append(self._rest.pop())
            self._length = 0
