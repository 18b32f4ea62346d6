"""A client of TensorFlow Serving, and of `keras-transformer serve`: lines of text in, translations out."""

import concurrent.futures
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import tenacity

from keras_transformer.text.signatures import BEST, Columns, SignatureEngine, first_values

from .access import Access
from .failures import without_password
from .transports import ClientError, transport_to

ANYBODY = Access()
LONGEST_DEADLINE = 86_400.0  # seconds; a socket has no endless timeout
MOST_REQUESTS = 1024  # at the same time: urllib3 makes as many places for connections at once
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds between attempts; each pause is drawn from 0 to a limit that doubles
RANDOM_PAUSE = tenacity.wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)


class ServingClient(SignatureEngine):
    """Asks a served model over REST or gRPC.

        client = ServingClient("http://localhost:8501/v1/models/mine")
        client.translate(["A dog runs across the field."])[0].text

    If the server is busy, restarting or absent (HTTP 429, 502, 503; gRPC UNAVAILABLE and RESOURCE_EXHAUSTED; a refused
    connection), a request is sent again after a random, growing pause, until it was sent `attempts` times or its
    deadline has passed. If the server names a time (`Retry-After`), the pause begins after it. Any other error, such as
    an unknown host or a TLS certificate that is not trusted, is raised at once, since it would come again. A
    translation can be repeated, so sending a request twice does no harm.

    Args:
        url: http://HOST:PORT/v1/models/NAME, with /versions/N for one version, or grpc://HOST:PORT/NAME; https:// and
            grpcs:// with TLS.
        deadline: seconds for one request with all its attempts. Over REST, an answer that has begun is late only if the
            server then sends nothing for so many seconds.
        rows_per_request: lines per request, at most.
        requests_at_once: requests in flight, at most.
        attempts: how often a request is sent, at most. The pauses between 8 attempts take 6 seconds on average, and 11
            at most, beside the times that the server names.
        access: the certificates and the API key for a server that has them.

    Raises ClientError if the URL is not that of a model, and for an option out of range.
    """

    def __init__(
        self,
        url: str,
        deadline: float = 60.0,
        rows_per_request: int = 32,
        requests_at_once: int = 4,
        attempts: int = 8,
        access: Access = ANYBODY,
    ):
        for name, value in {"rows_per_request": rows_per_request, "requests_at_once": requests_at_once}.items():
            if value < 1:
                raise ClientError(f"{name} is {value}; it must be at least 1.")
        if requests_at_once > MOST_REQUESTS:
            raise ClientError(f"requests_at_once is {requests_at_once}; it must be at most {MOST_REQUESTS}.")
        if not 0 < deadline <= LONGEST_DEADLINE:
            raise ClientError(f"The deadline is {deadline}; it must be more than 0 seconds and at most a day.")
        self.name = f"The model at {without_password(url)}"
        self.transport = transport_to(url, requests_at_once, access)
        self.deadline, self.rows_per_request, self.requests_at_once = deadline, rows_per_request, requests_at_once
        self.attempts = attempts

    def tells(self, name: str, output: str) -> bool:
        return name == BEST or (name in self._signatures and output in self._signatures[name].outputs)

    def defaults(self, name: str) -> Mapping[str, Any]:
        return defaults_of(self._signatures[name]) if name in self._signatures else {}

    @functools.cached_property
    def _signatures(self) -> dict[str, Any]:
        """Those of the version that was served when they were first needed."""
        return self._retried(self.transport.metadata)

    def call(self, name: str, columns: Columns) -> Columns:
        outputs = self.predict(columns, name, None if name == BEST else {})
        if name == BEST and not {"translation", "score"} <= set(outputs):
            raise ClientError(
                f"The model does not translate text: its outputs are {', '.join(sorted(outputs))}, not translation and "
                "score."
            )
        return outputs

    def predict(self, inputs: Columns, signature_name: str, options: dict[str, Any] | None = None) -> Columns:
        """Compute any signature for rows of inputs; each list of `inputs` has one value per row.

        `options` are values that hold for all rows, by the name of their input. If options are given, even none ({}),
        missing inputs get their defaults here, one per row: TensorFlow Serving fills them in for gRPC only, and if it
        joins requests, each input must have as many rows as the others. The defaults are read each time, since another
        version may have others.

        Returns one list per output. Raises ClientError.
        """
        rows = max(map(len, inputs.values()), default=0)
        if options is not None:
            signature = self._signature(signature_name)
            constants = defaults_of(signature) | options
            inputs = inputs | {name: [value] * rows for name, value in constants.items() if name not in inputs}
            inputs = {name: as_floats(signature, name, values) for name, values in inputs.items()}
        starts = range(0, max(rows, 1), self.rows_per_request)
        parts = [
            {name: values[start : start + self.rows_per_request] for name, values in inputs.items()} for start in starts
        ]
        if len(parts) == 1:
            return self._ask(signature_name, parts[0], rows)
        with concurrent.futures.ThreadPoolExecutor(self.requests_at_once) as executor:
            waiting = [
                executor.submit(self._ask, signature_name, part, min(self.rows_per_request, rows - start))
                for part, start in zip(parts, starts, strict=True)
            ]
            try:
                answers = [future.result() for future in waiting]
            except BaseException:  # even Ctrl-C: requests that have not been sent yet must not be sent
                executor.shutdown(wait=False, cancel_futures=True)
                raise
        return {name: [value for answer in answers for value in answer[name]] for name in answers[0]}

    def _ask(self, signature_name: str, inputs: Columns, rows: int) -> Columns:
        """Return the outputs of one request. Raises ClientError."""
        outputs = self._retried(lambda seconds: self.transport.predict(signature_name, inputs, seconds))
        for name, values in outputs.items():
            if not isinstance(values, list) or len(values) != rows:
                raise ClientError(f"The output {name!r} does not have one value for each of {rows} rows.")
        return outputs

    def _signature(self, name: str) -> Any:
        """Return a signature of the served version, a SignatureDef message. Raises ClientError."""
        signatures = self._retried(self.transport.metadata)
        if name not in signatures:
            raise ClientError(f"The model has no signature {name!r}; it has {', '.join(sorted(signatures))}.")
        return signatures[name]

    def _retried(self, send: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
        """Send one request until it is answered, its attempts are used up or its deadline has passed.

        `send` takes the seconds that are left.
        """
        until = time.monotonic() + self.deadline
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ClientError) and error.is_transient),
            wait=pause,
            stop=tenacity.stop_after_attempt(self.attempts) | tenacity.stop_before_delay(self.deadline),
            reraise=True,
        )
        return attempts(lambda: send(max(until - time.monotonic(), 0.001)))


def pause(state: tenacity.RetryCallState) -> float:
    """Return the seconds until the next attempt: a random, growing pause after the time that the server names."""
    error = state.outcome.exception() if state.outcome else None
    return (error.wait if isinstance(error, ClientError) else 0.0) + RANDOM_PAUSE(state)


def defaults_of(signature: Any) -> dict[str, Any]:
    """Return the default of each input of a signature that has one."""
    import tensorflow as tf

    return first_values({name: tf.make_ndarray(value).tolist() for name, value in signature.defaults.items()})


def as_floats(signature: Any, name: str, values: list) -> list:
    """Return the values of an input; if the signature takes floats, whole numbers become floats, as in REST."""
    from tensorflow.core.framework import types_pb2

    if name not in signature.inputs or signature.inputs[name].dtype != types_pb2.DT_FLOAT:
        return values
    return [float(value) if type(value) is int else value for value in values]
