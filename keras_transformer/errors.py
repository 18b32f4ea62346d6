"""The two ways in which a command ends before its work is done, as the roots of all exceptions that do it."""


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
