"""The roots of all exceptions that end a command before its work is done, and what a message says of any other."""

import os
import re


class UserError(ValueError):
    """A mistake that the user can correct. The message is one sentence: what was asked, what was found, what to do.

    Commands print the message without a traceback and exit with code 1.
    """


class ConfigError(UserError):
    """A configuration that makes no sense; the message names the field, what was found and what is allowed."""


class Interrupted(Exception):
    """Work that stopped before its end and continues when the same command is run again; the message says why.

    Commands print the message and exit with code 75, EX_TEMPFAIL of sysexits.h.
    """


class InputError(UserError):
    """Text that cannot be read; the message names the file, the line and the cause."""


def first_line_of(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its class if it has none, ending in a period.

    Of an error of the operating system, it is the file, if there is one, and the reason, without the number.
    """
    line = (message_of(error) or type(error).__name__).partition("\n")[0]
    return line.rstrip(".") + "."


def message_of(error: BaseException) -> str:
    """Return an exception's message; of an OSError "FILE: Is a directory", not "[Errno 21] Is a directory: FILE"."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error).strip()
    reason = error.strerror
    if error.errno is not None and "errno = " in reason:  # of HDF5, which writes its own arguments around it
        reason = os.strerror(error.errno)
    return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"


def message_of_the_graph(message: str) -> str:
    """Return the first root error in a message of TensorFlow's runtime, without the node that raised it."""
    roots = re.search(r"^\s*\(0\) ?\w+: (.*)", message, re.MULTILINE)  # "2 root error(s) found."
    text = roots[1] if roots else re.split(r"\n?\s*\[\[\{\{node ", message)[0].strip()
    text = re.sub(r"^Graph execution error:\s*", "", text)
    if failed := re.search(r"assertion failed: \[(.*?)\]((?: \[.*)?)$", text, re.DOTALL):
        text = failed[1] + failed[2]  # the sentence, and values in brackets, without the place in the graph before them
    return " ".join(text.split())
