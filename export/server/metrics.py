"""What an operator watches: counts and times of requests and batches, as Prometheus reads them.

Names and labels that begin with ":tensorflow:" are those of TensorFlow Serving (servables/tensorflow/util.cc), at its
path, so that its dashboards show this server too; its times are microseconds.
"""

import asyncio
from collections.abc import Callable, Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .errors import Code, RequestError
from .model_folder import ModelFolder, State

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
LATENCIES = tuple(10 * 1.8**power for power in range(33))  # microseconds: the bounds of TensorFlow Serving
SECONDS = tuple(0.001 * 2**power for power in range(16))
ROWS = tuple(2**power for power in range(11))
OURS = "keras_transformer"
OK = "OK"  # the status of a request that was answered

prometheus_client.disable_created_metrics()  # the time at which each counter began: nobody asks for it


class Metrics(Collector):
    """The metrics of one server."""

    def __init__(self, folder: ModelFolder):
        self._folder = folder
        self._answers: dict[str, int] = {OK: 0}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        where = {"registry": self.registry}
        self._latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from the arrival of a request to its answer.",
            ["model_name", "API", "entrypoint"],
            buckets=LATENCIES,
            **where,
        )
        self._rows = Counter(f"{OURS}_rows", "Rows that were computed: lines of text.", **where)
        self._batch_rows = Histogram(f"{OURS}_batch_rows", "Rows of a batch.", buckets=ROWS, **where)
        self._batch_seconds = Histogram(f"{OURS}_batch_seconds", "Seconds of a batch.", buckets=SECONDS, **where)
        self._cut = Counter(f"{OURS}_cut", "Translations that their limit ended, of those asked for is_cut.", **where)

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Show a value as it is when Prometheus asks."""
        Gauge(f"{OURS}_{name}", meaning, registry=self.registry).set_function(value)

    def answered(self, api: str, entrypoint: str, error: BaseException | None, seconds: float) -> None:
        """Count a request. error: what ended it, None if it was answered."""
        self._latency.labels(self._folder.name, api, entrypoint).observe(1e6 * seconds)
        if api == "Predict":
            code = OK if error is None else code_of(error).name
            self._answers[code] = self._answers.get(code, 0) + 1

    def computed(self, rows: int, seconds: float) -> None:
        """Count a batch."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def cut(self, translations: int) -> None:
        """Count translations that are cut."""
        self._cut.inc(translations)

    def collect(self) -> Iterable[Metric]:
        """Yield what the classes of prometheus-client cannot name or do not know."""
        # "unknown": the classes for counters would add _total to the name
        requests = Metric(":tensorflow:serving:request_count", "The total number of requests.", "unknown")
        for code, count in sorted(self._answers.items()):
            labels = {"model_name": self._folder.name, "status": code}
            requests.add_sample(":tensorflow:serving:request_count", labels, count)
        yield requests
        versions = Metric(f"{OURS}_version_state", "1 for the state that a version is in.", "gauge")
        for number, status in sorted(self._folder.status.items()):
            for state in State:
                labels = {"model_name": self._folder.name, "version": str(number), "state": state.name}
                versions.add_sample(f"{OURS}_version_state", labels, float(status.state is state))
        yield versions

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return prometheus_client.generate_latest(self.registry)


def code_of(error: BaseException) -> Code:
    """Return the status code of what ended a request."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, TimeoutError):
        return Code.DEADLINE_EXCEEDED
    is_of_the_client = isinstance(error, (asyncio.CancelledError, ConnectionError, GeneratorExit))
    return Code.CANCELLED if is_of_the_client else Code.INTERNAL
