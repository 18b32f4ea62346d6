"""Why a request gets no result: a status code of gRPC, the HTTP status of the same reason, and a sentence."""

import enum
import logging
import traceback

import tensorflow as tf

from keras_transformer.ground.errors import UserError, message_of_the_graph

log = logging.getLogger("export.server")


LONGEST_MESSAGE = 1000  # bytes of a sentence
LONGEST_NAME = 60  # characters of a name that a request has, in sentences and logs
FAILED, NO_MEMORY = "The server failed at this request.", "There is not enough memory for this request."


class Code(enum.Enum):
    """The status codes of gRPC that this server sends: number, and the HTTP status of the same reason."""

    CANCELLED = 1, 499
    UNKNOWN = 2, 500
    INVALID_ARGUMENT = 3, 400
    DEADLINE_EXCEEDED = 4, 504
    NOT_FOUND = 5, 404
    PERMISSION_DENIED = 7, 403
    RESOURCE_EXHAUSTED = 8, 503
    FAILED_PRECONDITION = 9, 400
    UNIMPLEMENTED = 12, 501
    INTERNAL = 13, 500
    UNAVAILABLE = 14, 503
    UNAUTHENTICATED = 16, 401

    @property
    def number(self) -> int:
        return self.value[0]

    @property
    def http_status(self) -> int:
        return self.value[1]


class RequestError(Exception):
    """A request that gets no result. `http_status` replaces that of the code, for reasons that gRPC does not have.

    Of the message, there are LONGEST_MESSAGE bytes: a longer trailer of gRPC would be refused by clients, and tried
    again.
    """

    def __init__(self, code: Code, message: str, http_status: int | None = None):
        message = message.encode("utf-8", "replace")[:LONGEST_MESSAGE].decode("utf-8", "ignore")
        super().__init__(message)
        self.code, self.message = code, message
        self.http_status = http_status or code.http_status


def shown(name: str) -> str:
    """Return a name of a request as sentences and logs have it: the beginning of a long one."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def invalid(message: str) -> RequestError:
    """Return the error of a request that its sender must change."""
    return RequestError(Code.INVALID_ARGUMENT, message)


def unimplemented() -> RequestError:
    """Return the error of a classification or a regression, for which no export of a translator has a signature."""
    return RequestError(Code.UNIMPLEMENTED, "This server answers Predict, and neither Classify nor Regress.")


def too_big(most: int) -> RequestError:
    """Return the error of a request whose answer has more than `most` bytes."""
    return invalid(f"The answer has more than {most} bytes, the most here: ask for fewer or shorter lines.")


def answered_as(error: Exception) -> RequestError:
    """Return any error of a request as the one that its client gets; log a fault of this server."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, UserError):
        return invalid(str(error))
    log.error("a request failed: %s", place_of(error))
    if isinstance(error, MemoryError):
        return RequestError(Code.RESOURCE_EXHAUSTED, NO_MEMORY)
    return RequestError(Code.INTERNAL, FAILED)


def place_of(error: BaseException) -> str:
    """Return the kind of an error and where it was raised, without its message, which may have a request's text."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return "".join([type(error).__name__, *(f" at {frame.filename}:{frame.lineno}" for frame in frames)])


OF_THE_REQUEST = (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError, tf.errors.FailedPreconditionError)


def from_tensorflow(error: tf.errors.OpError) -> RequestError:
    """Return an error of the graph as a RequestError.

    If the graph refuses an input, for example an option out of range, the request is invalid; the message is that of
    the graph without the names of operations. Anything else is an error of the server.
    """
    if isinstance(error, OF_THE_REQUEST):
        return invalid(message_of_the_graph(error.message))
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return RequestError(Code.RESOURCE_EXHAUSTED, NO_MEMORY)
    return RequestError(Code.INTERNAL, f"The graph failed: {message_of_the_graph(error.message)}")
