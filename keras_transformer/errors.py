"""The roots of all exceptions that end a command before its work is done: UserError and Interrupted."""


class UserError(ValueError):
    """A mistake that the user can correct. The message is one sentence: what was asked, what was found, what to do.

    Commands print the message without a traceback and exit with code 1.
    """


class Interrupted(Exception):
    """Work that stopped before its end and continues when the same command is run again; the message says why.

    Commands print the message and exit with code 75, EX_TEMPFAIL of sysexits.h.
    """


class InputError(UserError):
    """Text that cannot be read; the message names the file, the line and the cause."""


def first_line_of(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its class if it has none, ending in a period."""
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return line.rstrip(".") + "."
