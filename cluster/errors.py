"""The error of every command that runs on Spark."""

import re
import sys

from keras_transformer.ground.errors import UserError

NAMED = re.compile(r"^(?:Caused by: )?(?:[\w.$]+\.)?(\w*(?:Error|Exception)\w*: .+)$", re.MULTILINE)

OF_GZIP = re.compile(
    r"not a gzip file|(?:invalid|incorrect) (?:block|bit|code|data|distance|header|length|literal|stored)"
)


class ClusterError(UserError):
    """What keeps a command from running on Spark, or ended it; the message gives the reason."""


def cause_of(error: BaseException) -> str:
    """Return the line of an exception of Spark that names the cause: the last error in its traces.

    Spark's message holds the trace of Python on a worker, then those of Java.
    """
    text = str(error)
    python = re.findall(r"^(\w[\w.]*(?:Error|Exception|Exit)\w*: .+)$", text.partition("\n\tat ")[0], re.MULTILINE)
    program = re.findall(r'IOException: Cannot run program "[^"]*"', text)  # Java's last cause lacks the name
    lines = (
        python[-1:]
        or program[:1]
        or NAMED.findall(text)[-1:]
        or [text.strip().partition("\n")[0] or type(error).__name__]
    )
    return lines[0].strip().rstrip(".") + "."


def sentence_of_worker(cause: str) -> str | None:
    """Return what a user can do about an error of Python on a worker; None if it is no known one."""
    kind, _, message = cause.partition(": ")
    if kind.endswith((".ClusterError", ".ConfigError")):
        return message
    if missing := re.search(r"No module named '(\w+)", message):
        return f"Python on a worker has no module {missing[1]}: install it on all of them."
    if "[PYTHON_VERSION_MISMATCH]" in message:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"Python on a worker is not Python {here}, as here: let PYSPARK_PYTHON name one that is on all of them."
    if kind.endswith("ChecksumException"):
        return (
            f"A file is damaged: {message} If it is a part of the output, remove it and run the same command again, "
            "which makes it anew; a file of the input has to be copied again."
        )
    if kind.endswith(("EOFException", "ZipException")) or OF_GZIP.match(message):
        return f"A compressed file of the input is damaged or has no end ({message.rstrip('.')}): `gzip -t` finds it."
    if program := re.search(r'Cannot run program "(.*?)"', message):
        return f"A worker has no program {program[1]}: let PYSPARK_PYTHON name the Python of the workers."
    return None
