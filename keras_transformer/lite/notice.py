"""The line that LiteRT prints to stderr at its first use is of no use to anybody; errors beside it are."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator

from keras_transformer.ground.files import stderr_into

NOTICE = b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU."

lock = threading.Lock()  # two threads that redirect stderr at once would not find it again


@contextlib.contextmanager
def without_notice() -> Iterator[None]:
    """Within, LiteRT does not print that it computes on the processor; what else goes to stderr is printed at the end.

    LiteRT's C++ has a log level, its Python has none (ai-edge-litert 2.3.0).
    """
    with lock, tempfile.TemporaryFile() as held:
        try:
            with stderr_into(held):
                yield
        finally:
            held.seek(0)
            for line in held:
                if line.rstrip() != NOTICE:
                    os.write(2, line)
