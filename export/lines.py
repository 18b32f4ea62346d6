"""Text from strangers: lines of UTF-8, in and out."""

import codecs
import re

from export.versions import ExportError


def read_lines(stream, name):
    """The lines of a binary stream of UTF-8, ended by LF or CRLF: a generator of str.

    Raises ExportError, with `name` and the number of the line, for bytes that are not UTF-8.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ExportError(
                f"Line {number} of {name} is not UTF-8: its byte {error.start + 1} is 0x{line[error.start]:02x}. "
                "Convert it first, for example with `iconv -f LATIN1 -t UTF-8`."
            ) from None


def on_one_line(text):
    """A line break inside a translation becomes a space, so that a line stays a line."""
    return re.sub(r"[\r\n]+", " ", text)
