"""Standard output as an output of a file."""

import io

from keras_transformer.commands.resumed_output import StandardOutput


def test_what_is_written_is_seen_at_once():
    """A reader at the other end of a pipe waits for no buffer to fill."""
    seen = io.BytesIO()
    buffered = io.BufferedWriter(seen)
    StandardOutput(buffered).write(["part"], ["ä", "b"])
    assert seen.getvalue() == "äb".encode()
